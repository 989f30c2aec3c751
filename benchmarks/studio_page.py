"""What one user waits for in the browser: from Enter to the first preview in view, and to the finished mesh."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from studio_load import percentiles
from studio_screens import DESKTOP, chromium, open_page
from studio_target import Target, request

# In the page itself, so that nothing of the driver's own time counts: each level by when its frame was drawn.
WATCH = """() => {
  const seen = window.seen = {};
  const cell = document.querySelector(".cell");
  document.querySelector("#prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter") seen.start = performance.now();
  }, { once: true });
  new MutationObserver(() => {
    const { level } = document.querySelector(".cell").dataset;
    if (level === "none") seen.waiting = Boolean(seen.start);
    if (level === "none" || !seen.waiting) return;
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      seen.first ??= now - seen.start;
      if (level === "final") seen.final ??= now - seen.start;
    }));
  }).observe(cell.parentElement, { subtree: true, attributeFilter: ["data-level"] });
}"""
# What one user should wait at most, at the median.
FIRST_S, FINAL_S = 1.0, 2.5
PATIENCE_S = 120.0


def press(page: Any, number: int) -> tuple[float, float]:
    """Seconds to the first mesh in view and to the last."""
    asked = request(number)
    page.evaluate(WATCH)
    page.fill("#seed", str(asked["seed"]))
    page.fill("#prompt", asked["prompt"])
    page.press("#prompt", "Enter")
    until = time.monotonic() + PATIENCE_S
    while not (seen := page.evaluate("window.seen")).get("final"):
        if time.monotonic() > until:
            raise SystemExit(
                f"{asked['prompt']!r} did not come within {PATIENCE_S:.0f} s: {page.inner_text('main')[:500]}"
            )
        # The page's policy forbids what Playwright's own waiting does.
        page.wait_for_timeout(50)
    return seen["first"] / 1e3, seen["final"] / 1e3


def within(seconds: float | None, aim: float) -> bool:
    return seconds is not None and seconds <= aim


def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        target = Target(options, Path(folder))
        try:
            browser = chromium(playwright)
            page = open_page(browser, target.url, DESKTOP, "light")
            # Not measured: the first step, the first mesh and the first frame allocate.
            press(page, options.presses)
            times = [press(page, number) for number in range(options.presses)]
            browser.close()
        finally:
            target.stop()
    first, final = percentiles([a for a, _ in times]), percentiles([b for _, b in times])
    return {
        "presses": options.presses,
        "first_preview_s": first,
        "final_s": final,
        "aims_s": {"first_preview": FIRST_S, "final": FINAL_S},
        "within_aims": within(first["p50"], FIRST_S) and within(final["p50"], FINAL_S),
        # An object that does not come at all ends the run.
        "sound": True,
    }
