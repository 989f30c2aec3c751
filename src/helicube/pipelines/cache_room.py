"""How large a cache is made, and whether the machine has the memory for it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from helicube.errors import InputError
from helicube.models.llm_config import LlmConfig
from helicube.nn.gqa import GqaConfig
from helicube.parallel.round_robin import RoundRobin
from helicube.specs.layout import HelixLayout

__all__ = ["cache_slots", "check_room", "slot_bytes"]


def cache_slots(placement: RoundRobin, lengths: Sequence[int]) -> int:
    """Tokens that each KVP rank must be able to hold for sequences of these lengths side by side."""
    return sum(placement.most_held(n) for n in lengths)


def slot_bytes(config: LlmConfig, layout: HelixLayout, dtype: torch.dtype) -> int:
    """Bytes of one token on one rank, all layers."""
    a = config.attention
    values = 2 * a.num_kv_heads // layout.tpa * a.head_dim if isinstance(a, GqaConfig) else a.kv_rank + a.rope_size
    return config.num_layers * values * dtype.itemsize


def check_room(num_slots: int, slot: int, device: torch.device | str, ranks_here: int) -> None:
    """Refuse a cache that no machine of this size can hold, before it is asked for.

    Args:
        slot: bytes of a token, see `slot_bytes`.
        ranks_here: that share the device's memory.

    Raises:
        InputError: it exceeds the whole memory.
    """
    need, memory = num_slots * slot * ranks_here, _memory_bytes(torch.device(device))
    if need > memory:
        raise InputError(
            f"a cache of {num_slots:,} tokens a rank takes {need / 1e9:,.1f} GB here, and the device has "
            f"{memory / 1e9:,.1f} GB; ask for fewer tokens, a shorter prompt, or use more machines"
        )


def _memory_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
