"""Jobs and objects as clients see them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from helicube.geometry.mesh import Mesh
from helicube.serve.database import Row
from helicube.serve.store import ENDINGS
from helicube.serve.work import Work

if TYPE_CHECKING:
    from helicube.serve.service import Service

__all__ = ["View"]

Json = dict[str, Any]
GONE = {
    "code": "gone",
    "message": "the object is no longer kept: deleted, damaged on the disk, or removed to make room; ask again",
}


class View:
    """Reads the rows of a service together with the work under way."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def about(self, work: Work, mesh: Mesh, model: str) -> Json:
        """What is kept of a finished object besides its mesh."""
        now = time.monotonic()
        return {
            "prompt": work.spec.prompt,
            "seed": work.spec.seed,
            "num_triangles": mesh.num_faces,
            "num_vertices": mesh.num_vertices,
            "extents": [float(x) for x in mesh.extents],
            "notes": list(work.notes),
            "settings": work.spec.settings,
            "times": {
                "queued_s": work.joined_s - work.queued_s,
                "tokens_s": work.last_token_s - work.joined_s,
                "mesh_s": now - work.last_token_s,
                "total_s": now - work.queued_s,
            },
            "tpot_s": work.tpot_s,
            "model": model,
        }

    def object(self, row: Row) -> Json:
        key = row["id"]
        urls = {ending: f"/v1/objects/{key}.{ending}" for ending in ENDINGS}
        return {"id": key, "created_at": row["created_at"], **json.loads(row["about"]), "urls": urls}

    def preview(self, job: str, place: int, work: Work) -> Json:
        assert work.preview is not None, "only work with a preview is asked for it"
        level, num_triangles, elapsed_s = work.preview
        return {
            "level": level,
            "url": f"/v1/jobs/{job}/previews/{place}/{level}.glb",
            "num_triangles": num_triangles,
            "elapsed_s": elapsed_s,
        }

    def job(self, job: str) -> Json | None:
        """A job with its objects; None if there is none of that id."""
        database = self.service.store.database
        # One lock for all reads: a job never shows as ended with an object that has not.
        with self.service.lock:
            row = database.job(job)
            if row is None:
                return None
            request = json.loads(row["request"])
            positions = self.service.scheduler.positions()
            objects = [self._job_object(job, item, request["format"], positions) for item in database.items(job)]
        return {
            "id": job,
            "status": job_status([item["status"] for item in objects], row["ended_at"] is not None),
            "created_at": row["created_at"],
            "ended_at": row["ended_at"],
            "request": request,
            "objects": objects,
            "events_url": f"/v1/jobs/{job}/events",
        }

    def _job_object(self, job: str, item: Row, file_format: str, positions: dict[str, int]) -> Json:
        key, spec = item["object"], json.loads(item["spec"])
        work = self.service.works.get(key) if item["status"] == "live" else None
        row = self.service.store.database.object(key) if item["status"] == "done" else None
        error = None if item["error"] is None else json.loads(item["error"])
        if item["status"] == "done" and row is None:
            error = GONE
        return {
            "index": item["place"],
            "id": key,
            "prompt": spec["prompt"],
            "seed": spec["seed"],
            "cached": bool(item["cached"]),
            "error": error,
            "notes": json.loads(item["notes"]),
            **self._progress(item, work, row),
            "queue_position": positions.get(key) if work is not None else None,
            "preview": self.preview(job, item["place"], work) if work is not None and work.preview else None,
            "url": None if row is None else f"/v1/objects/{key}.{file_format}",
            "object": None if row is None else self.object(row),
        }

    def live(self, job: str, place: int, work: Work) -> Json:
        """An object under way, without a look at the rows."""
        return {
            "index": place,
            "id": work.key,
            "prompt": work.spec.prompt,
            "seed": work.spec.seed,
            "cached": False,
            "error": None,
            "notes": list(work.notes),
            **work.progress,
            "queue_position": None,
            "preview": self.preview(job, place, work) if work.preview else None,
            "url": None,
            "object": None,
        }

    def _progress(self, item: Row, work: Work | None, row: Row | None) -> Json:
        if work is not None:
            return work.progress
        # Objects of before there were candidates know of none.
        total = self.service.steps.num_tokens * json.loads(item["spec"]).get("best_of", 1)
        about = None if row is None else json.loads(row["about"])
        status = "queued" if item["status"] == "live" else item["status"]
        return {
            "status": status,
            "tokens_done": total if status == "done" else 0,
            "tokens_total": total,
            "tpot_s": about and about["tpot_s"],
            "tokens_per_s": total / max(about["times"]["tokens_s"], 1e-9) if about else None,
        }

    def engine(self) -> Json:
        """The live state."""
        service = self.service
        running = list(service.scheduler.running.values())
        num_objects, cache_bytes = service.store.database.total_bytes()
        return {
            "model": service.model_name,
            "device": str(service.steps.model.decoder.device),
            "slots": service.config.slots,
            "running": len(running),
            "queued": service.scheduler.num_waiting,
            "meshing": service.meshes.num_pending,
            **service.stats.as_dict,
            "cache_bytes": cache_bytes,
            "cache_limit_bytes": service.store.cache_bytes,
            "num_objects": num_objects,
            "batch": [
                {
                    "index": i,
                    "job": next((job for job, _ in draw.work.owners), None),
                    "prompt": draw.work.spec.prompt,
                    "tokens_done": draw.tokens_done,
                    "tokens_total": draw.work.num_tokens,
                }
                for i, draw in enumerate(running)
            ],
        }


def job_status(statuses: list[str], ended: bool) -> str:
    """queued, running, done (one object at least), failed or cancelled, from what became of the objects."""
    if not ended:
        return "queued" if all(status == "queued" for status in statuses) else "running"
    return next((status for status in ("done", "cancelled", "failed") if status in statuses), "failed")
