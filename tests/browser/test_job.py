"""A job while it lasts: stopped, left and found again, cut off by a dead server. This service is slow on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from live_studio import Studio, begin, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

OpenPage = Callable[..., "Page"]
FINAL = ".cell[data-level=final]"
LAUNCH_S = 0.8


@pytest.fixture(scope="module")
def slow_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A service that may be killed; its jobs last about five seconds."""
    found = Studio(tmp_path_factory.mktemp("slow") / "data", LAUNCH_S)
    found.start()
    yield found
    found.kill()


def test_escape_stops_and_the_server_knows(open_page: OpenPage, slow_studio: Studio) -> None:
    page = open_page(slow_studio.url)
    job = begin(page, "a bench", seed=31, variants=4)
    page.keyboard.press("Escape")
    page.wait_for_selector("#cancel", state="hidden")
    until(page, "document.querySelector('#say').textContent === 'Stopped'")
    assert slow_studio.get(f"/v1/jobs/{job}")["status"] == "cancelled"
    assert page.locator(".fault:visible").all_inner_texts() == ["Stopped"] * 4
    assert page.locator("#progress").is_hidden()


def test_a_reload_finds_the_job_and_the_gallery(open_page: OpenPage, slow_studio: Studio) -> None:
    page = open_page(slow_studio.url)
    begin(page, "a sofa", seed=41, variants=2)
    page.reload()
    page.wait_for_selector("#progress:not([hidden])")
    until(page, f"document.querySelectorAll('{FINAL}').length === 2")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    thumbs = page.locator(".thumb[title='a sofa']")
    assert thumbs.count() == 2
    until(page, "[...document.querySelectorAll('.thumb img')].every(image => image.naturalWidth > 0)")
    thumbs.last.click()
    page.wait_for_selector(FINAL)
    page.wait_for_selector("#result:not([hidden])")
    assert "seed 41" in page.inner_text("#result-facts") or "seed 42" in page.inner_text("#result-facts")
    page.click("text=Use settings")
    assert page.input_value("#prompt") == "a sofa"
    assert page.input_value("#seed") in page.inner_text("#result-facts")
    page.hover("li:has(.thumb[aria-current=true])")
    page.click("li:has(.thumb[aria-current=true]) .remove")
    until(page, "document.querySelectorAll('.thumb').length === 1")
    assert len(slow_studio.get("/v1/objects")["objects"]) == 1


def test_a_killed_server_is_missed_and_the_job_goes_on_when_it_is_back(
    open_page: OpenPage, slow_studio: Studio
) -> None:
    page = open_page(slow_studio.url)
    begin(page, "a boat", seed=71)
    slow_studio.kill()
    page.wait_for_selector("#connection[data-state=lost]")
    assert "reconnecting" in page.inner_text("#connection")
    assert page.locator(FINAL).count() == 0
    slow_studio.start()
    page.wait_for_selector("#connection[data-state=good]")
    page.wait_for_selector(FINAL)
    page.wait_for_selector(".thumb[title='a boat']")
    assert page.locator("#trouble").is_hidden()
