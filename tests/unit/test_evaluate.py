"""Figures of a model: the gallery, the shares, and the whole command on a small catalogue."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from helicube.cli.main import cli
from helicube.engine.sampling import SamplingConfig
from helicube.errors import EmptyFieldError, GeometryError, InputError
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import turn_yaw
from helicube.pipelines.meshing import MeshOptions
from helicube.train import gallery as gallery_module
from helicube.train.catalog import load_catalog
from helicube.train.evaluate_text import (
    ClassTrial,
    Galleries,
    aspect_errors,
    made_of,
    prompt_figures,
    real_right_shares,
)
from helicube.train.gallery import NOTHING, Gallery, Match, cloud_of
from helicube.train.objects import TrainingObject
from helicube.train.procedural import generate_many

BOX = Mesh(vertices=np.zeros((1, 3), np.float32), faces=np.zeros((0, 3), np.int32))


@pytest.fixture(scope="module")
def objects() -> list[TrainingObject]:
    return list(generate_many(30, 0))


def mesh_of(source: TrainingObject) -> Mesh:
    return Mesh(vertices=source.vertices, faces=source.faces.astype(np.int32))


def test_an_object_that_was_turned_moved_and_scaled_is_found(
    objects: list[TrainingObject], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several chunks, the last one partly filled.
    monkeypatch.setattr(gallery_module, "CHUNK", 7)
    gallery = Gallery(objects)
    for i, source in enumerate(objects[::4]):
        mesh = mesh_of(source)
        turned = replace(mesh, vertices=(turn_yaw(mesh.vertices, i % 4) * 0.3 + 2).astype(np.float32))
        found = gallery.nearest(cloud_of(turned))
        assert (found.id, found.class_name) == (source.id, source.class_name)
        assert found.distance < 0.06, "two samplings of one surface"


def test_of_two_galleries_the_nearer_object_wins(objects: list[TrainingObject]) -> None:
    galleries = Galleries(catalog=Gallery(objects[:15]), procedural=Gallery(objects[15:]))
    for source in (objects[0], objects[20]):
        nearest, catalog = galleries.nearest(cloud_of(mesh_of(source)))
        assert nearest.id == source.id
        assert (catalog.id == source.id) == (source is objects[0])
    # The half of them that the catalogue holds is found there; the other half has other classes.
    shares = real_right_shares(galleries, [objects[0], objects[20]])
    assert shares == {"real_right_class_share": 1.0, "real_right_class_share_catalog": 0.5}


def trial(name: str, nearest: str, catalog: str, components: int, mesh: Mesh | None = BOX) -> ClassTrial:
    def match(class_name: str) -> Match:
        return replace(NOTHING, class_name=class_name)

    return ClassTrial(
        class_name=name, seed=0, nearest=match(nearest), nearest_catalog=match(catalog), watertight=components < 3,
        components=components, mesh=mesh,
    )  # fmt: skip


def test_shares_are_of_all_prompts_but_soundness_of_what_was_made() -> None:
    trials = [
        trial("chair", "chair", "table", 1),
        trial("chair", "table", "table", 2),
        trial("table", "table", "table", 3),
        replace(trial("lamp", "", "", 0, None), watertight=False),
    ]
    figures = prompt_figures(trials, worst=2)
    assert figures == {
        "prompts": 4,
        "empty_share": 0.25,
        "right_class_share": 0.5,
        "right_class_share_catalog": 0.25,
        "watertight_share": pytest.approx(2 / 3),
        "single_component_share": pytest.approx(1 / 3),
        "worst_prompts": {"lamp": 0.0, "chair": 0.5},
    }


def test_only_a_field_without_a_surface_counts_as_an_empty_object() -> None:
    class Failing:
        def decode_many(self, prompts: list[str], _: object, **__: object) -> list[str]:
            return prompts

        def build(self, prompt: str, _: MeshOptions) -> str:
            if prompt == "empty":
                raise EmptyFieldError(prompt)
            if prompt == "NaN":
                raise GeometryError(prompt)
            return prompt

    def made(*prompts: str) -> list[object]:
        return [*made_of(Failing(), [*prompts], [SamplingConfig()], MeshOptions())]  # type: ignore[arg-type]

    assert made("a chair", "empty", "a table") == ["a chair", None, "a table"]
    # Weights in a broken format must not pass for shy prompts.
    with pytest.raises(GeometryError, match="NaN"):
        made("a chair", "NaN")


def test_aspect_errors_are_relative_to_what_was_asked_for() -> None:
    assert aspect_errors(np.array([2.0, 4.0, 1.0], np.float32), (1, 2, 1)) == pytest.approx([0.0, 0.5])
    # The unit of the box does not matter.
    assert aspect_errors(np.array([2.0, 3.0, 1.0], np.float32), (10, 20, 5)) == pytest.approx([0.25, 0.0])


def write_catalog(folder: Path, objects: list[TrainingObject], tests: int) -> Path:
    """Objects in the catalogue's format; the first `tests` of them are unseen ones."""
    folder.mkdir()
    counts = [np.cumsum([0, *(len(a) for a in arrays)]) for arrays in
              ([o.vertices for o in objects], [o.faces for o in objects])]  # fmt: skip
    np.savez(
        folder / "objects.npz",
        vertex_offset=counts[0],
        face_offset=counts[1],
        vertices=np.concatenate([((o.vertices + 1) / 2 * 65535).round().astype(np.uint16) for o in objects]),
        faces=np.concatenate([o.faces.astype(np.uint16) for o in objects]),
        face_color=np.concatenate([o.face_colors for o in objects]),
        face_part=np.concatenate([o.face_parts for o in objects]),
    )
    lines = [
        {
            "id": f"made/{o.id}-{i}",
            "class": o.class_name,
            "subclass": o.subclass,
            "split": "test" if i < tests else "train",
            "captions": o.captions,
            "parts": [{"name": name} for name in o.part_names],
            "color_source": "material",
        }
        for i, o in enumerate(objects)
    ]
    (folder / "catalog.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_command_measures_the_bundled_model(tmp_path: Path, objects: list[TrainingObject]) -> None:
    data = write_catalog(tmp_path / "data", [objects[0], *objects[:5]], tests=1)
    read = list(load_catalog(data))
    assert [o.split for o in read] == ["test", *["train"] * 5]
    np.testing.assert_allclose(read[2].vertices, objects[1].vertices, atol=2e-5)
    out, sheet = tmp_path / "figures.json", tmp_path / "sheet.png"
    arguments = ["evaluate", "--data", data, "-o", out, "--sheet", sheet, "--classes", 2, "--seeds", 1, "--seen", 1,
                 "--procedural", 4]  # fmt: skip
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert figures["prompts"] == 2
    # The unseen object is the first of the training objects as well.
    assert figures["real_right_class_share"] == figures["real_right_class_share_catalog"] == 1.0
    assert figures["watertight_share"] == 1.0
    assert figures["box_prompts"] == 10
    assert figures["box_error_mean"] < 1e-3, "meshes are fitted to the box"
    assert figures["box_error_unfitted_mean"] > figures["box_error_mean"]
    for part in ("tokenizer_unseen", "tokenizer_seen"):
        assert figures[part]["objects"] == 1
        assert 0.5 < figures[part]["volume_iou_mean"] <= 1
        assert 0 < figures[part]["surface_iou_mean"] <= figures[part]["volume_iou_mean"]
    assert 0 < figures["codes_used_share"] < 1
    assert figures["machine"]["cores"] >= 1
    assert sheet.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"data", "figures.json", "sheet.png"}


