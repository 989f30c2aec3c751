"""Presses at the wrong moment, browsers that lack something, and answers that are not the usual ones."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import PIL.Image
import pytest
from live_studio import Studio, begin, until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.browser

OpenPage = Callable[..., "Page"]


def held(page: Page) -> list[Route]:
    """Requests for objects, which wait until they are let go."""
    routes: list[Route] = []
    page.route("**/v1/objects", lambda route: routes.append(route))  # noqa: PLW0108 - Playwright marks the function
    return routes


def test_two_presses_are_one_job_and_stop_counts_while_the_server_thinks(page: Page, studio: Studio) -> None:
    before = len(studio.get("/v1/jobs")["jobs"])
    routes = held(page)
    page.fill("#prompt", "a red chair")
    page.press("#prompt", "Enter")
    page.press("#prompt", "Enter")
    page.wait_for_selector("#cancel:not([hidden])")
    page.press("#prompt", "Escape")
    page.wait_for_timeout(300)
    assert len(routes) == 1
    routes[0].continue_()
    page.wait_for_selector("#cancel", state="hidden")
    page.unroute_all()
    jobs = studio.get("/v1/jobs")["jobs"]
    assert len(jobs) == before + 1
    assert jobs[0]["status"] == "cancelled"


def test_a_job_goes_on_where_the_next_one_is_declined(page: Page, studio: Studio) -> None:
    first = begin(page, "a lamp", seed=1)
    body = json.dumps({"error": {"code": "queue_full", "message": "64 objects wait already."}})
    page.route("**/v1/objects", lambda route: route.fulfill(status=429, content_type="application/json", body=body))
    page.fill("#prompt", "a bed")
    page.press("#prompt", "Enter")
    page.wait_for_selector("#trouble:has-text('64 objects wait already')")
    page.unroute_all()
    page.wait_for_selector(".cell[data-level=final]")
    assert studio.get(f"/v1/jobs/{first}")["status"] == "done"


def test_history_hides_a_job_without_losing_it(page: Page, studio: Studio) -> None:
    begin(page, "a cup", seed=2)
    page.locator("#gallery .thumb[title='a cup']").wait_for()
    job = begin(page, "a lamp", seed=3)
    page.locator("#gallery .thumb[title='a cup']").click()
    # Not in the form or on the stage: nothing to do with the job.
    page.focus("#seed")
    page.keyboard.press("Escape")
    assert page.locator("#cancel").is_visible()
    page.click("#cancel")
    page.wait_for_selector("#cancel", state="hidden")
    assert studio.get(f"/v1/jobs/{job}")["status"] in {"cancelled", "done"}


def test_without_webgl_objects_are_made_and_can_be_had(open_page: OpenPage, studio: Studio) -> None:
    lacking = """const real = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind.startsWith("webgl") ? null : real.call(this, kind, ...rest);
      };"""
    page = open_page(studio.url, before=lacking)
    page.wait_for_selector("#no-webgl:not([hidden])")
    page.fill("#prompt", "a red chair")
    page.press("#prompt", "Enter")
    page.wait_for_selector("#downloads a")


@pytest.mark.parametrize("kept", ['{"box": 5}', "null", "{", '{"quality": {"a": 1}, "box": [1]}'])
def test_settings_that_cannot_be_read_are_left(open_page: OpenPage, studio: Studio, kept: str) -> None:
    page = open_page(studio.url, before=f"localStorage.settings ??= {json.dumps(kept)}")
    assert page.locator("#generate").is_enabled()
    until(page, "document.querySelector('input[name=quality]:checked') !== null")


def test_a_plan_that_is_refused_says_why(page: Page) -> None:
    body = json.dumps({"error": {"code": "busy", "message": "4 searches wait already"}})
    page.route("**/plan?*", lambda route: route.fulfill(status=503, content_type="application/json", body=body))
    page.click("#tab-planner")
    page.wait_for_selector("#plan-trouble:has-text('4 searches wait already')")
    page.unroute_all()
    # By the planner itself, for a choice that the page offers.
    page.select_option("#plan-form select[name=gpu]", "h100")
    page.select_option("#plan-form select[name=max_gpus]", "8")
    page.click("#plan-form button")
    page.wait_for_selector("#plan-trouble:has-text('does not fit 8 × h100')")
    assert page.locator("#plan-frame").is_hidden()
    page.select_option("#plan-form select[name=gpu]", "gb200")
    page.click("#plan-form button")
    page.frame_locator("#plan-frame").locator("#chart circle").first.wait_for()
    page.click("#tab-create")


def test_a_broken_engine_and_too_many_keys_are_called_what_they_are(page: Page) -> None:
    page.route("**/healthz", lambda route: route.fulfill(status=503, json={"status": "broken"}))
    page.wait_for_selector("#connection:has-text('Server is broken')")
    page.unroute_all()
    page.wait_for_selector("#connection:has-text('Connected')")
    locked = {"error": {"code": "unauthorized", "message": "an API key is needed"}}
    page.route("**/v1/objects", lambda route: route.fulfill(status=401, json=locked))
    page.route("**/v1/session", lambda route: route.fulfill(status=429, headers={"Retry-After": "40"}, json={}))
    page.fill("#prompt", "a bench")
    page.press("#prompt", "Enter")
    page.fill("#key", "anything")
    page.press("#key", "Enter")
    page.wait_for_selector("#key-trouble:has-text('Wait 40 seconds')")
    page.unroute_all()
    page.reload()


def test_the_history_keeps_what_was_scrolled_to(page: Page) -> None:
    def of(numbers: range, following: str | None) -> dict[str, object]:
        urls = {"png": "/page/icon.svg", "glb": "/nothing.glb"}
        return {
            "objects": [{"id": f"{n:032x}", "prompt": f"chair {n}", "urls": urls} for n in numbers],
            "next": following,
        }

    lost: list[str] = []

    def answer(route: Route) -> None:
        if "before=" not in route.request.url:
            route.fulfill(json=of(range(30), "1.5_a"))
        elif not lost:
            # An older page that does not come is asked for again with the next scroll.
            lost.append(route.request.url)
            route.abort()
        else:
            route.fulfill(json=of(range(30, 60), None))

    page.route("**/v1/objects?limit=*", answer)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    until(page, "document.querySelectorAll('#gallery li').length === 30")
    with page.expect_event("requestfailed"):
        page.evaluate("document.querySelector('#gallery').scrollLeft = 1e6")
    page.evaluate("document.querySelector('#gallery').scrollLeft = 0")
    page.wait_for_timeout(100)
    page.evaluate("document.querySelector('#gallery').scrollLeft = 1e6")
    until(page, "document.querySelectorAll('#gallery li').length === 60")
    assert len(lost) == 1
    with page.expect_response("**/v1/objects?limit=*"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(300)
    assert page.locator("#gallery li").count() == 60
    page.unroute_all()
    page.reload()


def test_a_picture_that_failed_is_asked_for_again(page: Page) -> None:
    asked: list[str] = []
    # Not the server's own: a busy one may refuse the second request as well, and the page would draw it here.
    shown = io.BytesIO()
    PIL.Image.new("RGB", (4, 4)).save(shown, "PNG")

    def second_time(route: Route) -> None:
        # Of each picture, as older ones of the history may be asked for first.
        path = route.request.url.partition("?")[0]
        if path in asked:
            route.fulfill(status=200, content_type="image/png", body=shown.getvalue())
        else:
            route.fulfill(status=503, json={})
        asked.append(path)

    page.route("**/v1/objects/*.png*", second_time)
    page.fill("#seed", "77")
    page.fill("#prompt", "a picture frame")
    page.press("#prompt", "Enter")
    picture = page.wait_for_selector(".thumb[title='a picture frame'] img[data-loaded][src*=again]")
    assert picture is not None
    source = picture.get_attribute("src")
    assert source is not None
    assert sum(path.endswith(source.partition("?")[0]) for path in asked) == 2
    page.unroute_all()
