"""A stored configuration, as JSON gives it, to the dataclass of a model's sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from helicube.errors import CheckpointError

__all__ = ["read_config"]

T = TypeVar("T")

# A field's type to the rule for its values, and the words for it.
Rule = tuple[Callable[[Any], bool], str]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


RULES: Mapping[object, Rule] = {
    int: (lambda v: _whole(v) and v >= 0, "a whole number, 0 or more"),
    float: (lambda v: (_whole(v) or isinstance(v, float)) and math.isfinite(v) and v > 0, "a number above 0"),
    bool: (lambda v: isinstance(v, bool), "true or false"),
    tuple[int, ...]: (
        lambda v: isinstance(v, list | tuple) and all(_whole(i) and i >= 0 for i in v),
        "a list of whole numbers",
    ),
}
# Counts that mean something at 0; every other has to be above.
MAY_BE_ZERO = {"n_single_layer", "num_decoder_latents", "num_joints", "num_positions", "point_feats"}
# Widths, and the heads that share them out evenly.
SHARED_OUT = (("n_embd", "n_head"), ("width", "num_heads"))


def read_config(kind: type[T], raw: object, where: str, *, ignored: frozenset[str] = frozenset()) -> T:
    """The configuration that a file holds.

    Args:
        kind: a dataclass with fields of the types above.
        raw: what stands in the file.
        where: the file and the place in it, for messages.
        ignored: keys that change nothing in the model.

    Raises:
        CheckpointError: it is no mapping or has an unknown key, or a value is of the wrong type or no size that a model
            can have.
    """
    if not isinstance(raw, Mapping):
        raise CheckpointError(f"{where} is {_short(raw)}, not a table of settings; get the file again")
    types = get_type_hints(kind)
    if unknown := sorted(raw.keys() - types.keys() - ignored):
        raise CheckpointError(
            f"{where} has unknown settings {', '.join(unknown)}; known are {', '.join(sorted(types))}: "
            "upgrade helicube, or get the file again"
        )
    values = {name: raw[name] for name in types if name in raw}
    for name, value in values.items():
        holds, words = RULES[types[name]]
        if not holds(value) or (types[name] is int and value == 0 and name not in MAY_BE_ZERO):
            words = words if types[name] is not int or name in MAY_BE_ZERO else "a whole number above 0"
            raise CheckpointError(f"{where} has {name} = {_short(value)}; it must be {words}: get the file again")
    if any(level < 2 for level in values.get("levels", ())):
        raise CheckpointError(
            f"{where} has levels = {_short(values['levels'])}; each must be 2 or more: get the file again"
        )
    config = kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
    for width, heads in SHARED_OUT:
        if width in types and (a := getattr(config, width)) % (b := getattr(config, heads)):
            raise CheckpointError(f"{where} has {width} = {a}, which {heads} = {b} does not divide: get the file again")
    return config


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
