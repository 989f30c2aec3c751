"""A whole decode step of a stack of pre-norm layers in one native call.

For a small model the host's overhead per operation is several times the work: some 200 operations of about 8 µs.

R rows, D width, H heads, K key-value heads, d head size, F hidden size of the FFN, V outputs of the head.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from helicube.kernels.cpu.attention import ROTARY, NewToken, attend_token, cache_record, channels, is_index
from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import RECORD, PackedMatrix
from helicube.kernels.cpu.products import Norm, gate_up, linear, linear_group, linear_range, rows_record
from helicube.kernels.sampling_state import SamplingState

__all__ = ["DecodeStack", "StackConfig", "StackLayer"]

# native/types.h, Cache, Step. A Layer is matrices, numbers and pointers in turn.
CACHE: Final = struct.Struct("=5q")
STEP: Final = struct.Struct("=qq6qdddqq3qq3q3qqqq3q")
SAMPLER: Final = struct.Struct("=17q")
NO_MATRIX: Final = bytes(RECORD.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """What all layers share."""

    width: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden: int
    # eps of the layer norms (without affine parameters) before attention, before the FFN and before the head.
    norm_eps: float
    # eps of the RMSNorm of queries and keys.
    qk_eps: float
    # "none", "pairs" or "halves"; see `attention.NewToken`.
    rotary: str = "pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackLayer:
    """One layer: x + proj(attention(norm x)), then x + down(silu(gate(norm x)) · up(norm x))."""

    # One to three matrices whose outputs in turn are all queries, all keys, all values.
    qkv: tuple[PackedMatrix, ...]
    proj: PackedMatrix
    gate: PackedMatrix
    up: PackedMatrix
    down: PackedMatrix
    # (d,) float32, or None.
    q_norm: Tensor | None
    k_norm: Tensor | None


class DecodeStack:
    """Layers, token table and head; `bind` a cache, then `step`.

    Args:
        embedding_VD: float32 or bf16.
        table: rotary table, (positions, d/2, 2) float32.
        added_PD: what is added to a token at each position, float32, or None.
    """

    def __init__(
        self,
        library: Library,
        config: StackConfig,
        layers: Sequence[StackLayer],
        *,
        embedding_VD: Tensor,
        head: PackedMatrix,
        table: Tensor,
        added_PD: Tensor | None = None,
    ) -> None:
        self.library, self.config, self.layers = library, config, list(layers)
        self.embedding, self.head = embedding_VD, head
        self.table = table.float().contiguous()
        self.added = None if added_PD is None else added_PD.float().contiguous()
        assert self.added is None or self.added.shape == (len(table), config.width), "one row per position"
        assert embedding_VD.stride(1) == 1, "rows of the token table are contiguous"
        for layer in layers:
            _check_shapes(config, layer)
        self._records: ctypes.Array[ctypes.c_char] | None = None
        self._cache: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._prefixes: list[int] = []
        self._rows = self._slots = 0

    @property
    def num_bytes(self) -> int:
        """Weights that one step reads, with all outputs of the head."""
        matrices = [m for x in self.layers for m in (*x.qkv, x.proj, x.gate, x.up, x.down)]
        return sum(m.num_bytes for m in [*matrices, self.head])

    def bind(self, keys: Sequence[Tensor], values: Sequence[Tensor], prefixes: Sequence[int]) -> None:
        """Use a cache from now on.

        Args:
            keys, values: per layer (rows, K, slots, d), float32 or bf16, or int8 (see `kernels.cpu.attention`); best in
                `library.memory`.
            prefixes: per layer the slot of position 0.
        """
        assert len(keys) == len(values) == len(prefixes) == len(self.layers), "one cache per layer"
        c = self.config
        for k, v in zip(keys, values, strict=True):
            assert k.shape == v.shape, "keys and values have one shape"
            assert (k.shape[1], channels(k)) == (c.num_kv_heads, c.head_dim), f"the cache is {tuple(k.shape)}"
        parts = zip(self.layers, keys, values, prefixes, strict=True)
        self._records = ctypes.create_string_buffer(b"".join(_layer_record(*part) for part in parts))
        self._cache, self._prefixes = (list(keys), list(values)), list(prefixes)
        self._rows = min(len(k) for k in keys)
        self._slots = min(k.shape[2] - prefix for k, prefix in zip(keys, prefixes, strict=True))

    def step(
        self, ids_R: Tensor, positions_R: Tensor, *, ids_range: tuple[int, int], cache_rows_R: Tensor | None = None
    ) -> Tensor:
        """Logits (R, high − low) float32 of the outputs low … high − 1 after one more token per row.

        Args:
            ids_R, positions_R: int64 id and position of each row's token.
            ids_range: low and high.
            cache_rows_R: int64 row of the cache that each row has; None is row i for row i.

        Raises:
            IndexError: an id, position or row is beyond the token table or the cache.
        """
        (low, high), rows = ids_range, len(ids_R)
        numbers = [t for t in (ids_R, positions_R, cache_rows_R) if t is not None]
        assert 0 <= low <= high <= self.head.num_outputs, f"outputs {low} to {high} of {self.head.num_outputs}"
        assert all(is_index(t, rows) for t in numbers), "ids, positions and cache rows are int64, one per row"
        logits = torch.empty(rows, high - low)
        addresses = (ids_R.data_ptr(), positions_R.data_ptr(), 0 if cache_rows_R is None else cache_rows_R.data_ptr())
        packed = self._record(rows, addresses, (low, high, *rows_record(logits)))
        self.library.step(packed, torch.get_num_threads())
        return logits

    def decode(self, state: SamplingState, num_slots: int, count: int) -> None:
        """Up to `count` whole steps of the first slots, sampling included; advances `state` in place.

        Args:
            state: on the CPU. Slots with nothing left to choose, or whose logits were not finite, are left alone.

        Raises:
            IndexError: an id, position or row is beyond the token table or the cache.
        """
        packed = self._record(0, (0, 0, 0), (0,) * 5)
        self.library.decode(packed, _sampler_record(state, num_slots), count, torch.get_num_threads())

    def _record(self, rows: int, addresses: tuple[int, ...], outputs: tuple[int, ...]) -> bytes:
        """native/types.h, Step."""
        assert self._records is not None, "bind a cache first"
        c = self.config
        return STEP.pack(
            *(ctypes.addressof(self._records), len(self.layers)),
            *(rows, c.width, c.num_heads, c.num_kv_heads, c.head_dim, c.hidden),
            *(c.norm_eps, c.qk_eps, c.head_dim**-0.5, ROTARY[c.rotary], self.table.data_ptr()),
            *rows_record(self.embedding),
            0 if self.added is None else self.added.data_ptr(),
            *addresses,
            *(len(self.embedding), min(self._slots, len(self.table)), self._rows),
            *(self.head.address, *outputs),
        )

    def step_by_operators(self, ids_R: Tensor, positions_R: Tensor, *, ids_range: tuple[int, int]) -> Tensor:
        """The same as `step`, in five native calls per layer instead of one in all."""
        library, c, rows = self.library, self.config, len(ids_R)
        norm = Norm(kind="layer", eps=c.norm_eps)
        x_RD = self.embedding[ids_R].float()
        if self.added is not None:
            x_RD += self.added[positions_R]
        for layer, prefix, keys, values in zip(self.layers, self._prefixes, *self._cache, strict=True):
            qkv = torch.cat(linear_group(library, x_RD, layer.qkv, norm=norm), dim=1)
            k_at, v_at = c.num_heads * c.head_dim, (c.num_heads + c.num_kv_heads) * c.head_dim
            token = NewToken(
                q_norm=layer.q_norm, k_norm=layer.k_norm, norm_eps=c.qk_eps, rotary=c.rotary, table=self.table,
                positions=positions_R, prefix=prefix,
            )  # fmt: skip
            parts = qkv[:, :k_at], qkv[:, k_at:v_at], qkv[:, v_at:]
            attended = attend_token(library, parts, token, (keys[:rows], values[:rows]))
            x_RD = linear(library, attended, layer.proj, residual=x_RD)
            middle = gate_up(library, x_RD, layer.gate, layer.up, norm=norm)
            x_RD = linear(library, middle, layer.down, residual=x_RD)
        return linear_range(library, x_RD, self.head, ids_range, norm=norm)


def _sampler_record(state: SamplingState, num_slots: int) -> bytes:
    """native/types.h, Sampler."""
    copies = len(state.tokens) // len(state.steps)
    assert num_slots <= len(state.steps), f"{num_slots} slots of a state for {len(state.steps)}"
    first = (state.steps, state.num_tokens, state.guidance, state.temperature, state.top_p, state.keys, state.ranges)
    rest = (state.forced, state.ids, state.tokens, state.positions, state.lengths, state.failed)
    assert all(t.is_contiguous() and t.device.type == "cpu" for t in (*first, *rest)), "the state is on the CPU"
    return SAMPLER.pack(
        *(num_slots, copies, state.ids.shape[1]),
        *(t.data_ptr() for t in first),
        len(state.ranges),
        *(t.data_ptr() for t in rest),
    )


def _check_shapes(c: StackConfig, layer: StackLayer) -> None:
    queries, keys = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
    wanted = {"proj": (c.width, queries), "gate": (c.hidden, c.width), "up": (c.hidden, c.width)}
    for name, shape in (wanted | {"down": (c.width, c.hidden)}).items():
        m: PackedMatrix = getattr(layer, name)
        assert (m.num_outputs, m.num_inputs) == shape, f"{name} is {m.num_outputs} × {m.num_inputs}, not {shape}"
    assert sum(m.num_outputs for m in layer.qkv) == queries + 2 * keys, "qkv gives queries, keys and values"
    assert all(m.num_inputs == c.width for m in layer.qkv), f"qkv reads {c.width} columns"
    for norm in (layer.q_norm, layer.k_norm):
        assert norm is None or (norm.dtype == torch.float32 and norm.shape == (c.head_dim,)), "norms are (d,) float32"


def _layer_record(layer: StackLayer, keys: Tensor, values: Tensor, prefix: int) -> bytes:
    """native/types.h, Layer."""
    qkv = b"".join(m.native for m in layer.qkv) + NO_MATRIX * (3 - len(layer.qkv))
    rest = b"".join(m.native for m in (layer.proj, layer.gate, layer.up, layer.down))
    norms = [0 if t is None else t.data_ptr() for t in (layer.q_norm, layer.k_norm)]
    caches = CACHE.pack(*cache_record(keys)) + CACHE.pack(*cache_record(values))
    return (
        qkv + struct.pack("=q", len(layer.qkv)) + rest + struct.pack("=2q", *norms) + caches + struct.pack("=q", prefix)
    )
