"""LayoutArrays: many layouts at once, one value per layout in each array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from helicube.planner.arrays import Array
from helicube.specs.layout import HelixLayout
from helicube.specs.model import ModelSpec

__all__ = ["FAMILIES", "FAMILY_NAMES", "LayoutArrays", "LayoutRow", "enumerate_layouts", "is_padded"]

FAMILIES = ("tp", "pp", "dp", "medha", "dcp", "helix")
# tp: tensor parallel, KV heads copied beyond K ranks, experts over TPF × EP.  pp: pipeline stages of it.
# dp: data-parallel attention, experts over all ranks.  medha: KV shards, with TPF tied to TPA; KV ranks may share the
# experts, but hold copies of all else (Medha).  dcp: KV shards inside tensor parallelism, queries gathered (vLLM decode
# context parallel).  helix: independent grids.
FAMILY_NAMES = {
    "tp": "TP (× EP)",
    "pp": "PP",
    "dp": "DP attention × EP",
    "medha": "KVP tied to TP (Medha)",
    "dcp": "KVP inside TP (DCP)",
    "helix": "Helix",
}
# For tables and charts.


class LayoutRow(NamedTuple):
    """One layout as a row of numbers."""

    family: int
    # Index into FAMILIES.
    pp: int = 1
    dp: int = 1
    kvp: int = 1
    tpa: int = 1
    tpf: int = 1
    ep: int = 1
    overlap: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutArrays:
    """Widths of n layouts; ranks = pp · dp · kvp · tpa, and tpf · ep ranks share one copy of the FFN weights."""

    family: NDArray[np.int8]
    # (n,) index into FAMILIES.
    pp: Array
    # (n,) pipeline stages.
    dp: Array
    # (n,) copies of attention, each with its own sequences.
    kvp: Array
    # (n,) ranks that share a sequence's cache.
    tpa: Array
    # (n,) ranks that split heads.
    tpf: Array
    # (n,) ranks that split an FFN's width.
    ep: Array
    # (n,) groups that split the experts.
    overlap: NDArray[np.bool_]
    # (n,) HOP-B: exchange of one part of the batch under the attention of the next.

    def __len__(self) -> int:
        return len(self.family)

    @property
    def num_gpus(self) -> Array:
        """(n,) GPUs of each layout."""
        return self.pp * self.dp * self.kvp * self.tpa

    def take(self, index: NDArray[np.intp] | slice) -> Self:
        """The layouts at `index`."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def as_column(self) -> Self:
        """The layouts as a column (n, 1) of a grid, whose rows are batches (1, b)."""
        return type(self)(**{f.name: getattr(self, f.name)[:, None] for f in fields(self)})

    def is_family(self, name: str) -> NDArray[np.bool_]:
        """(n,) membership of a family."""
        return np.equal(self.family, FAMILIES.index(name))

    def describe(self, i: int) -> str:
        """One layout as text, such as "helix kvp=8,tpa=8,tpf=64,ep=1"."""
        name = FAMILIES[int(self.family[i])]
        parts = []
        for key in ("pp", "dp", "kvp", "tpa", "tpf", "ep"):
            value = int(getattr(self, key)[i])
            always = key in {"tpa", "tpf"} or (name in {"helix", "medha", "dcp"} and key == "kvp")
            if value > 1 or always:
                parts.append(f"{key}={value}")
        return f"{name} {','.join(parts)}" + (",hop-b" if self.overlap[i] else "")

    def helix_layout(self, i: int) -> HelixLayout | None:
        """The record that starts a run, when this layout is one of Helix (or tensor parallelism, its special case)."""
        if FAMILIES[int(self.family[i])] not in {"helix", "tp"}:
            return None
        kvp, tpa, tpf, ep = (int(getattr(self, key)[i]) for key in ("kvp", "tpa", "tpf", "ep"))
        return HelixLayout(kvp=kvp, tpa=tpa, tpf=tpf, ep=ep)

    @classmethod
    def stack(cls, rows: Sequence[LayoutRow]) -> Self:
        """Build from rows."""
        table = np.array([row[1:7] for row in rows], dtype=np.float64).reshape(len(rows), 6)
        family = np.array([row[0] for row in rows], dtype=np.int8)
        overlap = np.array([row[7] for row in rows], dtype=np.bool_)
        names = ("pp", "dp", "kvp", "tpa", "tpf", "ep")
        return cls(family=family, overlap=overlap, **{name: table[:, i].copy() for i, name in enumerate(names)})


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


