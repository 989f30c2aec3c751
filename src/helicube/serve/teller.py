"""What listeners hear of the work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from helicube.serve.work import Work

if TYPE_CHECKING:
    from helicube.serve.service import Service

__all__ = ["Teller"]


class Teller:
    """Publishes the state of work to the streams of its jobs; from any thread."""

    def __init__(self, service: Service) -> None:
        self.service, self.hub, self.view = service, service.hub, service.view

    def positions(self) -> None:
        """Tell the listeners of queued objects how many are before each."""
        positions = self.service.scheduler.positions()
        for work in list(self.service.works.values()):
            if work.key in positions:
                for job, place in list(work.owners):
                    self.progress(work, job, place, positions[work.key])

    def progress(self, work: Work, job: str, place: int, position: int | None) -> None:
        told = {"index": place, **work.progress, "batch": work.batch, "queue_position": position}
        self.hub.publish(job, "progress", told)

    def live(self, work: Work) -> None:
        # Without the disk or the lock: the engine waits for neither.
        for job, place in work.owners:
            if self.hub.listens(job):
                self.hub.publish(job, "object", self.view.live(job, place, work))

    def objects(self, work: Work) -> None:
        for job, place in work.owners:
            if self.hub.listens(job) and (view := self.view.job(job)) is not None:
                self.hub.publish(job, "object", view["objects"][place])

    def end(self, jobs: Iterable[str]) -> None:
        for job in set(jobs):
            if self.hub.listens(job) and (view := self.view.job(job)) is not None and view["ended_at"] is not None:
                self.hub.publish(job, "end", view)
