"""What a launcher tells a process about its pool, in the variables that torchrun sets."""

from __future__ import annotations

import os

from helicube.errors import InputError

__all__ = ["is_rank", "pool_rank", "pool_size"]


def is_rank() -> bool:
    """Whether a launcher started this process as a rank.

    Raises:
        InputError: it says so by halves.
    """
    if "RANK" not in os.environ:
        return False
    size, rank = _number("WORLD_SIZE"), _number("RANK")
    if rank >= size:
        raise InputError(f"RANK is {rank}, but WORLD_SIZE is {size}; ranks are counted from 0, so correct one of them")
    return True


def pool_size() -> int:
    """Ranks that the launcher says there are; 1 without one."""
    return _number("WORLD_SIZE") if is_rank() else 1


def pool_rank() -> int:
    """This process's rank; 0 without a launcher."""
    return _number("RANK") if is_rank() else 0


def _number(name: str) -> int:
    value = os.environ.get(name)
    if value is None or not value.isdecimal():
        said = "is not set" if value is None else f"is {value!r}, which is no whole number"
        raise InputError(
            f"RANK is set in the environment, but {name} {said}; start the ranks with torchrun, or unset RANK"
        )
    return int(value)
