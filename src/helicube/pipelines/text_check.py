"""`helicube run --check`: what a layout decoded against what one device decodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from helicube.errors import DecodeError

__all__ = ["Decoded", "compare"]

# float32 has 24 bits, and a few hundred sums in another order cost a few of them: logits of order one differ by 1e-5 at
# most, those that reach 40 (SmolLM2) by 5e-5. Ten times that is an error of helicube.
ABSOLUTE, RELATIVE = 1e-4, 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One text in float32."""

    ids: tuple[int, ...]
    # (1, V) of each step.
    logits: Sequence[Tensor]


def compare(pool: Decoded, alone: Decoded, *, greedy: bool) -> str:
    """What to say of a layout that is right.

    Args:
        greedy: whether the likeliest ids were taken. Where the best two are closer than the bound, which of them is
            the likeliest is chance, and all that follows differs.

    Raises:
        DecodeError: ids that differ, or logits that differ by more than other sums explain.
    """
    common = next((i for i, (a, b) in enumerate(zip(pool.ids, alone.ids, strict=False)) if a != b), None)
    steps = min(len(pool.logits), len(alone.logits)) if common is None else common + 1
    pairs = list(zip(pool.logits[:steps], alone.logits[:steps], strict=True))
    # Python's max would pass over a NaN.
    worst = max((float((a - b).abs().nan_to_num(nan=float("inf")).max()) for a, b in pairs), default=0.0)
    bound = max(ABSOLUTE, RELATIVE * max((float(b.abs().max()) for _, b in pairs), default=0.0))
    same = pool.ids == alone.ids
    says = "identical" if same else f"different from token {common if common is not None else steps} on"
    tie = ""
    if greedy and common is not None:
        best = alone.logits[common][0]
        apart = abs(float(best[pool.ids[common]] - best[alone.ids[common]]))
        tie = f", a tie: the best two logits are {apart:.1e} apart there" if apart <= bound else ""
    line = (
        f"check: ids {says} over {len(alone.ids)} tokens{tie}, largest difference of logits {worst:.2e} "
        f"(bound {bound:.0e})"
    )
    if worst > bound or not (same or tie):
        raise DecodeError(f"{line}; in float32 that is an error of helicube, please report it with this command")
    return line
