"""Suggestions for a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest_names"]


def nearest_names(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """The known names nearest to `name`, best first, as "a, b or c"; all of them when few are known."""
    pool = sorted(set(known))
    by_lower = {candidate.lower(): candidate for candidate in pool}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=0.45)
    found = [by_lower[c] for c in close] or pool[: max(most, 1)]
    if len(pool) <= most:
        found += [candidate for candidate in pool if candidate not in found]
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
