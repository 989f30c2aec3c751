"""Jobs from acceptance to their end: what stands behind the routes, its life, and what it is asked for."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence

from helicube.engine.request import Request
from helicube.errors import HelicubeError
from helicube.pipelines.object_steps import ObjectSteps, fingerprint
from helicube.pipelines.text_to_shape import TextToShape
from helicube.serve.admission import refuse_beyond_the_queue
from helicube.serve.attempts import Attempts
from helicube.serve.buckets import Buckets
from helicube.serve.byte_cache import ByteCache
from helicube.serve.config import ServeConfig
from helicube.serve.database import NewItem, Row
from helicube.serve.events import Hub
from helicube.serve.late_writes import LateWrites
from helicube.serve.maker import Maker
from helicube.serve.mesh_workers import MeshWorkers
from helicube.serve.problem import not_found
from helicube.serve.scheduler import Scheduler
from helicube.serve.stats import Stats
from helicube.serve.store import Store
from helicube.serve.teller import Teller
from helicube.serve.view import View
from helicube.serve.work import ObjectSpec, Owner, Work

__all__ = ["Service"]

PREVIEW_BYTES = 64 << 20
# Processes that may die under an object before it is given up. All of a batch are under suspicion: with three, four
# kills at random moments gave up 7 objects of 35 that were innocent.
MAX_ATTEMPTS = 10

log = logging.getLogger(__name__)


class Service:
    """What stands behind the routes.

    Args:
        pipeline: a loaded model.
        config: see there.
        store: its data directory, if that is open already; the service closes it.

    Raises:
        InputError: the data directory is in use, or cannot be written.
    """

    def __init__(self, pipeline: TextToShape, config: ServeConfig, store: Store | None = None) -> None:
        self.config, self.steps = config, ObjectSteps(pipeline)
        self.model_name, self.model_id = pipeline.model.name, fingerprint(pipeline)
        self.hub, self.stats = Hub(), Stats()
        per_minute = config.limits.objects_per_minute
        self.rate = Buckets(per_minute / 60, per_minute / 2)
        self.store = store or Store(config.data_dir, config.limits.cache_bytes)
        self.previews = ByteCache(PREVIEW_BYTES)
        self.attempts = Attempts(self.store.database, self.store.disk)
        # Guards the work under way together with its rows, so that neither is seen without the other.
        self.lock = threading.RLock()
        self.works: dict[str, Work] = {}
        self.stopping = False
        self.hurried = threading.Event()
        self.drainer = threading.Thread(target=self._drain, name="helicube-drain", daemon=True)
        engine = pipeline.engine(config.slots, True)
        self.view = View(self)
        self.teller = Teller(self)
        self.maker = Maker(self)
        self.scheduler = Scheduler(engine, self.maker, self._prepare, self.steps.num_shape_ids)
        self.meshes = MeshWorkers(config.mesh_threads, self.maker.failed, self.attempts.at)
        self.late = LateWrites(self.store.database, self.store.disk, self.maker.finish_later, self.teller.end)

    # Life.

    def start(self) -> None:
        """Take up what an earlier process left unfinished, and begin."""
        for row in self.store.database.unfinished():
            if row["attempts"] >= MAX_ATTEMPTS:
                text = f"the service died {MAX_ATTEMPTS} times while it made this object"
                self._give_up((row["job"], row["place"]), "crashed", f"{text}; ask again, or report the prompt")
                continue
            try:
                self._take_up(row)
            except (ValueError, TypeError, KeyError, HelicubeError) as error:
                text = f"the request cannot be read ({type(error).__name__}); it may be another version's: ask again"
                self._give_up((row["job"], row["place"]), "unreadable", text)
            except sqlite3.Error as error:
                # Its row stays as it is, for the next start.
                log.exception("job %s, object %d cannot be taken up", row["job"], row["place"])
                self.store.disk.refused(error)
        self.attempts.start()
        self.meshes.start()
        self.scheduler.start()

    def _take_up(self, row: Row) -> None:
        spec = ObjectSpec.from_dict(json.loads(row["spec"]))
        key = spec.key(self.model_id)
        work = self._work(key, spec, None, json.loads(row["notes"]))
        if key != row["object"]:
            # Another model, or another version of helicube.
            self.store.database.rename_item(row["job"], row["place"], key)
        self._add((row["job"], row["place"]), work)

    def _give_up(self, owner: Owner, code: str, text: str) -> None:
        log.error("job %s, object %d: %s", *owner, text)
        self.late.end([owner], "failed", {"code": code, "message": text})
        self.stats.ended("failed")

    @property
    def is_sound(self) -> bool:
        return self.scheduler.is_sound and self.meshes.is_sound and self.late.is_sound

    def begin_stop(self, on_drained: Callable[[], None] = lambda: None) -> None:
        """Take no more jobs, and let what is in the slots finish; listeners are then told to go.

        Args:
            on_drained: called on another thread when that is done, or the grace is over.
        """
        if not self.stopping:
            self.stopping, self.on_drained = True, on_drained
            self.drainer.start()

    def _drain(self) -> None:
        log.info("stopping: %d slots in use, %d objects wait", len(self.scheduler.running), self.scheduler.num_waiting)
        self.scheduler.drain()
        self._wait_until_idle()
        self.hub.publish_all("closing", {})
        self.on_drained()

    def _wait_until_idle(self) -> None:
        until = time.monotonic() + self.config.grace_s
        while time.monotonic() < until and not self._is_idle:
            if self.hurried.wait(0.02):
                return

    @property
    def _is_idle(self) -> bool:
        """Nothing is begun that can be finished; asked of the work, which is between slots and meshes in neither."""
        parked = set(self.late.parked)
        with self.lock:
            begun = [work for work in self.works.values() if work.status != "queued" and work not in parked]
        return not begun and self.scheduler.is_idle and self.meshes.is_idle

    def hurry(self) -> None:
        """Told to stop a second time: wait for nothing."""
        self.hurried.set()

    def stop(self) -> None:
        """End all threads. What is unfinished keeps its rows, and starts again with the next process."""
        self.begin_stop()
        self.drainer.join()
        timeout_s = 0.0 if self.hurried.is_set() else 5.0
        self.scheduler.stop(timeout_s)
        self.meshes.stop(timeout_s)
        self.attempts.stop(timeout_s)
        try:
            self.store.database.forgive()
        except sqlite3.Error as error:
            log.warning("attempts cannot be forgotten (%s)", error)
        self.store.close()

    # Requests.

    def submit(self, job: str, request: dict[str, object], specs: Sequence[ObjectSpec], client: str) -> None:
        """Accept a job. All of it is on disk when this returns.

        Args:
            job: its id, 32 hex digits drawn for it.
            client: whose share of the queue it takes.

        Raises:
            PromptError: a prompt that the model cannot read.
            ApiError: the queue is full (429), or the service stops or is broken (503).
        """
        keys = [spec.key(self.model_id) for spec in specs]
        # Twice: before the prompts are encoded, which a flood should not cause, and when it counts.
        refuse_beyond_the_queue(self, keys, client)
        fresh: dict[str, tuple[Request, tuple[str, ...]]] = {}
        for key, spec in zip(keys, specs, strict=True):
            if key not in fresh and key not in self.works and not self.store.has(key):
                fresh[key] = self.steps.request(spec.prompt, spec.sampling, spec.box)
        with self.lock:
            refuse_beyond_the_queue(self, keys, client)
            self._accept(job, request, dict(enumerate(zip(keys, specs, strict=True))), fresh, client)
        log.info("job %s: %d objects", job, len(specs))
        try:
            self.store.database.prune_jobs(self.config.limits.jobs)
        except sqlite3.Error as error:
            # The job is accepted all the same.
            self.store.disk.refused(error)

    def _accept(
        self,
        job: str,
        request: dict[str, object],
        wanted: dict[int, tuple[str, ObjectSpec]],
        fresh: dict[str, tuple[Request, tuple[str, ...]]],
        client: str,
    ) -> None:
        cached = {key for key, _ in wanted.values() if self.store.has(key)}
        notes = {key: fresh[key][1] if key in fresh else self._notes(key) for key, _ in wanted.values()}
        items: list[NewItem] = [
            (key, spec.as_dict(), notes[key], "done" if key in cached else "live", key in cached)
            for key, spec in wanted.values()
        ]
        self.store.database.add_job(job, request, items)
        for place, (key, spec) in wanted.items():
            if key in cached:
                self.store.touch(key)
                self.stats.ended("cached")
            else:
                work = self._work(key, spec, fresh[key][0] if key in fresh else None, notes[key])
                work.client = client
                self._add((job, place), work)

    def _notes(self, key: str) -> tuple[str, ...]:
        if key in self.works:
            return self.works[key].notes
        row = self.store.database.object(key)
        return () if row is None else tuple(json.loads(row["about"])["notes"])

    def _add(self, owner: Owner, work: Work) -> None:
        """Queue an object, or join those who wait for it already."""
        known = self.works.setdefault(work.key, work)
        known.owners.append(owner)
        if known is work:
            self.scheduler.add(work)

    def _work(self, key: str, spec: ObjectSpec, request: Request | None, notes: Sequence[str]) -> Work:
        return Work(key=key, spec=spec, num_tokens=self.steps.num_tokens, request=request, notes=tuple(notes))

    def _prepare(self, work: Work) -> Request:
        request, work.notes = self.steps.request(work.spec.prompt, work.spec.sampling, work.spec.box)
        return request

    def remove_job(self, job: str, *, forget: bool = True) -> None:
        """Cancel a job that is under way, its slots freed before the next step; forget one that has ended.

        Args:
            forget: False leaves one that has ended as it is.

        Raises:
            ApiError: there is no such job (404).
        """
        with self.lock:
            row = self.store.database.job(job)
            if row is None:
                raise not_found("job", job)
            if row["ended_at"] is not None:
                if forget:
                    self.store.database.delete_job(job)
                    self.hub.publish(job, "gone", {})
                return
            places = [item["place"] for item in self.store.database.items(job) if item["status"] == "live"]
            # Free at once, even if the disk does not take it now.
            self.late.end([(job, place) for place in places], "cancelled")
            for work in [w for w in self.works.values() if any(owner[0] == job for owner in w.owners)]:
                work.owners = [owner for owner in work.owners if owner[0] != job]
                self.stats.ended("cancelled")
                if not work.owners:
                    work.cancelled = True
                    del self.works[work.key]
                    self.scheduler.cancel(work)
        self.teller.end([job])

    def delete_object(self, key: str) -> None:
        """Delete a finished object and its files.

        Raises:
            ApiError: there is no such object (404).
        """
        self.store.row(key)
        self.store.delete(key)
        self.previews.drop(lambda entry: isinstance(entry, tuple) and entry[0] == key)
