"""What the page is made of, without a browser: all that it names is there, small, and ships with its licence."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "src" / "helicube" / "serve" / "page"
VENDOR = PAGE / "vendor"
OWN = sorted(p for p in PAGE.rglob("*") if p.is_file() and VENDOR not in p.parents)


@pytest.mark.parametrize("path", [p for p in OWN if p.suffix in {".js", ".css", ".html"}], ids=lambda p: p.name)
def test_every_file_named_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    local = re.findall(r'from "(\./[^"]+)"', text)
    rooted = re.findall(r'["(]/page/([^")]+\.[a-z0-9]+)["#)]', text)
    for name in local:
        assert (path.parent / name).is_file(), name
    for name in rooted:
        assert (PAGE / name).is_file(), name
    assert not re.search(r"https?://(?!www\.w3\.org)", text), "the page calls nobody"
    assert len(text.splitlines()) < 300


def test_libraries_bring_their_licences_and_versions() -> None:
    folders = [p for p in VENDOR.iterdir() if p.is_dir()]
    assert {p.name for p in folders} == {"three-0.187.0", "geist-5.3.0"}
    readme = (VENDOR / "README.md").read_text(encoding="utf-8")
    for folder in folders:
        assert (folder / "LICENSE").stat().st_size > 1000
        assert folder.name in readme


def test_libraries_are_as_published() -> None:
    lines = [line.split() for line in (VENDOR / "SHA256.txt").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    files = {p.relative_to(VENDOR).as_posix(): p for p in VENDOR.rglob("*") if p.parent != VENDOR and p.is_file()}
    assert {name: hashlib.sha256(p.read_bytes()).hexdigest() for name, p in files.items()} == listed


def test_no_inline_script_or_style() -> None:
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert "<style" not in html
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\son\w+=|\sstyle=", html)