class _Rows:
    """Collects the legal layouts of one model."""

    def __init__(self, model: ModelSpec, *, overlap: bool) -> None:
        a = model.attention
        self.model = model
        self.overlap = overlap
        self.heads = a.num_query_heads
        # Widths that copy no KV head; the latent of MLA is one head.
        self.tpa = _divisors(a.num_kv_heads)
        self.rows: list[LayoutRow] = []

    def experts(self, ranks: int) -> list[int]:
        """Expert-parallel widths that divide the ranks and the experts."""
        return [ep for ep in _divisors(ranks) if self.model.ffn.num_experts % ep == 0] if self.model.ffn.is_moe else [1]

    def add(
        self, family: str, ranks: int, *, pp: int = 1, dp: int = 1, kvp: int = 1, tpa: int = 1, overlap: bool = False
    ) -> None:
        narrowest = self.model.ffn.expert_size if self.model.ffn.is_moe else self.model.ffn.dense_size
        for ep in self.experts(ranks):
            if ranks // ep <= narrowest:
                self.rows.append(LayoutRow(FAMILIES.index(family), pp, dp, kvp, tpa, ranks // ep, ep, overlap))

    def tensor(self, n: int) -> None:
        """TP, and pipelines of it."""
        for pp in _divisors(n):
            tp = n // pp
            if pp <= self.model.num_layers and self.heads % tp == 0:
                self.add("pp" if pp > 1 else "tp", tp, pp=pp, tpa=tp)

    def data(self, n: int) -> None:
        """Data-parallel attention."""
        for dp in _divisors(n)[1:]:
            if self.heads % (n // dp) == 0:
                self.add("dp", n, dp=dp, tpa=n // dp)

    def sharded(self, n: int) -> None:
        """KV shards: Medha, DCP and Helix."""
        for tpa in self.tpa:
            kvp, rest = divmod(n, tpa)
            if rest or kvp == 1 or kvp > self.heads // tpa:
                continue
            for ep in self.experts(kvp):
                self.rows.append(LayoutRow(FAMILIES.index("medha"), kvp=kvp, tpa=tpa, tpf=tpa, ep=ep))
            if self.heads % n == 0:
                self.add("dcp", n, kvp=kvp, tpa=tpa)
            self.add("helix", n, kvp=kvp, tpa=tpa)
            if self.overlap:
                self.add("helix", n, kvp=kvp, tpa=tpa, overlap=True)


def enumerate_layouts(model: ModelSpec, max_gpus: int, *, min_gpus: int = 1, families: tuple[str, ...] = FAMILIES,
                      overlap: bool = True, padding: bool = True) -> LayoutArrays:  # fmt: skip
    """Every layout of `min_gpus` … `max_gpus` GPUs in the given families.

    Args:
        model: decides what is legal.
        max_gpus: largest pool.
        min_gpus: smallest pool.
        families: names out of FAMILIES.
        overlap: also list Helix layouts with HOP-B.
        padding: also list layouts that need zero heads or columns.
    """
    rows = _Rows(model, overlap=overlap)
    for n in range(min_gpus, max_gpus + 1):
        rows.tensor(n)
        rows.data(n)
        rows.sharded(n)
    wanted = {FAMILIES.index(name) for name in families}
    found = LayoutArrays.stack([row for row in rows.rows if row.family in wanted])
    return found if padding else found.take(np.flatnonzero(~is_padded(model, found)))


def is_padded(model: ModelSpec, x: LayoutArrays) -> NDArray[np.bool_]:
    """(n,) true where a width does not divide, so that zero heads or columns fill it up."""
    f, pool = model.ffn, x.dp * x.kvp * x.tpa
    # Medha copies W_O and the FFN over its KV ranks; data-parallel copies hold W_O and shared experts of their own.
    heads = np.where(x.is_family("medha"), x.tpa, x.kvp * x.tpa)
    ffn = np.where(x.is_family("medha"), x.tpa, pool)
    uneven = (model.attention.num_query_heads % heads > 0) | (f.expert_size % x.tpf > 0)
    uneven |= (f.dense_size % ffn > 0) | (f.shared_size % np.where(x.dp > 1, 1.0, ffn) > 0)
    return np.asarray(uneven)
