"""Jobs from acceptance to their end: the queue, the engine, the meshes and the disk, tied together."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from helicube.engine.request import Request
from helicube.errors import HelicubeError, InputError
from helicube.geometry.export import encode
from helicube.pipelines.object_steps import ObjectSteps, fingerprint
from helicube.pipelines.text_to_shape import TextToShape
from helicube.serve.byte_cache import ByteCache
from helicube.serve.config import ServeConfig
from helicube.serve.database import NewItem
from helicube.serve.events import Hub
from helicube.serve.mesh_workers import COARSE, FINAL, FINER, MeshWorkers
from helicube.serve.problem import ApiError, not_found
from helicube.serve.scheduler import Scheduler
from helicube.serve.stats import Stats
from helicube.serve.store import Store
from helicube.serve.view import View
from helicube.serve.work import ObjectSpec, Owner, Work

__all__ = ["Service"]

# Bytes of previews, least seconds between two tellings of progress, and finished meshes waiting above which the finer
# preview is left out.
PREVIEW_BYTES, TELL_S, BUSY_MESHES = 64 << 20, 0.1, 4


class Service:
    """What stands behind the routes.

    Args:
        pipeline: a loaded model.
        config: see there.

    Raises:
        InputError: the data directory is in use, or cannot be written.
    """

    def __init__(self, pipeline: TextToShape, config: ServeConfig) -> None:
        self.config, self.steps = config, ObjectSteps(pipeline)
        self.model_name, self.model_id = pipeline.model.name, fingerprint(pipeline)
        self.hub, self.stats = Hub(), Stats()
        self.store = Store(config.data_dir, config.limits.cache_bytes)
        self.previews = ByteCache(PREVIEW_BYTES)
        # Guards the work under way together with its rows, so that neither is seen without the other.
        self.lock = threading.RLock()
        self.works: dict[str, Work] = {}
        self.stopping = False
        self.drainer = threading.Thread(target=self._drain, name="helicube-drain", daemon=True)
        engine = pipeline.engine(config.slots, True)
        self.scheduler = Scheduler(engine, self, self._prepare, self.steps.num_shape_ids)
        self.meshes = MeshWorkers(config.mesh_threads)
        self.view = View(self)

    # Life.

    def start(self) -> None:
        """Take up what an earlier process left unfinished, and begin."""
        for row in self.store.database.unfinished():
            spec = ObjectSpec.from_dict(json.loads(row["spec"]))
            key = spec.key(self.model_id)
            if key != row["object"]:
                # Another model, or another version of helicube.
                self.store.database.rename_item(row["job"], row["place"], key)
            self._add((row["job"], row["place"]), key, spec, None, tuple(json.loads(row["notes"])))
        self.meshes.start()
        self.scheduler.start()

    @property
    def is_sound(self) -> bool:
        return self.scheduler.is_sound and self.meshes.is_sound

    def begin_stop(self) -> None:
        """Take no more jobs, and let what is in the slots finish; listeners are then told to go."""
        if not self.stopping:
            self.stopping = True
            self.drainer.start()

    def _drain(self) -> None:
        self.scheduler.drain()
        self._wait_until_idle()
        self.hub.publish_all("closing", {})

    def _wait_until_idle(self) -> None:
        until = time.monotonic() + self.config.grace_s
        while time.monotonic() < until and not (self.scheduler.is_idle and self.meshes.is_idle):
            time.sleep(0.02)

    def stop(self) -> None:
        """End all threads. What is unfinished keeps its rows, and starts again with the next process."""
        self.begin_stop()
        self.drainer.join()
        self.scheduler.stop(timeout_s=5.0)
        self.meshes.stop(timeout_s=5.0)
        self.store.close()

    # Requests.

    def submit(self, request: dict[str, object], specs: Sequence[ObjectSpec]) -> str:
        """Accept a job; its id. All of it is on disk when this returns.

        Raises:
            PromptError: a prompt that the model cannot read.
            ApiError: the queue is full (429), or the service stops (503).
        """
        keys = [spec.key(self.model_id) for spec in specs]
        # Twice: before the prompts are encoded, which a flood should not cause, and when it counts.
        self._refuse_beyond_the_queue(keys)
        fresh: dict[str, tuple[Request, tuple[str, ...]]] = {}
        for key, spec in zip(keys, specs, strict=True):
            if key not in fresh and key not in self.works and not self.store.has(key):
                fresh[key] = self.steps.request(spec.prompt, spec.sampling, spec.box)
        job = secrets.token_hex(16)
        with self.lock:
            self._refuse_beyond_the_queue(keys)
            self._accept(job, request, dict(enumerate(zip(keys, specs, strict=True))), fresh)
        self.store.database.prune_jobs(self.config.limits.jobs)
        return job

    def _accept(
        self,
        job: str,
        request: dict[str, object],
        wanted: dict[int, tuple[str, ObjectSpec]],
        fresh: dict[str, tuple[Request, tuple[str, ...]]],
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
                self.store.database.touch(key)
                self.stats.ended("cached")
            else:
                self._add((job, place), key, spec, fresh[key][0] if key in fresh else None, notes[key])

    def _refuse_beyond_the_queue(self, keys: Sequence[str]) -> None:
        if self.stopping:
            raise ApiError(503, "the service is stopping; try again in a moment", retry_after_s=5)
        num_new = len({key for key in keys if key not in self.works and not self.store.has(key)})
        waiting, limit = self.scheduler.num_waiting, self.config.limits.queue
        if num_new and waiting + num_new > limit:
            each_s = self.stats.median("object_s") or 2.0
            wait_s = max(1.0, min(60.0, each_s * (1 + waiting / self.config.slots)))
            text = f"{waiting} objects wait already and at most {limit} may; try again in {wait_s:.0f} s"
            raise ApiError(429, text, code="queue_full", retry_after_s=wait_s)

    def _notes(self, key: str) -> tuple[str, ...]:
        if key in self.works:
            return self.works[key].notes
        row = self.store.database.object(key)
        return () if row is None else tuple(json.loads(row["about"])["notes"])

    def _add(self, owner: Owner, key: str, spec: ObjectSpec, request: Request | None, notes: tuple[str, ...]) -> None:
        """Queue an object, or join those who wait for it already."""
        if key in self.works:
            self.works[key].owners.append(owner)
            return
        work = Work(key=key, spec=spec, num_tokens=self.steps.num_tokens, request=request, notes=notes, owners=[owner])
        self.works[key] = work
        self.scheduler.add(work)

    def _prepare(self, work: Work) -> Request:
        request, work.notes = self.steps.request(work.spec.prompt, work.spec.sampling, work.spec.box)
        return request

    def remove_job(self, job: str) -> None:
        """Cancel a job that is under way, its slots freed before the next step; forget one that has ended.

        Raises:
            ApiError: there is no such job (404).
        """
        with self.lock:
            row = self.store.database.job(job)
            if row is None:
                raise not_found("job", job)
            if row["ended_at"] is not None:
                self.store.database.delete_job(job)
                return
            places = [item["place"] for item in self.store.database.items(job) if item["status"] == "live"]
            self.store.database.end_items([(job, place) for place in places], "cancelled")
            for work in [w for w in self.works.values() if any(owner[0] == job for owner in w.owners)]:
                work.owners = [owner for owner in work.owners if owner[0] != job]
                self.stats.ended("cancelled")
                if not work.owners:
                    work.cancelled = True
                    del self.works[work.key]
                    self.scheduler.cancel(work)
        self._tell_end([job])

    def delete_object(self, key: str) -> None:
        """Delete a finished object and its files.

        Raises:
            ApiError: there is no such object (404).
        """
        self.store.row(key)
        self.store.delete(key)

    # What the engine's thread reports.

    def joined(self, work: Work) -> None:
        self._tell_objects(work)

    def stepped(self, work: Work) -> None:
        if not work.told_s:
            self.stats.observe("ttft_s", work.first_token_s - work.queued_s)
        if work.last_token_s - work.told_s < TELL_S:
            return
        work.told_s = work.last_token_s
        for job, place in work.owners:
            self._tell_progress(work, job, place, None)

    def shape_known(self, work: Work, ids: NDArray[np.int64]) -> None:
        self.meshes.add(COARSE, work, lambda: self._preview(work, ids, 0))

    def decoded(self, work: Work) -> None:
        work.status = "meshing"
        self.stats.observe("tpot_s", work.tpot_s or 0.0)
        ids = work.ids
        assert ids is not None, "decoded work has ids"
        if self.meshes.num_pending < BUSY_MESHES:
            self.meshes.add(FINER, work, lambda: self._preview(work, ids, 1))
        self.meshes.add(FINAL, work, lambda: self._finish(work, ids))
        self._tell_objects(work)

    def failed(self, work: Work, error: Exception) -> None:
        """Book an object that came to nothing."""
        if isinstance(error, HelicubeError):
            code = "invalid_request" if isinstance(error, InputError) else type(error).__name__.removesuffix("Error")
            text = str(error)
        else:
            code, text = "internal", f"the object could not be made ({type(error).__name__}); report it with its prompt"
        with self.lock:
            if work.cancelled:
                return
            self.store.database.end_items(work.owners, "failed", {"code": code.lower(), "message": text})
            del self.works[work.key]
            self.stats.ended("failed")
        self._tell_objects(work)
        self._tell_end(job for job, _ in work.owners)

    # What the mesh threads do.

    def _preview(self, work: Work, ids: NDArray[np.int64], level: int) -> None:
        try:
            mesh = self.steps.preview(ids, work.spec.box, work.spec.mesh_options, level)
            data = encode(mesh, "glb", name=work.spec.prompt[:60])[""]
        except (HelicubeError, RuntimeError, ValueError):
            # A field that has no surface yet may have one with all ids; the finished object says what is wrong.
            return
        elapsed_s = time.monotonic() - work.queued_s
        self.previews.put((work.key, level), data)
        if work.preview is None:
            self.stats.observe("first_preview_s", elapsed_s)
        work.preview = (level, mesh.num_faces, elapsed_s)
        for job, place in work.owners:
            self.hub.publish(job, "preview", {"index": place, **self.view.preview(job, place, work)})

    def _finish(self, work: Work, ids: NDArray[np.int64]) -> None:
        try:
            mesh = self.steps.mesh(ids, work.spec.box, work.spec.mesh_options)
            about = self.view.about(work, mesh, self.model_name)
            with self.lock:
                if work.cancelled:
                    return
                self.store.finish(work.key, mesh, about, work.owners)
                del self.works[work.key]
        except (HelicubeError, RuntimeError, ValueError, OSError, MemoryError) as error:
            self.failed(work, error)
            return
        self.stats.observe("object_s", about["times"]["total_s"])
        self.stats.ended("done")
        self._tell_objects(work)
        self._tell_end(job for job, _ in work.owners)
        self.store.trim(work.key)

    # What listeners hear.

    def tell_positions(self) -> None:
        """Tell the listeners of queued objects how many are before each."""
        positions = self.scheduler.positions()
        for work in list(self.works.values()):
            if work.key in positions:
                for job, place in list(work.owners):
                    self._tell_progress(work, job, place, positions[work.key])

    def _tell_progress(self, work: Work, job: str, place: int, position: int | None) -> None:
        self.hub.publish(job, "progress", {"index": place, **work.progress, "queue_position": position})

    def _tell_objects(self, work: Work) -> None:
        for job, place in work.owners:
            if self.hub.listens(job) and (view := self.view.job(job)) is not None:
                self.hub.publish(job, "object", view["objects"][place])

    def _tell_end(self, jobs: Iterable[str]) -> None:
        for job in set(jobs):
            if self.hub.listens(job) and (view := self.view.job(job)) is not None and view["ended_at"] is not None:
                self.hub.publish(job, "end", view)
