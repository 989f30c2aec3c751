"""Candidate: one point of a search, taken apart: phases, limits, memory, trust."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.planner.constants import Kind
from helicube.planner.layouts import FAMILIES, LayoutArrays, is_padded
from helicube.planner.memory import memory_of
from helicube.planner.ranges import range_remarks
from helicube.planner.search import Points
from helicube.planner.setting import Setting
from helicube.planner.step import CATEGORIES, decode_phases, phase_kinds
from helicube.specs.layout import HelixLayout

__all__ = ["Candidate", "candidate_of", "count", "make_candidate"]


def count(number: int, what: str) -> str:
    """A number with its noun, such as "1 user" or "2 users"."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One layout at one batch. Every time is of `kind`, and extrapolated when `outside` is not empty."""

    family: str
    layout: str
    # As text, such as "helix kvp=8,tpa=8,tpf=64".
    helix: HelixLayout | None
    # The record that starts a run, where the engine of this package can run it.
    overlap: bool
    # HOP-B.
    num_gpus: int
    batch: int
    # Users of the whole pool.
    ttl_s: float
    phases_s: dict[str, float]
    # Seconds by phase.
    phase_kinds: dict[str, Kind]
    # Where each phase's time comes from.
    padded: bool
    # Zero heads or columns fill up what does not divide.
    memory_bytes: dict[str, float]
    # weights, cache, activations, free, and the tenth left to the driver, on the fullest GPU; they sum to "capacity".
    kind: Kind
    outside: tuple[str, ...]
    # What lies outside the calibrated range.

    @property
    def tokens_per_s_user(self) -> float:
        """Interactivity."""
        return 1.0 / self.ttl_s

    @property
    def tokens_per_s_gpu(self) -> float:
        """Throughput of one GPU."""
        return self.batch / (self.ttl_s * self.num_gpus)

    @property
    def limits_s(self) -> dict[str, float]:
        """Seconds by what limits: cache, weights, links, launches; largest first."""
        total = dict.fromkeys(("cache", "weights", "links", "launches"), 0.0)
        for phase, seconds in self.phases_s.items():
            total[CATEGORIES[phase]] += seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def as_dict(self) -> dict[str, object]:
        """For JSON; milliseconds and GB where the names say so."""
        return {
            "family": self.family,
            "layout": self.layout,
            "helix_layout": str(self.helix) if self.helix else None,
            "num_gpus": self.num_gpus,
            "users": self.batch,
            "kind": self.kind,
            "outside_calibrated_range": list(self.outside),
            "ttl_ms": self.ttl_s * 1e3,
            "tokens_per_s_user": self.tokens_per_s_user,
            "tokens_per_s_gpu": self.tokens_per_s_gpu,
            "limits_ms": {key: value * 1e3 for key, value in self.limits_s.items()},
            "phases_ms": {key: value * 1e3 for key, value in self.phases_s.items() if value},
            "phase_kinds": {key: self.phase_kinds[key] for key, value in self.phases_s.items() if value},
            "padded": self.padded,
            "memory_gb_per_gpu": {key.replace(" ", "_"): value / 1e9 for key, value in self.memory_bytes.items()},
        }


def make_candidate(s: Setting, layouts: LayoutArrays, i: int, batch: float, context: float) -> Candidate:
    """Take the i-th layout apart at a batch."""
    x = layouts.take(slice(i, i + 1))
    b = np.array([float(batch)])
    phases = {name: float(value[0]) for name, value in decode_phases(s, x, b, context).items()}
    m = memory_of(s, x, b, context)
    parts = {"weights": m.weights, "cache": m.cache, "activations": m.activations, "free": m.free}
    memory = {name: float(np.broadcast_to(value, (1,))[0]) for name, value in parts.items()}
    return Candidate(
        family=FAMILIES[int(x.family[0])], layout=x.describe(0), helix=x.helix_layout(0), overlap=bool(x.overlap[0]),
        num_gpus=int(x.num_gpus[0]), batch=int(batch), ttl_s=sum(phases.values()), phases_s=phases,
        memory_bytes={**memory, "kept free": s.hardware.hbm_bytes - m.capacity, "capacity": s.hardware.hbm_bytes},
        phase_kinds=phase_kinds(s), padded=bool(is_padded(s.model, x)[0]), kind=s.kind,
        outside=tuple(range_remarks(s, x, b, context)),
    )  # fmt: skip


def candidate_of(s: Setting, points: Points, i: int, context: float) -> Candidate:
    """Take the i-th point apart."""
    return make_candidate(s, points.layouts, i, float(points.batch[i]), context)
