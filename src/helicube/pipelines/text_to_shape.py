"""Prompts in, clean coloured meshes out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from helicube.engine.build import make_engine, prepare
from helicube.engine.engine import Engine
from helicube.engine.metrics import slots_that_fit
from helicube.engine.options import EngineOptions
from helicube.engine.request import Request
from helicube.engine.sampling import SamplingConfig
from helicube.geometry.mesh import Mesh
from helicube.models.cube.lattice_code import Shape
from helicube.models.cube.text import check_prompt
from helicube.pipelines.box import box_notes, parse_box
from helicube.pipelines.meshing import MeshOptions, build_mesh, with_sizes
from helicube.pipelines.shape_model import ShapeModel, load_model
from helicube.pipelines.soundness import USUAL_CANDIDATES, candidate_seed, check_candidates, solid_share
from helicube.pipelines.usual_sampling import sampling_of

__all__ = ["Decoded", "Generated", "StageTimes", "TextToShape", "Worded", "load"]

Progress = Callable[[int, int], None]
# Share of an object's volume in one piece from which no other candidate is looked at: what is less, clean-up removes.
SOUND = 0.9995
FIELDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Seconds of each stage; those of a batch are shared by its objects."""

    text_s: float
    tokens_s: float
    # Of choosing among candidates.
    choice_s: float
    surface_s: float
    clean_up_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One object as ids, and how they came about."""

    prompt: str
    seed: int
    # (n,) ids, for `helicube detokenize`.
    ids: NDArray[np.int64]
    # (3,) proportions asked for, longest 1.
    sizes: NDArray[np.float32] | None
    # Remarks, such as words that the text encoder did not know.
    notes: tuple[str, ...]
    # Seconds of the batch.
    text_s: float
    tokens_s: float
    # Seconds per token of the batch, objects in it side by side and in all, and bytes per second that its steps read.
    tpot_s: float
    batch: int
    num_requests: int
    read_bytes_per_s: float
    # Candidates that this one was chosen among, and the seconds that choosing took.
    best_of: int = 1
    choice_s: float = 0.0

    @property
    def own_tokens_s(self) -> float:
        """This object's share of the seconds of the batch, with that of its other candidates."""
        return self.tokens_s * self.best_of / self.num_requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """A prompt as it was typed, as the model is asked, and what to tell of the difference."""

    prompt: str
    asked: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One object with its mesh."""

    mesh: Mesh
    decoded: Decoded
    times: StageTimes


class TextToShape:
    """Generates meshes with one model.

    Args:
        model: see `load`; its decoder's matrices are converted in place.
        options: speed features.
    """

    def __init__(self, model: ShapeModel, options: EngineOptions | None = None) -> None:
        self.model, self.options = model, options or EngineOptions()
        self.resolved = prepare(model.decoder, self.options)
        # By whether there are rows for guidance.
        self.engines: dict[bool, Engine] = {}
        # A candidate is judged before it is built: the last few fields are kept (2 MB each with the bundled model).
        self._fields = lru_cache(maxsize=FIELDS)(self._decoded_field)

    def engine(self, num_slots: int, guided: bool) -> Engine:
        """An engine with at least that many slots; one is kept, the largest that was asked for."""
        found = self.engines.get(guided)
        if found is None or found.runner.num_slots < num_slots:
            # Before the larger one is made: the two might not fit into memory together.
            del found
            self.engines.pop(guided, None)
            m = self.model
            self.engines[guided] = make_engine(
                m.decoder, m.cache_spec, m.plan, num_slots=num_slots, guided=guided, options=self.options
            )
        return self.engines[guided]

    def slots_for(self, num_objects: int, guided: bool) -> int:
        """Objects that are decoded side by side."""
        return min(
            num_objects, slots_that_fit(self.model.cache_spec, 1 + int(guided), self.model.decoder.dtype.itemsize)
        )

    def generate(
        self,
        prompt: str,
        *,
        seed: int = 0,
        guidance: float | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        box: Sequence[float] | None = None,
        best_of: int = USUAL_CANDIDATES,
        options: MeshOptions | None = None,
    ) -> Mesh:
        """The mesh of one prompt; same arguments, same mesh.

        Args:
            guidance, temperature, top_p: see `engine.sampling.SamplingConfig`; None is what suits the model.
            box: x, y, z sizes, in any unit; the mesh has exactly these proportions.
            best_of: see `decode_many`.

        Raises:
            PromptError: the prompt is empty, too long, or holds no word that the model knows.
            EmptyFieldError: the decoded field has no surface.
            GeometryError: the decoded field is not finite, or its surface cannot be made a mesh.
        """
        sampling = sampling_of(self.model.sampling, guidance, temperature, top_p, seed)
        return self.generate_many([prompt], [sampling], box=box, best_of=best_of, options=options)[0].mesh

    def generate_many(
        self,
        prompts: Sequence[str],
        sampling: Sequence[SamplingConfig],
        *,
        box: Sequence[float] | None = None,
        best_of: int = USUAL_CANDIDATES,
        options: MeshOptions | None = None,
        on_step: Progress | None = None,
    ) -> list[Generated]:
        """All objects: `decode_many`, then `build` one by one.

        Raises:
            EmptyFieldError: one of the fields has no surface; the two steps called apart keep the others.
        """
        decoded = self.decode_many(prompts, sampling, box=box, best_of=best_of, on_step=on_step)
        return [self.build(one, options) for one in decoded]

    def decode_many(
        self,
        prompts: Sequence[str],
        sampling: Sequence[SamplingConfig],
        *,
        box: Sequence[float] | None = None,
        best_of: int = USUAL_CANDIDATES,
        on_step: Progress | None = None,
    ) -> list[Decoded]:
        """Decode the ids of all requests side by side.

        Args:
            prompts, sampling: one of each per object.
            best_of: candidates drawn for each object, side by side; the one that hangs together best is kept, the first
                with the request's own seed unless another is sounder. Greedy ones are all the same: one is drawn then.
            on_step: called with (tokens done, tokens in all), of all candidates together.

        Raises:
            PromptError: a prompt is empty, too long, or holds no word that the model knows.
        """
        check_candidates(best_of)
        # Once for all candidates of an object: they are to be of one kind.
        worded = [self.worded(prompt, one.seed) for prompt, one in zip(prompts, sampling, strict=True)]
        if best_of == 1 or all(one.temperature == 0 for one in sampling):
            return self._decode(worded, sampling, box, on_step)
        drawn = [replace(one, seed=candidate_seed(one.seed, k)) for one in sampling for k in range(best_of)]
        decoded = self._decode([one for one in worded for _ in range(best_of)], drawn, box, on_step)
        return [
            self._chosen(decoded[k * best_of : (k + 1) * best_of], config.seed) for k, config in enumerate(sampling)
        ]

    def worded(self, prompt: str, seed: int) -> Worded:
        """What the model is asked for the prompt of an object with this seed.

        Raises:
            PromptError: it is no prompt (see `check_prompt`).
        """
        prompt = check_prompt(prompt)
        asked, notes = self.model.closer(prompt, seed)
        return Worded(prompt=prompt, asked=asked, notes=notes)

    def _chosen(self, candidates: Sequence[Decoded], seed: int) -> Decoded:
        """The best of an object's candidates, under the seed that was asked for."""
        started = time.perf_counter()
        first = candidates[0]
        best = candidates[self.soundest([one.ids for one in candidates], first.sizes)]
        return replace(best, seed=seed, best_of=len(candidates), choice_s=time.perf_counter() - started)

    def soundest(self, candidates: Sequence[NDArray[np.int64]], sizes: NDArray[np.float32] | None) -> int:
        """Which of an object's candidates, rows of ids, hangs together best; the earliest of equals."""
        best, best_share = 0, -1.0
        for k, ids in enumerate(candidates):
            share = solid_share(self.field(ids, sizes))
            if share > best_share:
                best, best_share = k, share
            if share >= SOUND:
                break
        return best

    def _decode(
        self,
        worded: Sequence[Worded],
        sampling: Sequence[SamplingConfig],
        box: Sequence[float] | None,
        on_step: Progress | None,
    ) -> list[Decoded]:
        started = time.perf_counter()
        sizes = parse_box(box)
        asked = [one.asked for one in worded]
        conditioned = self.model.condition(asked, None if sizes is None else np.tile(sizes, (len(asked), 1)))
        text_s = time.perf_counter() - started
        forced = torch.from_numpy(self.model.forced(sizes))
        requests = [
            Request(prompt=prompt, num_tokens=self.model.plan.num_steps, sampling=config, forced=forced)
            for prompt, config in zip(conditioned.prompts, sampling, strict=True)
        ]
        guided = any(config.guidance_scale > 0 for config in sampling)
        num_slots = self.slots_for(len(requests), guided)
        batch = self.engine(num_slots, guided).generate(requests, on_step)
        remarks = box_notes(self.model, sizes)
        common: dict[str, Any] = {
            "sizes": sizes,
            "text_s": text_s,
            "tokens_s": batch.prefill_s + batch.decode_s,
            "tpot_s": batch.tpot_s,
            "batch": num_slots,
            "num_requests": len(requests),
            "read_bytes_per_s": self._step_bytes(num_slots, guided) / batch.tpot_s,
        }
        return [
            Decoded(
                prompt=one.prompt, seed=config.seed, ids=result.ids.numpy(), notes=one.notes + notes + remarks, **common
            )
            for one, config, result, notes in zip(worded, sampling, batch.results, conditioned.notes, strict=True)
        ]

    def build(self, decoded: Decoded, options: MeshOptions | None = None) -> Generated:
        """The mesh of an object's ids.

        Raises:
            EmptyFieldError: the field has no surface.
            GeometryError: the field is not finite, or its surface cannot be made a mesh.
        """
        started = time.perf_counter()
        mesh, surface_s = build_mesh(self.shape(decoded), options or MeshOptions(), fit=decoded.sizes)
        times = StageTimes(
            text_s=decoded.text_s,
            tokens_s=decoded.tokens_s,
            choice_s=decoded.choice_s,
            surface_s=surface_s,
            clean_up_s=time.perf_counter() - started - surface_s,
        )
        return Generated(mesh=mesh, decoded=decoded, times=times)

    def shape(self, decoded: Decoded) -> Shape:
        """The field of an object's ids, in the box that was asked for."""
        return self.field(decoded.ids, decoded.sizes)

    def field(self, ids: NDArray[np.int64], sizes: NDArray[np.float32] | None) -> Shape:
        """The field of a row of ids, in a box (3,) if one was asked for."""
        return with_sizes(self._fields(np.ascontiguousarray(ids, dtype=np.int64).tobytes()), sizes)

    def _decoded_field(self, ids: bytes) -> Shape:
        return self.model.decode(np.frombuffer(ids, dtype=np.int64).copy())

    def _step_bytes(self, num_slots: int, guided: bool) -> int:
        """Bytes that a step has to read, with the cache half full."""
        return sum(self.engine(num_slots, guided).step_bytes(num_slots, self.model.plan.num_steps // 2))


def load(
    weights: str | Path | None = None,
    *,
    version: str | None = None,
    device: str = "cpu",
    options: EngineOptions | None = None,
) -> TextToShape:
    """The bundled model, or another from a folder; see `pipelines.shape_model.load_model`.

    Args:
        options: speed features and the format of the weights; the default is the fastest that the device has.
    """
    options = options or EngineOptions()
    model = load_model(weights, version=version, device=device, form=options.weights, kernels=options.kernels)
    return TextToShape(model, options)
