"""Prompts to mesh files, with progress and a summary: the work behind `helicube generate`."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from helicube.engine.options import EngineOptions, Kernels
from helicube.engine.sampling import SamplingConfig
from helicube.errors import (
    EmptyFieldError,
    GeometryError,
    HelicubeError,
    InputError,
    MeshFileError,
    MissingExtraError,
)
from helicube.geometry.export import check_target
from helicube.geometry.mesh import Mesh
from helicube.geometry.metrics import num_components
from helicube.models.cube.text import check_prompt
from helicube.pipelines.box import parse_box
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.soundness import USUAL_CANDIDATES, check_candidates
from helicube.pipelines.text_to_shape import Decoded, Generated, TextToShape, load
from helicube.pipelines.usual_sampling import sampling_of, usual_sampling

__all__ = ["GenerateOptions", "generate_files"]

# Candidates decoded side by side at most, before their meshes are made.
BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """What the command line was told; see `helicube generate --help`."""

    prompts: tuple[str, ...]
    output: Path | None = None
    file_format: str | None = None
    seed: int = 0
    variants: int = 1
    # Candidates of each object, of which the soundest is kept.
    best_of: int = USUAL_CANDIDATES
    # None: what suits the model.
    guidance: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    box: tuple[float, float, float] | None = None
    cells: int = 128
    max_triangles: int = 20_000
    size_m: float | None = None
    pivot: Literal["base", "center"] = "base"
    up: Literal["y", "z"] = "y"
    weights: str | None = None
    version: str | None = None
    preview: bool = False
    device: str = "cpu"
    # Speed features; see `engine.options.EngineOptions`.
    graph: bool = True
    cache: bool = True
    weight_format: str = "auto"
    kernels: Kernels = "auto"

    def __post_init__(self) -> None:
        if not 1 <= self.variants <= 1000:
            raise InputError(f"variants={self.variants} is out of range; choose 1 to 1000")
        check_candidates(self.best_of)

    @property
    def engine(self) -> EngineOptions:
        return EngineOptions(graph=self.graph, cache=self.cache, weights=self.weight_format, kernels=self.kernels)

    @property
    def mesh_format(self) -> str:
        return (self.file_format or (self.output.suffix if self.output else "") or "glb").lower().lstrip(".")

    @property
    def mesh(self) -> MeshOptions:
        return MeshOptions(cells=self.cells, max_triangles=self.max_triangles, size_m=self.size_m, pivot=self.pivot)

    def requests(self, usual: SamplingConfig) -> list[tuple[str, SamplingConfig]]:
        """A prompt and its sampling for each object, given what is usual for the model."""
        usual = usual_sampling(usual, self.variants)
        return [
            (prompt, sampling_of(usual, self.guidance, self.temperature, self.top_p, self.seed + variant))
            for prompt in self.prompts
            for variant in range(self.variants)
        ]


def generate_files(options: GenerateOptions, console: Console | None = None) -> list[Path]:
    """Generate all objects and write each as soon as it is done; the paths of the meshes.

    Raises:
        InputError: an option is out of range, or one file is named for several objects.
        MeshFileError: the meshes cannot be written where they should go.
        MissingExtraError: pictures are asked for, and the renderer is not installed.
        EmptyFieldError, GeometryError: objects could not be made; all others are written.
        HelicubeError: pictures could not be made; all meshes are written.
    """
    console = console or Console(stderr=True)
    # Mistakes are found before anything is loaded.
    for prompt in options.prompts:
        check_prompt(prompt)
    parse_box(options.box)
    requests, engine, _ = options.requests(SamplingConfig()), options.engine, options.mesh
    paths = output_paths(options, requests)
    _check_files(options, paths)
    pipeline = load(options.weights, version=options.version, device=options.device, options=engine)
    for remark in pipeline.model.remarks:
        _say(console, f"note: {remark}")
    if options.up == "z" and options.mesh_format == "glb":
        _say(console, "note: a GLB is always +Y up, and programs turn it; --up z is for OBJ, STL and PLY")
    requests = options.requests(pipeline.model.sampling)
    failed: dict[Path, HelicubeError] = {}
    size = BATCH // options.best_of
    for start in range(0, len(requests), size):
        part = requests[start : start + size]
        for path, decoded in zip(paths[start:], _decode(pipeline, part, options, console), strict=False):
            lost = _make(pipeline, decoded, path, options, console)
            for one, error in lost.items():
                if len(paths) > 1:
                    _say(console, f"{one}  not made: {error}")
            failed |= lost
    _tell(failed, len(paths), drawn=any(sampling.temperature > 0 for _, sampling in requests))
    return paths


def _check_files(options: GenerateOptions, paths: list[Path]) -> None:
    """Find out whether all files can be written, and make the folder that was named."""
    # What is missing for the pictures, too, would otherwise be told after the work.
    if options.preview and importlib.util.find_spec("embreex") is None:
        raise MissingExtraError("embreex", "render")
    make_folder(options.output, paths)
    for path in paths:
        check_target(path, options.file_format)
        if options.preview and path == path.with_suffix(".png"):
            raise InputError(f"--preview would write its picture over the mesh {path}; name the mesh otherwise")


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _make(
    pipeline: TextToShape, decoded: Decoded, path: Path, options: GenerateOptions, console: Console
) -> dict[Path, HelicubeError]:
    """Write an object, and its picture if asked for; the files that came to nothing, and why."""
    # Before the object: a word that is not known may be why it is empty.
    for note in decoded.notes:
        _say(console, f"note: {note}")
    try:
        generated = pipeline.build(decoded, options.mesh)
        started = time.perf_counter()
        generated.mesh.export(path, file_format=options.file_format, name=decoded.prompt[:60], up=options.up)
    except GeometryError as error:
        return {path: error}
    lost: dict[Path, HelicubeError] = {}
    if options.preview:
        try:
            _show(generated.mesh, path.with_suffix(".png"))
        except HelicubeError as error:
            lost[path.with_suffix(".png")] = error
    written_s = time.perf_counter() - started
    _say(console, f"{path}  {summary(generated, written_s)}")
    if (pieces := num_components(generated.mesh)) > 1:
        _say(console, f"note: {path.name} is in {pieces} pieces; another --seed, or more --best-of, may hold together")
    return lost


def _show(mesh: Mesh, path: Path) -> None:
    from helicube.geometry.pictures import picture
    from helicube.geometry.render import RenderOptions

    picture(mesh, path, RenderOptions(), frames=1)


def _tell(failed: dict[Path, HelicubeError], count: int, *, drawn: bool) -> None:
    """Raise if files came to nothing: one object's error says all there is to say, of several there is a summary.

    Args:
        count: objects in all.
        drawn: ids are drawn, so that another seed gives another object.
    """
    if not failed:
        return
    if count == 1:
        raise next(iter(failed.values()))
    named = ", ".join(str(path) for path in [*failed][:5]) + (", …" if len(failed) > 5 else "")
    if all(isinstance(error, EmptyFieldError) for error in failed.values()):
        remedy = "another --seed" if drawn else "another prompt, or --temperature 0.5 with another --seed"
        raise EmptyFieldError(
            f"{len(failed)} of {count} objects came out empty ({named}); the others are written; try {remedy}"
        )
    kind = GeometryError if any(isinstance(error, GeometryError) for error in failed.values()) else HelicubeError
    raise kind(f"{len(failed)} files were not made ({named}); the others are written; see each reason above")


def _decode(
    pipeline: TextToShape,
    requests: list[tuple[str, SamplingConfig]],
    options: GenerateOptions,
    console: Console,
) -> list[Decoded]:
    prompts, sampling = zip(*requests, strict=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    started = time.perf_counter()
    # Into a file, an empty line would be all that is left of it.
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar: TaskID = progress.add_task("tokens", total=None, rate="")

        def show(done: int, total: int) -> None:
            if done // len(requests) % 8 == 0 or done == total:
                rate = done / (time.perf_counter() - started)
                progress.update(bar, completed=done, total=total, rate=f"{rate:.0f} tokens/s")

        return pipeline.decode_many(prompts, sampling, box=options.box, best_of=options.best_of, on_step=show)


def summary(generated: Generated, written_s: float) -> str:
    """One line on the size of a mesh and where its time went."""
    t, one = generated.times, generated.decoded
    total_s = t.text_s + one.own_tokens_s + t.choice_s + t.surface_s + t.clean_up_s + written_s
    speed = (
        f"TPOT {one.tpot_s * 1e3:.2f} ms, {one.batch / one.tpot_s:.0f} tokens/s, {one.read_bytes_per_s / 1e9:.1f} GB/s"
    )
    choice = f"choice among {one.best_of} candidates {t.choice_s * 1e3:.0f} ms, " if one.best_of > 1 else ""
    return (
        f"{generated.mesh.num_faces} triangles, seed {one.seed}, {total_s:.2f} s: "
        f"text {t.text_s * 1e3:.0f} ms, tokens {one.own_tokens_s * 1e3:.0f} ms ({speed}), {choice}"
        f"surface {t.surface_s * 1e3:.0f} ms, clean-up {t.clean_up_s * 1e3:.0f} ms, export {written_s * 1e3:.0f} ms"
    )


def make_folder(output: Path | None, paths: list[Path]) -> None:
    """The folder that was named, unless it was a file."""
    if output is None or output in paths:
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MeshFileError(f"cannot make the folder {output}: {error.strerror}; name another one") from None


def output_paths(options: GenerateOptions, requests: Sequence[tuple[str, SamplingConfig]]) -> list[Path]:
    """Where each object goes: the file named, or files named after prompts in the folder named (or the current one)."""
    suffix = f".{options.file_format or 'glb'}"
    output = options.output
    if output is not None and output.suffix:
        if len(requests) == 1:
            return [output]
        raise InputError(
            f"--output {output} names one file for {len(requests)} objects; name a folder, without an ending"
        )
    folder = output or Path()
    taken: set[str] = set()
    paths = []
    for prompt, sampling in requests:
        base = name = re.sub(r"[^a-z0-9]+", "-", prompt.lower()).strip("-")[:50] or "object"
        if options.variants > 1:
            base = name = f"{base}-{sampling.seed}"
        # A numbered name may be another prompt's own.
        count = 1
        while name in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name)
        paths.append(folder / f"{name}{suffix}")
    return paths
