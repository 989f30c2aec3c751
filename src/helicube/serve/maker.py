"""What becomes of an object: how far the engine's thread says it is, and what the mesh threads make of its ids."""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from helicube.errors import GeometryError, HelicubeError, InputError
from helicube.geometry.export import encode
from helicube.geometry.mesh import Mesh
from helicube.models.cube.lattice_code import Shape
from helicube.serve.mesh_workers import COARSE, FINAL, FINER
from helicube.serve.work import Work

if TYPE_CHECKING:
    from helicube.serve.service import Service

__all__ = ["Maker"]

# Least seconds between two tellings of progress, and finished meshes waiting above which the finer preview is left out.
TELL_S, BUSY_MESHES = 0.1, 4

log = logging.getLogger(__name__)


class Maker:
    """Takes work from its first token to its place in the store; listens to the scheduler."""

    def __init__(self, service: Service) -> None:
        self.service, self.steps, self.store, self.stats = service, service.steps, service.store, service.stats
        self.view, self.teller = service.view, service.teller

    # What the engine's thread reports.

    def joined(self, work: Work) -> None:
        self.service.attempts.add(work)
        self.teller.live(work)

    def stepped(self, work: Work) -> None:
        if not work.told_s:
            self.stats.observe("ttft_s", work.first_token_s - work.queued_s)
        if work.last_token_s - work.told_s < TELL_S:
            return
        work.told_s = work.last_token_s
        for job, place in work.owners:
            self.teller.progress(work, job, place, None)

    def shape_known(self, work: Work, ids: NDArray[np.int64]) -> None:
        self.service.meshes.add(COARSE, work, lambda: self._preview(work, ids, 0))

    def decoded(self, work: Work) -> None:
        work.status = "meshing"
        self.service.attempts.take_back(work)
        self.stats.observe("tpot_s", work.tpot_s or 0.0)
        if len(work.draws) > 1:
            # As urgent as what it decides, which comes behind it.
            self.service.meshes.add(FINER, work, lambda: self._choose(work))
        else:
            work.ids = work.draws[0].ids
            self._build_later(work)
        self.teller.live(work)

    def failed(self, work: Work, error: Exception) -> None:
        """Book an object that came to nothing; the one report that waits for the disk."""
        if isinstance(error, HelicubeError):
            codes = {InputError: "invalid_request", GeometryError: "geometry"}
            code = next((name for kind, name in codes.items() if isinstance(error, kind)), type(error).__name__)
            code, text = code.removesuffix("Error"), str(error)
        else:
            code, text = "internal", f"the object could not be made ({type(error).__name__}); report it with its prompt"
        log.warning("object %s failed", work.key, exc_info=None if isinstance(error, HelicubeError) else error)
        with self.service.lock:
            if work.cancelled or self.service.works.get(work.key) is not work:
                return
            # What is queued for it, a finer preview for one, is not built any more.
            work.cancelled = True
            self.service.late.end(work.owners, "failed", {"code": code.lower(), "message": text})
            del self.service.works[work.key]
            self.stats.ended("failed")
        self.service.late.settled(work)
        self.teller.objects(work)
        self.teller.end(job for job, _ in work.owners)

    # What the mesh threads do.

    def _choose(self, work: Work) -> None:
        candidates = [draw.ids for draw in work.draws if draw.ids is not None]
        work.ids = self.steps.soundest(work.spec.box, candidates)
        self._build_later(work)

    def _build_later(self, work: Work) -> None:
        ids = work.ids
        assert ids is not None, "ids are chosen before they are built"
        if self.service.meshes.num_pending < BUSY_MESHES:
            self.service.meshes.add(FINER, work, lambda: self._preview(work, ids, 1))
        self.finish_later(work)

    def _shape(self, work: Work, ids: NDArray[np.int64]) -> Shape:
        """The field of the ids; that of all of them serves the finer preview and the object."""
        shape = work.shape or self.steps.shape(ids, work.spec.box)
        if len(ids) == work.num_tokens:
            work.shape = shape
        return shape

    def _preview(self, work: Work, ids: NDArray[np.int64], level: int) -> None:
        try:
            mesh = self.steps.preview(self._shape(work, ids), work.spec.box, work.spec.mesh_options, level)
            data = encode(mesh, "glb", name=work.spec.prompt[:60])[""]
        except GeometryError:
            # A field that has no surface yet may have one with all ids; the finished object says what is wrong.
            return
        except Exception:
            log.exception("no preview of object %s", work.key)
            return
        elapsed_s = time.monotonic() - work.queued_s
        self.service.previews.put((work.key, level), data)
        if work.preview is None:
            self.stats.observe("first_preview_s", elapsed_s)
        work.preview = (level, mesh.num_faces, elapsed_s)
        for job, place in work.owners:
            self.service.hub.publish(job, "preview", {"index": place, **self.view.preview(job, place, work)})

    def finish_later(self, work: Work) -> None:
        ids = work.ids
        assert ids is not None, "decoded work has ids"
        self.service.meshes.add(FINAL, work, lambda: self._finish(work, ids))

    def _finish(self, work: Work, ids: NDArray[np.int64]) -> None:
        mesh = self.steps.mesh(self._shape(work, ids), work.spec.box, work.spec.mesh_options)
        about = self.view.about(work, mesh, self.service.model_name)
        try:
            self._keep(work, mesh, about)
        except (OSError, sqlite3.Error) as error:
            # Nothing is wrong with the object: it stays under way, and is kept once there is room.
            self.service.late.park(work, error)
            return
        if work.cancelled:
            return
        self.service.late.settled(work)
        self.stats.observe("object_s", about["times"]["total_s"])
        self.stats.ended("done")
        self.teller.objects(work)
        self.teller.end(job for job, _ in work.owners)
        try:
            self.store.trim(work.key)
        except (OSError, sqlite3.Error) as error:
            self.store.disk.refused(error)

    def _keep(self, work: Work, mesh: Mesh, about: dict[str, Any]) -> None:
        # The slow part, before the lock.
        staged = self.store.files.stage(work.key, mesh)
        try:
            with self.service.lock:
                if not work.cancelled:
                    self.store.finish(work.key, staged, about, work.owners)
                    del self.service.works[work.key]
        finally:
            staged[0].unlink(missing_ok=True)
