"""How the threads of PyTorch's OpenMP wait for the next parallel region."""

from __future__ import annotations

import os
import sys

__all__ = ["let_idle_threads_sleep"]


def let_idle_threads_sleep() -> None:
    """Have OpenMP's threads sleep between regions, unless the environment or the caller has decided already.

    By default they spin, which costs other programs the core, and us the time until they give it back: where both of
    two cores were busy, an object took five times as long (docs/log.md). OpenMP reads the variable when PyTorch is
    loaded; where that has happened, it is the caller's affair.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
