"""What text-to-shape needs of a model, and the two models that offer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from helicube.engine.request import IdPlan
from helicube.engine.runner import Conditioning
from helicube.engine.sampling import SamplingConfig
from helicube.errors import DeviceError
from helicube.kernels.cpu.library import load
from helicube.models.cube.checkpoint import CubeWeights, load_cube
from helicube.models.cube.decoder import CubeDecoder
from helicube.models.cube.default import MODEL_FILE, DefaultWeights, load_default
from helicube.models.cube.format_effects import format_note
from helicube.models.cube.kinds import KINDS, NO_KINDS, closer
from helicube.models.cube.lattice_code import Shape
from helicube.models.cube.quick_field import QuickField, point_field
from helicube.models.cube.text import TextEncoder
from helicube.models.cube.tokenizer import CubeTokenizer
from helicube.nn.cache import CacheSpec
from helicube.nn.digest import weights_digest
from helicube.nn.linear import module_format
from helicube.pipelines.model_folder import BUNDLED, find_folder

__all__ = ["CubeModel", "DefaultModel", "ShapeModel", "check_device", "fastest_dtype", "load_model", "quick_field"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioned:
    """Conditioning of each request, and what the text encoder noted."""

    prompts: tuple[Conditioning, ...]
    notes: tuple[tuple[str, ...], ...]


class ShapeModel(Protocol):
    """A decoder with the text encoder and the tokenizer around it."""

    name: str
    # What users should be told of these weights, and how ids are chosen unless they say otherwise.
    remarks: tuple[str, ...]
    sampling: SamplingConfig
    decoder: CubeDecoder
    plan: IdPlan
    cache_spec: CacheSpec

    def closer(self, prompt: str, seed: int) -> tuple[str, tuple[str, ...]]:
        """The prompt as this model is asked, and notes for the user where that is not as it was typed."""
        ...

    def condition(self, prompts: Sequence[str], boxes: NDArray[np.float32] | None) -> Conditioned:
        """Conditioning of each prompt; boxes: (B, 3) sizes, longest 1, zero where none is asked for."""
        ...

    def forced(self, box: NDArray[np.float32] | None) -> NDArray[np.int64]:
        """Ids that a request's box fixes, −1 elsewhere; (n,)."""
        ...

    def decode(self, ids: NDArray[np.int64]) -> Shape:
        """A row of ids to a field."""
        ...


class DefaultModel:
    """The model that ships in the package."""

    # Strong guidance leads it off what it has learnt, and greedy ids add up to empty objects (docs/log.md).
    sampling = SamplingConfig(guidance_scale=0.5, temperature=0.5, top_p=0.9)

    # Conditioning tokens of the empty prompt, once they were asked for.
    uncond: Tensor | None = None

    def __init__(
        self,
        weights: DefaultWeights,
        text: TextEncoder,
        name: str = "default",
        remarks: tuple[str, ...] = (),
        *,
        kinds: Mapping[str, tuple[str, ...]] = NO_KINDS,
    ) -> None:
        # Kinds of what collective nouns name; to a model that was trained on other objects, such nouns may say enough.
        self.kinds = kinds
        self.name, self.decoder, self.code, self.text = name, weights.decoder, weights.code, text
        self.num_text, self.remarks = weights.config.num_text, remarks
        self.plan = IdPlan(ranges=weights.code.ranges)
        self.cache_spec = self.decoder.cache_spec(self.num_text, self.plan.num_steps)

    def closer(self, prompt: str, seed: int) -> tuple[str, tuple[str, ...]]:
        worded, kind = closer(prompt, seed, self.kinds)
        return worded, () if kind is None else (f"{prompt!r} may be many things; with seed {seed} it is: {kind}",)

    def condition(self, prompts: Sequence[str], boxes: NDArray[np.float32] | None) -> Conditioned:
        states = self.text.encode([*prompts, ""]).padded(self.num_text)
        return _condition(self, states.states, boxes, states.notes[:-1])

    def forced(self, box: NDArray[np.float32] | None) -> NDArray[np.int64]:
        return self.code.forced(box)

    def decode(self, ids: NDArray[np.int64]) -> Shape:
        return self.code.decode(ids)

    def encoder_digest(self) -> str:
        """Of the weights that turn meshes into ids: with equal ones, ids mean the same."""
        return self.code.encoder_digest()

    @property
    def num_shape_ids(self) -> int:
        return self.code.num_shape_ids

    def decode_shape(self, ids: NDArray[np.int64]) -> Shape:
        return self.code.decode(self.code.without_colors(ids))


