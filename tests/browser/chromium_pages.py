"""Fixtures, loaded by tests/conftest.py: Chromium, and a service for it to look at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from live_studio import Studio
    from playwright.sync_api import Browser, BrowserContext, Page

# Software rendering: the tests' machines have no GPU. The rest keeps the browser from calling home.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
STEP_S = 0.3
PATIENCE_MS = 120_000


def missing(reason: str) -> None:
    """Skip, except in CI, where a test that does not run is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed; run: pip install 'helicube[dev]'")
    path = os.environ.get("HELICUBE_CHROMIUM") or shutil.which("chromium")
    if path is None:
        missing("there is no chromium; run: apt-get install chromium, or name one in HELICUBE_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """One service for the tests that need it quick."""
    # Not before: a folder of tests is importable once they are collected.
    from live_studio import Studio

    found = Studio(tmp_path_factory.mktemp("studio") / "data", STEP_S)
    found.start()
    yield found
    found.kill()


class Pages:
    """Opens pages of a studio, each in a profile of its own, and notes what goes wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.contexts: list[BrowserContext] = []
        self.faults: list[str] = []

    def __call__(
        self,
        url: str,
        *,
        width: int = 900,
        height: int = 600,
        scheme: str = "light",
        before: str = "",
        ready: str = "body[data-ready]",
    ) -> Page:
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        # What the page finds in its browser.
        context.add_init_script(before)
        # Small meshes: they are drawn by the processor.
        context.add_init_script("localStorage.settings ??= JSON.stringify({ quality: 'draft', max_triangles: 1500 })")
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda line: self.faults.append(line.text) if "Content Security" in line.text else None)
        page.goto(url)
        page.wait_for_selector(ready)
        return page

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        assert not self.faults, self.faults


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Pages]:
    """For tests that need pages of their own."""
    pages = Pages(chromium)
    yield pages
    pages.close()


@pytest.fixture(scope="module")
def page(chromium: Browser, studio: Studio) -> Iterator[Page]:
    """One page for the tests of a file, which leave it usable: opening one takes longer than most tests."""
    pages = Pages(chromium)
    yield pages(studio.url)
    pages.close()
