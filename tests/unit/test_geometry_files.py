"""Files are written whole or not at all, and what cannot be written ends in one line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tiny import tiny_weights

from helicube.cli import main
from helicube.errors import InputError
from helicube.geometry.files import whole_file
from helicube.geometry.pictures import check_picture
from helicube.geometry.render import RenderOptions
from helicube.models.cube.default import save_default
from helicube.pipelines.measured import write_measured


def test_a_file_is_seen_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_text("old")
    with whole_file(path) as passing:
        passing.write_text("new")
        assert passing.suffix == ".json", "some writers choose the format by it"
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert [p.name for p in tmp_path.iterdir()] == ["figures.json"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ZeroDivisionError, OSError(28, "No space left on device")])
def test_what_fails_leaves_the_old_file_and_nothing_else(fault: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_text("old")

    def broken() -> None:
        with whole_file(path) as passing:
            passing.write_text("half")
            raise fault

    with pytest.raises((KeyboardInterrupt, ZeroDivisionError, InputError)) as caught:
        broken()
    assert isinstance(caught.value, InputError) == isinstance(fault, OSError)
    if isinstance(fault, OSError):
        assert str(caught.value).startswith(f"cannot write {path}: No space left on device; ")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["figures.json"]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    with whole_file(path) as one, whole_file(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one", "the last to finish"
    assert [p.name for p in tmp_path.iterdir()] == ["figures.json"]


def test_measurements_and_weights_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*no.x\.json: No such file"):
        write_measured({}, tmp_path / "no" / "x.json")
    with pytest.raises(InputError, match=r"cannot make the folder .*below"):
        save_default(tiny_weights(), tmp_path / "file" / "below")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_pictures_are_refused_before_they_are_rendered(tmp_path: Path) -> None:
    check_picture(tmp_path / "turn.GIF", RenderOptions())
    for name, words in (("x.jpg", r"\.png.*\.gif"), ("no/x.gif", "does not exist; create it")):
        with pytest.raises(InputError, match=words):
            check_picture(tmp_path / name, RenderOptions())


def test_a_file_that_nobody_checked_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "runs/log.txt")

    monkeypatch.setattr(main.cli, "main", fail)
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == 1
    assert capsys.readouterr().err == "error: runs/log.txt: Permission denied; check the name and the permissions\n"
