"""JSON that goes out, with examples: what /openapi.json describes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from helicube.serve.object_request import ID, PROMPT

__all__ = [
    "EngineState",
    "ErrorBody",
    "Health",
    "JobBody",
    "JobList",
    "ObjectBody",
    "ObjectList",
    "PlanNames",
    "SessionRequest",
    "Settings",
]


class SessionRequest(BaseModel):
    """A browser's way to show its key once."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"api_key": "the key"}]})
    api_key: str = Field(min_length=1, max_length=1000)


class ErrorText(BaseModel):
    """What went wrong."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Every answer of 400 and above."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error": {"code": "queue_full", "message": "64 objects wait already"}}]}
    )
    error: ErrorText


class Health(BaseModel):
    """Whether the service works."""

    status: Literal["ok", "stopping", "broken"]


class Times(BaseModel):
    """Seconds of each stage."""

    queued_s: float
    tokens_s: float
    mesh_s: float
    total_s: float


class ObjectBody(BaseModel):
    """A finished object."""

    id: str = Field(examples=[ID])
    prompt: str = Field(examples=[PROMPT])
    seed: int
    created_at: float
    num_triangles: int
    num_vertices: int
    extents: list[float] = Field(description="Sizes along x, y, z in metres, y up.")
    notes: list[str]
    settings: dict[str, Any]
    times: Times
    tpot_s: float | None
    model: str
    urls: dict[str, str]


class ObjectList(BaseModel):
    """Finished objects, newest first."""

    objects: list[ObjectBody]
    next: str | None = Field(description="`before` of the next page; null on the last.")


class Preview(BaseModel):
    """The newest coarse mesh."""

    level: int
    url: str
    num_triangles: int
    elapsed_s: float


class JobObject(BaseModel):
    """An object of a job, under way or ended."""

    index: int
    id: str = Field(examples=[ID])
    prompt: str
    seed: int
    status: Literal["queued", "decoding", "meshing", "done", "failed", "cancelled"]
    queue_position: int | None
    tokens_done: int
    tokens_total: int
    tpot_s: float | None
    tokens_per_s: float | None
    cached: bool
    preview: Preview | None
    error: ErrorText | None
    notes: list[str]
    url: str | None
    object: ObjectBody | None


class JobBody(BaseModel):
    """A job and its objects."""

    id: str = Field(examples=[ID])
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    created_at: float
    ended_at: float | None
    request: dict[str, Any]
    objects: list[JobObject]
    events_url: str


class JobList(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobBody]


class Settings(BaseModel):
    """Bounds and defaults."""

    model: str
    version: str
    needs_key: bool
    tokens_total: int
    limits: dict[str, Any]
    defaults: dict[str, Any]
    qualities: dict[str, int]
    formats: list[str]


class BatchEntry(BaseModel):
    """What is in a slot."""

    index: int
    job: str | None
    prompt: str
    tokens_done: int
    tokens_total: int


class Sample(BaseModel):
    """A second of the live view."""

    at: float
    running: float
    queued: float
    tokens_per_s: float | None
    tpot_s: float | None


class EngineState(BaseModel):
    """The live engine; medians are of the last hundred objects."""

    model: str
    device: str
    slots: int
    running: int
    queued: int
    meshing: int
    num_done: int
    num_failed: int
    num_cancelled: int
    num_cached: int
    tpot_s: float | None
    tokens_per_s: float | None
    ttft_s: float | None
    first_preview_s: float | None
    object_s: float | None
    uptime_s: float
    cache_bytes: int
    cache_limit_bytes: int
    num_objects: int
    batch: list[BatchEntry]
    history: list[Sample]


class PlanNames(BaseModel):
    """What the planner knows by name."""

    models: list[str]
    gpus: list[str]
    engines: list[str]