def test_where_figures_cannot_go_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["evaluate", "--data", str(tmp_path), "-o", str(tmp_path / "no" / "x.json")])
    assert isinstance(result.exception, InputError)
    assert "does not exist" in str(result.exception)


def test_a_catalogue_without_unseen_objects_gives_the_other_figures(
    tmp_path: Path, objects: list[TrainingObject]
) -> None:
    data, out = write_catalog(tmp_path / "data", objects[:2], tests=0), tmp_path / "figures.json"
    arguments = ["evaluate", "--data", data, "-o", out, "--classes", 1, "--seeds", 1, "--seen", 1, "--procedural", 2]
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert {"right_class_share", "box_error_mean", "tokenizer_seen", "codes_used_share"} <= figures.keys()
    assert not {"real_right_class_share", "tokenizer_unseen"} & figures.keys()


def test_a_sheet_is_a_png(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["evaluate", "--data", str(tmp_path), "--sheet", str(tmp_path / "sheet.jpg")])
    assert isinstance(result.exception, InputError)
    assert "the ending must be .png" in str(result.exception)


def test_a_catalogue_of_unseen_objects_alone_is_refused_at_once(tmp_path: Path, objects: list[TrainingObject]) -> None:
    data = write_catalog(tmp_path / "data", objects[:2], tests=2)
    result = CliRunner().invoke(cli, ["evaluate", "--data", str(data)])
    assert isinstance(result.exception, InputError)
    assert "no objects of the split train" in str(result.exception)
