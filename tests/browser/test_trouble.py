"""When things go wrong: the page says so in plain words, and goes on by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_studio import Studio

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.browser

OpenPage = Callable[..., "Page"]


def test_an_empty_prompt_is_told_what_to_do(page: Page) -> None:
    page.press("#prompt", "Enter")
    page.wait_for_selector("#trouble:has-text('Type what it should be')")
    assert page.get_attribute("#prompt", "aria-invalid") == "true"


def test_a_full_queue_shows_the_wait_and_counts_down(page: Page) -> None:
    def full(route: Route) -> None:
        body = {"error": {"code": "queue_full", "message": "64 objects wait already and at most 64 may."}}
        route.fulfill(status=429, headers={"Retry-After": "2"}, content_type="application/json", body=json.dumps(body))

    page.route("**/v1/objects", full)
    page.fill("#prompt", "a bench")
    page.press("#prompt", "Enter")
    page.wait_for_selector("#trouble:has-text('64 objects wait already')")
    assert "to go" in page.inner_text("#trouble")
    page.wait_for_selector("#trouble:has-text('You can try again now.')")
    assert page.locator("#cancel").is_hidden()
    page.unroute_all()


def test_what_the_server_declines_is_shown_as_it_says(page: Page, studio: Studio) -> None:
    # Past what the field itself lets through, so that the answer is the server's.
    page.evaluate("document.querySelector('#prompt').removeAttribute('maxlength')")
    page.fill("#prompt", "chair " * 400)
    with page.expect_response("**/v1/objects") as answer:
        page.press("#prompt", "Enter")
    assert answer.value.status == 422
    page.wait_for_selector("#trouble:not([hidden])")
    assert page.inner_text("#trouble") == answer.value.json()["error"]["message"]


def test_a_key_is_asked_for_once(page: Page) -> None:
    opened: list[bool] = []

    def locked(route: Route) -> None:
        if opened:
            route.continue_()
        else:
            body = json.dumps({"error": {"code": "unauthorized", "message": "an API key is needed"}})
            route.fulfill(status=401, content_type="application/json", body=body)

    def session(route: Route) -> None:
        right = json.loads(route.request.post_data or "{}") == {"api_key": "open sesame"}
        opened.extend([True] if right else [])
        route.fulfill(status=204 if right else 401)

    page.route("**/v1/objects", locked)
    page.route("**/v1/session", session)
    page.fill("#prompt", "a bench")
    page.press("#prompt", "Enter")
    page.fill("#key", "wrong")
    page.press("#key", "Enter")
    page.wait_for_selector("#key-trouble:has-text('That is not the key.')")
    page.fill("#key", "open sesame")
    page.press("#key", "Enter")
    page.wait_for_selector(".cell[data-level=final]")
    page.unroute_all()


def test_a_studio_with_a_key_opens_to_it_alone(open_page: OpenPage, tmp_path: Path) -> None:
    key = "a key of sixteen characters and more"
    locked = Studio(tmp_path / "locked", 0.0, key)
    locked.start()
    try:
        page = open_page(locked.url, ready="#key-dialog[open]")
        page.fill("#key", key[:-1])
        page.press("#key", "Enter")
        page.wait_for_selector("#key-trouble:has-text('That is not the key.')")
        page.fill("#key", key)
        page.press("#key", "Enter")
        page.wait_for_selector("body[data-ready]")
        page.fill("#prompt", "a bench")
        page.press("#prompt", "Enter")
        page.wait_for_selector(".cell[data-level=final]")
        # Files, events and pictures come by the cookie, which outlives a reload and which scripts cannot read.
        page.wait_for_selector(".thumb img[data-loaded]")
        assert page.evaluate("document.cookie") == ""
        page.reload()
        page.wait_for_selector(".thumb img[data-loaded]")
        page.context.clear_cookies()
        page.reload()
        page.wait_for_selector("#key-dialog[open]")
    finally:
        locked.kill()
