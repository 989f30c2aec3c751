"""How many connections the operating system lets a process have."""

from __future__ import annotations

import sys

__all__ = ["BACKLOG", "connections_within"]

# Connections that asyncio accepts at a time, before it looks at any of them: where files run out it says so for each.
BACKLOG = 64
# Descriptors for all else: those, the database, the files that threads read at a time, libraries.
RESERVED, LEAST = 128, 8


def connections_within(wanted: int) -> int:
    """`wanted` or as many as fit, after the limit of this process is raised as far as is needed and allowed."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(LEAST, min(wanted, soft - RESERVED))
