"""The other views, and how the page looks and behaves for different people."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from live_studio import Studio

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

OpenPage = Callable[..., "Page"]
FOCUSED = "document.activeElement.id || document.activeElement.name || document.activeElement.textContent"


def test_the_planner_shows_a_frontier(page: Page) -> None:
    page.click("#tab-planner")
    page.wait_for_selector("#plan-form select[name=model]")
    dots = page.frame_locator("#plan-frame").locator("#chart circle")
    dots.first.wait_for()
    assert dots.count() > 10
    dots.nth(3).dispatch_event("pointerenter")
    assert "ms per token" in page.frame_locator("#plan-frame").locator("#tip").inner_text()


def test_the_engine_shows_what_it_has_done(page: Page) -> None:
    page.click("#tab-create")
    page.fill("#prompt", "a red chair")
    page.press("#prompt", "Enter")
    page.wait_for_selector(".cell[data-level=final]")
    page.click("#tab-engine")
    # A flat line has no area, and would not count as visible.
    page.wait_for_selector(".chart .curve", state="attached")
    titles = page.locator("#engine-charts h2").all_inner_texts()
    assert titles == ["Time per token (TPOT)", "Throughput", "Batch: slots in use", "Queue"]
    assert "of 8 slots" in page.inner_text("#engine-charts")
    made = page.locator("#engine-facts div", has_text="Made").locator("dd").inner_text()
    assert int(made) >= 1


def test_tabs_by_arrow_keys_and_by_address(page: Page, studio: Studio) -> None:
    page.focus("#tab-create")
    page.keyboard.press("ArrowRight")
    assert page.locator("#planner").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#engine").is_visible()
    assert page.evaluate("location.hash") == "#engine"
    page.reload()
    page.wait_for_selector("#engine:not([hidden])")


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(page: Page) -> None:
    page.click("#tab-create")
    page.focus("#prompt")
    seen = []
    for _ in range(24):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    order = ["a red wooden chair", "variants", "seed", "dice", "shape", "slider-size_m", "slider-max_triangles",
             "quality", "generate", "canvas", "Colours"]  # fmt: skip
    places = [seen.index(name) for name in order]
    assert places == sorted(places)
    page.focus("#generate")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_systems_colours_are_followed_until_the_button_is_used(
    open_page: OpenPage, studio: Studio, scheme: str
) -> None:
    page = open_page(studio.url, scheme=scheme)
    root = page.locator("html")
    assert root.get_attribute("data-theme") == scheme
    page.click("#theme")
    other = {"light": "dark", "dark": "light"}[scheme]
    assert root.get_attribute("data-theme") == other
    page.reload()
    assert root.get_attribute("data-theme") == other


def test_nothing_is_cut_off_on_a_phone(open_page: OpenPage, studio: Studio) -> None:
    page = open_page(studio.url, width=360, height=740)
    page.fill("#prompt", "a red chair")
    page.press("#prompt", "Enter")
    page.wait_for_selector("#result:not([hidden])")
    for tab in ("create", "planner", "engine"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") == 360, tab
    page.click("#tab-create")
    page.click("#settings > summary")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for name in ("#generate", "#theme", "[data-tool=wire]", "#downloads a"):
        box = page.locator(name).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= 360, name


def test_box_sliders_shape_the_request(page: Page) -> None:
    page.click("#tab-create")
    page.check("input[name=shape][value=box]", force=True)
    for name, key in (("width", "Home"), ("height", "End")):
        page.focus(f"#slider-{name}")
        page.keyboard.press(key)
    page.fill("#prompt", "a bench")
    # 100 to 1: further than the service goes.
    page.press("#prompt", "Enter")
    page.wait_for_selector("#trouble:has-text('at most 64 times')")
    page.focus("#slider-width")
    page.keyboard.press("End")
    with page.expect_response("**/v1/objects") as answer:
        page.press("#prompt", "Enter")
    assert answer.value.status in {200, 202}
    request = json.loads(answer.value.request.post_data or "{}")
    assert request["box"] == [5, 5, 1]
    assert request["size_m"] == 5
    page.check("input[name=shape][value=free]", force=True)


def test_candidates_are_asked_for_and_counted(page: Page, studio: Studio) -> None:
    page.click("#tab-create")
    page.focus("#slider-best_of")
    page.keyboard.press("Home")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert page.get_attribute("#slider-best_of", "aria-valuetext") == "3 tries"
    # Of the likeliest shape there is one alone: two variants are drawn.
    page.check("input[name=variants][value='2']", force=True)
    page.fill("#prompt", "a candidate")
    with page.expect_response("**/v1/objects") as answer:
        page.press("#prompt", "Enter")
    assert [made["tokens_total"] for made in answer.value.json()["objects"]] == [120, 120]
    page.wait_for_selector("#result:not([hidden])")
    kept = next(made for made in studio.get("/v1/objects")["objects"] if made["prompt"] == "a candidate")
    assert kept["settings"]["best_of"] == 3
    page.focus("#slider-best_of")
    page.keyboard.press("Home")
    page.click("text=Use settings")
    assert page.get_attribute("#slider-best_of", "aria-valuetext") == "3 tries"
