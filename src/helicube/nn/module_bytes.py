"""How much memory the weights of modules take."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from torch import nn

from helicube.nn.linear import QuantizedLinear

__all__ = ["module_bytes"]


def module_bytes(modules: Iterable[nn.Module]) -> int:
    """Bytes of all parameters and buffers, each storage counted once."""
    unique: dict[int, int] = {}
    for module in chain.from_iterable(m.modules() for m in modules):
        if isinstance(module, QuantizedLinear):
            unique[id(module)] = module.num_bytes
            continue
        for t in chain(module.parameters(recurse=False), module.buffers(recurse=False)):
            unique[t.data_ptr()] = t.numel() * t.element_size()
    return sum(unique.values())
