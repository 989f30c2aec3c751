"""Pictures of the studio for docs/studio, of a running service: python benchmarks/studio_screens.py [URL] [--folder F].

Without a URL it starts `helicube serve` with the bundled model, on a folder of its own. Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "studio"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader",
         "--enable-unsafe-swiftshader", "--disable-background-networking", "--no-first-run")  # fmt: skip
PROMPTS = ("a round oak table", "a blue sofa", "a desk lamp", "a park bench", "a small rowing boat")
PATIENCE_MS = 180_000
DESKTOP, PHONE = (1360, 850), (360, 740)
MOST_BYTES = 150_000


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextlib.contextmanager
def service() -> Iterator[str]:
    """`helicube serve` on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "helicube", "serve", "--port", str(port), "--data-dir", folder]
        process = subprocess.Popen(command)
        try:
            while not answers(f"http://127.0.0.1:{port}"):
                if process.poll() is not None:
                    raise SystemExit("the service did not start")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def open_page(browser: Browser, url: str, size: tuple[int, int], scheme: str, **more: Any) -> Page:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce", **more)
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(f"localStorage.theme = '{scheme}'")
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("body[data-ready]")
    return page


def generate(page: Page, prompt: str, variants: int = 1) -> None:
    page.locator(f"input[name=variants][value='{variants}']").evaluate("radio => radio.click()")
    page.fill("#prompt", prompt)
    with page.expect_response("**/v1/objects"):
        page.press("#prompt", "Enter")
    page.wait_for_selector("#result:not([hidden])")
    page.locator(".cell[data-level=final]").nth(variants - 1).wait_for()


def save(page: Page, folder: Path, name: str, *, whole: bool = False, settle_ms: int = 600) -> None:
    """A picture of few colours, which keeps it small."""
    pictures_loaded = "[...document.querySelectorAll('.thumb img')].slice(0, 8).every(image => image.naturalWidth > 0)"
    while settle_ms and not page.evaluate(pictures_loaded):
        page.wait_for_timeout(100)
    page.wait_for_timeout(settle_ms)
    path = folder / f"{name}.png"
    full = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    # Some places for rare colours, such as that of a small green light.
    rare = palette(full, 16, Image.Quantize.MAXCOVERAGE)
    for colors in (240, 160, 112, 80, 48):
        table = Image.new("P", (1, 1))
        table.putpalette(palette(full, colors, Image.Quantize.MEDIANCUT) + rare)
        full.quantize(palette=table, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size < MOST_BYTES:
            break
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def palette(image: Image.Image, colors: int, method: Image.Quantize) -> list[int]:
    found = image.quantize(colors, method=method, dither=Image.Dither.NONE).getpalette()
    assert found is not None, "a quantized image has a palette"
    return found[: 3 * colors]


def shots(browser: Browser, url: str, folder: Path) -> None:
    page = open_page(browser, url, DESKTOP, "light")
    save(page, folder, "start")
    for prompt in PROMPTS:
        generate(page, prompt)
    generate(page, "a red wooden chair")
    save(page, folder, "create-light")
    generate(page, "a house", variants=4)
    save(page, folder, "variants")
    page.fill("#seed", str(int(time.time()) % 100_000))
    page.fill("#prompt", "a castle")
    page.press("#prompt", "Enter")
    page.wait_for_selector("#progress:not([hidden])")
    save(page, folder, "progress", settle_ms=0)
    page.wait_for_selector("#result:not([hidden])")
    page.fill("#prompt", "")
    page.press("#prompt", "Enter")
    save(page, folder, "error")
    page.click("#tab-planner")
    page.frame_locator("#plan-frame").locator("#chart circle").first.wait_for()
    save(page, folder, "planner")
    dark = open_page(browser, url, DESKTOP, "dark")
    generate(dark, "a blue sofa")
    save(dark, folder, "create-dark")
    dark.click("[data-tool=wire]")
    save(dark, folder, "wireframe-dark")
    dark.click("#tab-engine")
    dark.wait_for_selector(".chart .curve", state="attached")
    save(dark, folder, "engine-dark")
    phone = open_page(browser, url, PHONE, "light", device_scale_factor=2, is_mobile=True, has_touch=True)
    generate(phone, "a park bench")
    save(phone, folder, "phone", whole=True)


def chromium(playwright: Playwright) -> Browser:
    path = os.environ.get("HELICUBE_CHROMIUM") or shutil.which("chromium")
    if path is None:
        raise SystemExit("there is no chromium; run: apt-get install chromium, or name one in HELICUBE_CHROMIUM")
    return playwright.chromium.launch(executable_path=path, args=list(FLAGS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", help="of a running service")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        at = options.url.rstrip("/") if options.url else stack.enter_context(service())
        playwright = stack.enter_context(sync_playwright())
        browser = chromium(playwright)
        shots(browser, at, options.folder)
        browser.close()


if __name__ == "__main__":
    main()
