"""Where KV-parallel decoding pays: its best layout against the best without it, over context and batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helicube.errors import InputError
from helicube.planner.arrays import Array
from helicube.planner.layouts import LayoutArrays, enumerate_layouts
from helicube.planner.memory import memory_of
from helicube.planner.search import evaluate
from helicube.planner.setting import Setting

__all__ = ["Crossover", "context_label", "crossover"]

_PLAIN = ("tp", "pp", "dp")
_SHARDED = ("medha", "dcp", "helix")


def context_label(context: float) -> str:
    """A context in units of 1,024 tokens, such as 128k or 4m."""
    kilo = int(context) // 1024
    return f"{kilo // 1024}m" if kilo >= 1024 and kilo % 1024 == 0 else f"{kilo}k"


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossover:
    """Latency without KV parallelism over latency with it, on a fixed pool; above 1 it pays."""

    contexts: Array
    # (c,) tokens.
    batches: Array
    # (b,) users.
    ratio: Array
    # (b, c); inf where only KV-parallel layouts fit, 0 where only others do, NaN where nothing fits.
    plain: tuple[tuple[str, ...], ...]
    # (b, c) best layout without it.
    sharded: tuple[tuple[str, ...], ...]
    # (b, c) best layout with it.
    num_gpus: int
    subject: str
    # What the map is of, such as "deepseek-r1 on 8 × h200".

    def pays_from(self, row: int) -> float | None:
        """Smallest context from which KV parallelism pays at batches[row]; None where it never does."""
        pays = self.ratio[row] > 1.0
        return float(self.contexts[int(np.argmax(pays))]) if np.any(pays) else None


def _fastest(s: Setting, layouts: LayoutArrays, batch: float, context: float) -> tuple[float, str]:
    """(latency, layout) of the fastest layout that fits; (inf, "") where none does."""
    free = memory_of(s, layouts, np.full(len(layouts), batch), context).free
    kept = layouts.take(np.flatnonzero((free >= 0) & (layouts.dp * layouts.pp <= batch)))
    if not len(kept):
        return float("inf"), ""
    points = evaluate(s, kept, np.full(len(kept), batch), context)
    i = int(np.argmin(points.ttl_s))
    return float(points.ttl_s[i]), kept.describe(i)


def crossover(s: Setting, num_gpus: int, *, contexts: Array | None = None, batches: Array | None = None) -> Crossover:
    """Map the ratio over context and batch on exactly `num_gpus` GPUs.

    Args:
        s: model, accelerator, engine, formats.
        num_gpus: size of the pool; at least 2.
        contexts: (c,) tokens; powers of two from 1,024 to 2²² by default.
        batches: (b,) users; powers of two from 1 to 512 by default.

    Raises:
        InputError: the pool is too small, or no KV-parallel layout of it exists.
    """
    if num_gpus < 2:
        raise InputError(f"a crossover needs at least 2 GPUs, not {num_gpus}; raise --max-gpus")
    wide = np.exp2(np.arange(10, 23)) if contexts is None else contexts
    users = np.exp2(np.arange(10)) if batches is None else batches
    plain = enumerate_layouts(s.model, num_gpus, min_gpus=num_gpus, families=_PLAIN)
    sharded = enumerate_layouts(s.model, num_gpus, min_gpus=num_gpus, families=_SHARDED)
    if not len(sharded) or not len(plain):
        missing = "KV-parallel" if not len(sharded) else "other"
        raise InputError(f"{s.model.name} has no {missing} layout of {num_gpus} GPUs; give --gpus a power of two")
    ratio = np.full((len(users), len(wide)), np.nan)
    names: tuple[list[tuple[str, ...]], list[tuple[str, ...]]] = ([], [])
    for i, batch in enumerate(users):
        found = [(_fastest(s, plain, batch, c), _fastest(s, sharded, batch, c)) for c in wide]
        for j, ((slow, _), (fast, _)) in enumerate(found):
            if np.isfinite(slow) or np.isfinite(fast):
                ratio[i, j] = 0.0 if not np.isfinite(fast) else slow / fast
        names[0].append(tuple(pair[0][1] for pair in found))
        names[1].append(tuple(pair[1][1] for pair in found))
    return Crossover(contexts=wide, batches=users, ratio=ratio, plain=tuple(names[0]), sharded=tuple(names[1]),
                     num_gpus=num_gpus, subject=f"{s.model.name} on {num_gpus} × {s.hardware.name}")  # fmt: skip
