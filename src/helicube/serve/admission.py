"""Who may join the queue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from helicube.serve.problem import ApiError
from helicube.serve.work import Work

if TYPE_CHECKING:
    from helicube.serve.service import Service

__all__ = ["refuse_beyond_the_queue"]


def refuse_beyond_the_queue(service: Service, keys: Sequence[str], client: str) -> None:
    """Do nothing if there is room for objects.

    Args:
        client: whose share of the queue they would take.

    Raises:
        ApiError: the queue or the share is full (429), or the service stops or is broken (503).
    """
    if service.stopping:
        raise ApiError(503, "the service is stopping; try again in a moment", retry_after_s=5)
    if not service.store.disk.is_sound:
        raise service.store.disk.answer
    if not service.is_sound:
        raise ApiError(503, "the service is broken; its log says why", code="broken", retry_after_s=30)
    num_new = len({key for key in keys if key not in service.works and not service.store.has(key)})
    limits = service.config.limits
    works = list(service.works.values())
    # Those that wait for a mesh count too: they hold memory, and a new object is behind both.
    waiting = [work for work in works if work.status != "decoding"]
    behind = num_behind(waiting, service.config.mesh_threads)
    mine = num_behind([work for work in waiting if work.client == client], service.config.mesh_threads)
    each_s = service.stats.median("object_s") or 2.0
    wait_s = max(1.0, min(60.0, each_s * (1 + behind / service.config.slots)))
    num_items = sum(len(work.owners) for work in works)
    text = None
    if num_items + len(keys) > limits.waiting:
        # Each of them is told of every step, also where others wait for the same object.
        text = f"{num_items} objects of jobs wait already and at most {limits.waiting} may; let some finish"
    elif num_new and behind + num_new > limits.queue:
        text = f"{behind} objects wait already and at most {limits.queue} may; try again in {math.ceil(wait_s)} s"
    elif num_new and mine + num_new > limits.queue_share:
        text = f"{mine} of your objects wait already and at most {limits.queue_share} may; let some finish"
    if text is not None:
        raise ApiError(429, text, code="queue_full", retry_after_s=wait_s)


def num_behind(works: Sequence[Work], mesh_threads: int) -> int:
    """Those of some objects outside the slots that wait, and are not being built."""
    return len(works) - min(sum(work.status == "meshing" for work in works), mesh_threads)