class CubeModel:
    """Published weights."""

    # Of the formats of published weights nothing was measured here.
    remarks: tuple[str, ...] = ()
    # As published.
    sampling = SamplingConfig(guidance_scale=3.0)
    uncond: Tensor | None = None

    def __init__(
        self, weights: CubeWeights, text: TextEncoder, name: str = "cube", *, quick: QuickField | None = None
    ) -> None:
        self.quick = quick
        self.name, self.decoder, self.tokenizer, self.text = name, weights.decoder, weights.tokenizer, text
        config = weights.decoder.config
        num_steps = weights.tokenizer.config.num_latents
        self.plan = IdPlan(ranges=((0, config.shape_model_vocab_size),) * num_steps)
        self.cache_spec = self.decoder.cache_spec(text.max_states, num_steps)

    def closer(self, prompt: str, seed: int) -> tuple[str, tuple[str, ...]]:  # noqa: ARG002 - its text encoder knows
        return prompt, ()

    def condition(self, prompts: Sequence[str], boxes: NDArray[np.float32] | None) -> Conditioned:
        states = self.text.encode([*prompts, ""]).padded(self.text.max_states)
        return _condition(self, states.states, boxes, states.notes[:-1])

    def forced(self, box: NDArray[np.float32] | None) -> NDArray[np.int64]:  # noqa: ARG002 - conditions, fixes nothing
        return np.full(self.plan.num_steps, -1, dtype=np.int64)

    @torch.inference_mode()
    def decode(self, ids: NDArray[np.int64]) -> Shape:
        latents = self.tokenizer.decode(torch.from_numpy(ids)[None].to(self.decoder.device))
        field = point_field(self.tokenizer.occupancy_decoder, latents, self.quick)
        # The published field is defined with the longest side at ±0.96, so its box is a cube.
        return Shape(sizes=np.ones(3, dtype=np.float32), field=field, colors=None, stretched=False)

    def encoder_digest(self) -> str:
        weights = self.tokenizer.state_dict()
        return weights_digest({name: t for name, t in weights.items() if name.startswith(("encoder.", "bottleneck."))})


def _condition(
    model: DefaultModel | CubeModel,
    states: Tensor,
    boxes: NDArray[np.float32] | None,
    notes: tuple[tuple[str, ...], ...],
) -> Conditioned:
    """States (B + 1, T, C), the empty prompt last, to conditioning tokens."""
    decoder = model.decoder
    with torch.inference_mode():
        states = states.to(decoder.device, decoder.dtype)
        box = None if boxes is None else torch.from_numpy(boxes).to(states)
        cond = decoder.condition(states[:-1], box)
        # The same tensor each time, by which the engine knows that it has its keys and values already.
        if model.uncond is None or model.uncond.dtype != decoder.dtype:
            model.uncond = decoder.condition(states[-1:])[0]
        uncond = model.uncond
    return Conditioned(prompts=tuple(Conditioning(cond=row, uncond=uncond) for row in cond), notes=notes)


def load_model(
    weights: str | Path | None = None,
    *,
    version: str | None = None,
    device: str = "cpu",
    form: str = "auto",
    kernels: str = "auto",
) -> DefaultModel | CubeModel:
    """The bundled model, a folder of one trained here, or a folder of published Cube weights.

    Args:
        weights: see `pipelines.model_folder.find_folder`.
        version: "v0.1" or "v0.5" for published weights without a `config.json`.
        form: format that the decoder's matrices will be held in; a published decoder is read as bfloat16 unless that
            is float32. `engine.build.prepare` converts them. A published tokenizer is read as `fastest_dtype`; with
            int8 or int4 and native kernels its field is computed in int8 (models/cube/quick_field.py).
        kernels: one of `engine.options.KERNELS`.

    Raises:
        CheckpointError: the folder holds no weights, or damaged ones.
        DeviceError: there is no such device.
    """
    check_device(device)
    folder, bundled = find_folder(weights), weights in {None, BUNDLED}
    if (folder / MODEL_FILE).is_file() or bundled:
        from helicube.models.cube.text_static import StaticTextEncoder, table_of

        text = StaticTextEncoder.load(table_of(folder))
        default = load_default(folder)
        default.decoder.to(device)
        note = format_note(folder, default.form if form == "auto" else form)
        name = BUNDLED if bundled else folder.name
        kinds = KINDS if bundled else NO_KINDS
        return DefaultModel(default, text, name, remarks=() if note is None else (note,), kinds=kinds)
    from helicube.models.cube.text_clip import ClipTextEncoder

    dtype = torch.float32 if form == "float32" else torch.bfloat16
    # Thousands of points at once: a matter of arithmetic, where the decoder's steps are one of memory.
    for_points = fastest_dtype(device)
    cube = load_cube(folder, version=version, dtype=dtype, tokenizer_dtype=for_points, device=device)
    tower = folder / "text_encoder"
    clip = ClipTextEncoder.load(tower) if tower.is_dir() else ClipTextEncoder.load()
    stored = module_format(cube.decoder.lm_head) if form == "auto" else form
    quick = quick_field(cube.tokenizer, stored, kernels)
    return CubeModel(cube, clip, name=folder.name, quick=quick)


def quick_field(tokenizer: CubeTokenizer, form: str, kernels: str) -> QuickField | None:
    """The field in int8 where the decoder's weights are rounded as far or further, and native kernels may be used."""
    wanted = form.startswith(("int8", "int4")) and kernels in {"auto", "native"}
    on_cpu = tokenizer.bottleneck.block.codebook.weight.device.type == "cpu"
    library = load() if wanted and on_cpu else None
    return None if library is None else QuickField(library, tokenizer.occupancy_decoder)


def fastest_dtype(device: str) -> torch.dtype:
    """Of large products: bfloat16, except on CPUs without instructions for it, which are several times slower in it."""
    info = Path("/proc/cpuinfo")
    if torch.device(device).type != "cpu":
        return torch.bfloat16
    flags = set(info.read_text(encoding="utf-8", errors="replace").split()) if info.is_file() else set()
    return torch.bfloat16 if flags & {"avx512_bf16", "amx_bf16", "bf16"} else torch.float32


def check_device(device: str) -> None:
    """Raise DeviceError unless PyTorch has such a device here."""
    if device.startswith("meta"):
        raise DeviceError(f"device {device!r} holds no numbers; choose cpu")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0][:120]
        raise DeviceError(f"device {device!r} cannot be used here ({reason}); choose cpu") from None
