"""Building a model, or one rank's part of it, from published tensors: only what the part holds is ever read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helicube.errors import CheckpointError
from helicube.models.llm import LanguageModel
from helicube.models.llm_config import LlmConfig
from helicube.models.loading_sources import TensorSource
from helicube.nn.part import Cut, ModelPart

__all__ = ["load_part", "published_shapes"]

Shape = tuple[int, ...]
# Parameters that stay in float32: a rounded bias would change which experts are chosen.
KEPT_FLOAT32 = "e_score_correction_bias"


def load_part(
    config: LlmConfig,
    source: TensorSource,
    part: ModelPart | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> LanguageModel:
    """Build a model, or a part of one, tensor by tensor.

    Raises:
        CheckpointError: names tensors that are missing, unknown in a layer, or wrongly shaped.
    """
    last = f"model.layers.{config.num_layers - 1}.input_layernorm.weight"
    if last not in source.names():
        # Before a shell of as many layers as a damaged file may ask for.
        raise CheckpointError(f"{config.name}: the weights lack {last}; are they of this configuration?")
    shapes = published_shapes(config)
    check_tensors(config, source, shapes)
    model = _shell(config, part)
    tensors = {}
    for name, (cuts, parameter) in _plan(model).items():
        pieces = [_read(source, cut, shapes[cut.name]) for cut in cuts]
        whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        kept = torch.float32 if name.endswith(KEPT_FLOAT32) else dtype
        # Always a copy: a view would keep all of a tensor alive of which this part holds a slice.
        tensors[name] = torch.empty(parameter.shape, dtype=kept, device=device).copy_(whole.reshape(parameter.shape))
    model.load_state_dict(tensors, assign=True)
    return model


def published_shapes(config: LlmConfig) -> dict[str, Shape]:
    """Name and shape of every tensor of the whole model, as published."""
    model = _shell(config)
    shapes: dict[str, Shape] = {}
    for cuts, parameter in _plan(model).values():
        for cut in cuts:
            rows = (
                sum(map(len, cut.rows)) if cut.rows is not None else parameter.shape[-2 if parameter.dim() > 1 else 0]
            )
            before = shapes[cut.name][0] if cut.name in shapes else 0
            shapes[cut.name] = (before + rows, *parameter.shape[max(1, parameter.dim() - 1) :])
    return shapes


class _NoInit(TorchFunctionMode):
    """Leaves new parameters alone: initialisers take seconds to import on the meta device, and warn of empty parts."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _shell(config: LlmConfig, part: ModelPart | None = None) -> LanguageModel:
    """A model without values."""
    with torch.device("meta"), _NoInit():
        # Frozen before the values come: tensors made in inference mode cannot be asked for gradients.
        return LanguageModel(config, part).eval().requires_grad_(False)


def check_tensors(config: LlmConfig, source: TensorSource, shapes: Mapping[str, Shape]) -> None:
    """Compare what a source holds with what the configuration asks for.

    Raises:
        CheckpointError: see `load_part`.
    """
    stored = source.names()
    missing = sorted(shapes.keys() - stored)
    if missing:
        raise CheckpointError(f"{config.name}: the weights lack {_some(missing)}; are they of this configuration?")
    wrong = [f"{n} {found} instead of {s}" for n, s in shapes.items() if (found := source.shape(n)) != s]
    if wrong:
        raise CheckpointError(f"{config.name}: wrongly shaped {_some(wrong)}; are the weights of this configuration?")
    # Layers beyond the last one (prediction of several tokens) and stored tables of angles are not needed.
    unknown = sorted(n for n in stored - shapes.keys() if _in_layers(n, config.num_layers))
    if unknown:
        raise CheckpointError(f"{config.name}: unknown tensors {_some(unknown)}; the model is not what its config says")


def _in_layers(name: str, num_layers: int) -> bool:
    found = re.match(r"model\.layers\.(\d+)\.", name)
    return found is not None and int(found[1]) < num_layers and not name.endswith("rotary_emb.inv_freq")


def _plan(model: nn.Module) -> dict[str, tuple[tuple[Cut, ...], Tensor]]:
    """For each parameter, the published regions that it is made of; without a word from its module, one of its name."""
    plan: dict[str, tuple[tuple[Cut, ...], Tensor]] = {
        name: ((Cut(name=name),), parameter) for name, parameter in model.state_dict().items()
    }
    for prefix, module in model.named_modules():
        cuts: Callable[[], dict[str, tuple[Cut, ...]]] | None = getattr(module, "cuts", None)
        if cuts is None:
            continue
        dot = f"{prefix}." if prefix else ""
        for name, found in cuts().items():
            full = tuple(Cut(name=dot + c.name, rows=c.rows, columns=c.columns, zero=c.zero) for c in found)
            plan[dot + name] = (full, plan[dot + name][1])
    return plan


def _read(source: TensorSource, cut: Cut, shape: Shape) -> Tensor:
    if cut.zero:
        return torch.zeros(shape)
    rows = cut.rows if cut.rows is not None else (range(shape[0]),)
    columns = cut.columns if cut.columns is not None else range(shape[1]) if len(shape) > 1 else None
    width = () if columns is None else (len(columns),)
    if not all(width) or not any(map(len, rows)):
        # A rank beyond the last head or column holds nothing.
        return torch.zeros(sum(map(len, rows)), *width)
    pieces = [source.read(cut.name, r, columns) for r in _joined(rows)]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _joined(rows: Iterable[range]) -> list[range]:
    """The same rows in as few ranges as possible."""
    found: list[range] = []
    for r in rows:
        if found and found[-1].stop == r.start:
            found[-1] = range(found[-1].start, r.stop)
        elif len(r):
            found.append(r)
    return found


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
