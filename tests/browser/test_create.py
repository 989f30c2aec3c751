"""The studio's first view: a prompt becomes an object before one's eyes, and goes with its maker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import trimesh
from live_studio import Studio, begin, shows, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

OpenPage = Callable[..., "Page"]
FINAL = ".cell[data-level=final]"
# Notes every level of detail that the cells show, in order, and every text of the progress line.
NOTE = """() => {
  window.levels = []; window.rates = [];
  if (window.noting) return;
  window.noting = true;
  new MutationObserver(records => records.forEach(r => window.levels.push(r.target.dataset.level)))
    .observe(document.querySelector("#cells"), { subtree: true, attributes: true, attributeFilter: ["data-level"] });
  new MutationObserver(() => window.rates.push(document.querySelector("#progress").innerText))
    .observe(document.querySelector("#progress"), { subtree: true, childList: true, characterData: true });
}"""


def generate(page: Page, prompt: str, *, seed: int = 0, variants: int = 1) -> None:
    """Press Enter; returns when the last object is on the stage."""
    begin(page, prompt, seed=seed, variants=variants)
    page.wait_for_selector("#result:not([hidden])")
    # Not what stood there before.
    until(page, shows(seed))
    until(page, f"document.querySelectorAll('{FINAL}').length === {variants}")


def picture(page: Page) -> bytes:
    box = page.locator("#view").bounding_box()
    assert box is not None
    # Without the buttons above and below.
    clip = {"x": box["x"], "y": box["y"] + 60, "width": box["width"], "height": box["height"] - 110}
    return page.screenshot(clip=clip)  # type: ignore[arg-type]


def test_a_prompt_becomes_an_object_in_view(page: Page, studio: Studio) -> None:
    seed, levels, rates = 10, list[str](), list[str]()
    # A machine may be so busy that a job of two seconds ends before the page hears of it.
    while not {"0", "1"} & set(levels) and seed < 13:
        seed += 1
        page.evaluate(NOTE)
        generate(page, "a red chair", seed=seed)
        levels, rates = page.evaluate("[window.levels, window.rates]")
    assert levels[0] == "none"
    assert levels[-1] == "final"
    assert {"0", "1"} & set(levels), "no preview came before the object"
    assert sorted(levels, key=["none", "0", "1", "final"].index) == levels, "a coarser mesh replaced a finer one"
    assert any(re.search(r"\d+ of 40 tokens · [\d.]+ tokens/s", text) for text in rates)
    made = next(o for o in studio.get("/v1/objects?limit=50")["objects"] if o["seed"] == seed)
    assert page.get_attribute(FINAL, "data-triangles") == str(made["num_triangles"])
    facts = page.inner_text("#result-facts")
    assert facts.startswith(f"{made['num_triangles']:,} triangles")
    assert f"seed {seed} " in facts
    assert page.inner_text("#say") == f"Done: a red chair, {made['num_triangles']:,} triangles"


def test_variants_stand_side_by_side_and_one_is_chosen(page: Page) -> None:
    generate(page, "a lamp", seed=20, variants=3)
    boxes = [cell.bounding_box() for cell in page.locator(".cell").all()]
    assert len({(box["x"], box["y"]) for box in boxes if box}) == 3
    page.click(".cell:nth-child(3) button")
    assert "seed 22" in page.inner_text("#result-facts")
    assert page.locator(".cell button[aria-pressed=true]").count() == 1


def test_dragging_and_arrow_keys_turn_the_view(page: Page) -> None:
    generate(page, "a red chair", seed=11)

    def azimuth() -> float:
        return float(page.get_attribute("#view", "data-azimuth") or "nan")

    start, before = azimuth(), picture(page)
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y + 10, steps=4)
    page.mouse.up()
    until(page, f"Math.abs(document.querySelector('#view').dataset.azimuth - {start}) > 20")
    assert picture(page) != before
    page.click("[data-tool=home]")
    until(page, f"Math.abs(document.querySelector('#view').dataset.azimuth - {start}) < 0.2")
    page.focus("#canvas")
    page.keyboard.press("ArrowRight")
    until(page, f"Math.abs(document.querySelector('#view').dataset.azimuth - {start}) > 5")


def test_each_tool_changes_the_picture_and_says_so(page: Page) -> None:
    generate(page, "a red chair", seed=11)
    for tool in ("colors", "wire", "grid", "figure"):
        button = page.locator(f"[data-tool={tool}]")
        before, pressed = picture(page), button.get_attribute("aria-pressed")
        button.click()
        assert button.get_attribute("aria-pressed") != pressed, tool
        assert picture(page) != before, tool
        button.click()


def test_the_figure_is_175_cm_tall_and_the_grid_fits_the_object(page: Page) -> None:
    measure = """async () => {
      const [{ Figure }, { Floor }, three] = await Promise.all(
        ["figure", "floor", "three"].map(name => import(`/page/${name}.js`)));
      const box = new three.Box3().setFromObject(new Figure().mesh);
      return [box.min.y, box.max.y, ...[0.01, 0.1, 1, 30].map(radius => new Floor().fit(radius))];
    }"""
    low, high, *cells = page.evaluate(measure)
    assert (low, high) == (pytest.approx(0, abs=1e-6), pytest.approx(1.75, abs=1e-5))
    assert cells == pytest.approx([0.002, 0.02, 0.2, 5])


def test_every_download_opens_in_another_program(page: Page, studio: Studio, tmp_path: Path) -> None:
    generate(page, "a red chair", seed=11)
    made = next(o for o in studio.get("/v1/objects?limit=50")["objects"] if o["seed"] == 11)
    libraries = []
    for ending in ("glb", "stl", "ply", "mtl", "obj"):
        with page.expect_download() as waiting:
            page.click(f"#downloads a[aria-label='Download {ending.upper()}']")
        name = waiting.value.suggested_filename
        assert re.fullmatch(rf"[\w-]*chair[\w-]*\.{ending}", name), name
        path = tmp_path / name
        waiting.value.save_as(path)
        if ending == "mtl":
            libraries.append(name)
            continue
        mesh = trimesh.load_mesh(path)
        assert len(mesh.faces) == made["num_triangles"], ending
        assert np.allclose(mesh.extents, made["extents"], rtol=1e-4), ending
        assert mesh.is_watertight, ending
    # The last was the OBJ: what it names was downloaded under that name.
    assert re.findall("mtllib (.+)", path.read_text()) == libraries


def test_two_pages_at_once_each_get_their_own(page: Page, open_page: OpenPage, studio: Studio) -> None:
    other = open_page(studio.url)
    begin(page, "a table", seed=51)
    begin(other, "a boat", seed=61)
    for one, seed in ((page, 51), (other, 61)):
        one.wait_for_selector("#result:not([hidden])")
        one.wait_for_selector(FINAL)
        assert f"seed {seed}" in one.inner_text("#result-facts")
    other.wait_for_selector(".thumb[title='a boat']")
    other.reload()
    other.wait_for_selector(".thumb[title='a table']")
