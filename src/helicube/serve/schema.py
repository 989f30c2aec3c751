"""JSON in and out, with examples: what /openapi.json describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from helicube.engine.sampling import SamplingConfig
from helicube.errors import InputError
from helicube.models.cube.text import MAX_PROMPT_CHARS, check_prompt
from helicube.pipelines.text_to_shape import parse_box, sampling_of, usual_sampling
from helicube.serve.config import MOST_PROMPTS, MOST_TRIANGLES, MOST_VARIANTS, Limits
from helicube.serve.work import ObjectSpec

__all__ = [
    "MAX_SEED",
    "EngineState",
    "ErrorBody",
    "Health",
    "JobBody",
    "JobList",
    "ObjectBody",
    "ObjectList",
    "ObjectRequest",
    "PlanNames",
    "SessionRequest",
    "Settings",
    "check_limits",
    "specs_of",
]

Format = Literal["glb", "obj", "stl", "ply", "json"]
Quality = Literal["draft", "standard", "fine"]
# Whole numbers beyond this are not exact in JavaScript.
MAX_SEED = 2**53 - 1
PROMPT = "a red wooden chair"
ID = "0123456789abcdef0123456789abcdef"

Prompt = Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARS)]
Side = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]


class ObjectRequest(BaseModel):
    """What to make."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"prompt": PROMPT}, {"prompt": [PROMPT, "an oak table"], "variants": 2}]},
    )

    prompt: Prompt | Annotated[list[Prompt], Field(min_length=1, max_length=MOST_PROMPTS)]
    seed: int = Field(0, ge=0, le=MAX_SEED, description="Counted up over the variants.")
    variants: int = Field(1, ge=1, le=MOST_VARIANTS, description="Objects per prompt.")
    guidance: float | None = Field(
        None,
        ge=0,
        le=100,
        allow_inf_nan=False,
        description="How closely to follow the prompt; null: by model.",
    )
    temperature: float | None = Field(
        None, ge=0, le=10, allow_inf_nan=False, description="0 takes the likeliest; null: by model."
    )
    top_p: float | None = Field(
        None, gt=0, le=1, allow_inf_nan=False, description="Share of likeliest choices drawn from; null: by model."
    )
    box: Annotated[list[Side], Field(min_length=3, max_length=3)] | None = Field(
        None, description="Proportions x, y, z that the object fills exactly; at most 64 to 1."
    )
    quality: Quality = Field("standard", description="64, 128 or 256 cells along the longest side.")
    max_triangles: int = Field(20_000, ge=4, le=MOST_TRIANGLES)
    size_m: float | None = Field(
        None, ge=1e-3, le=1e3, allow_inf_nan=False, description="Longest side in metres; null: the model's own."
    )
    pivot: Literal["base", "center"] = "base"
    up: Literal["y", "z"] = Field(
        "y", description="Axis that points up in OBJ, STL and PLY; GLB and JSON are always +Y up."
    )
    format: Format = Field("glb", description="Which file `url` names; all formats can be had.")

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt

    @property
    def as_dict(self) -> dict[str, Any]:
        return self.model_dump() | {"prompt": self.prompts}


def check_limits(request: ObjectRequest, limits: Limits) -> None:
    """Hold a request against the bounds of this service, which may be tighter than the schema's.

    Raises:
        InputError: a bound is exceeded.
    """
    num_prompts, num_objects = len(request.prompts), len(request.prompts) * request.variants
    for name, value, most in (
        ("prompts", num_prompts, limits.prompts),
        ("variants", request.variants, limits.variants),
        ("max_triangles", request.max_triangles, limits.triangles),
        ("objects (prompts × variants)", num_objects, limits.objects),
    ):
        if value > most:
            raise InputError(f"{name} {value} is too many; at most {most} are taken")


def specs_of(request: ObjectRequest, usual: SamplingConfig) -> list[ObjectSpec]:
    """One object per prompt and variant, with the same defaults as `helicube generate`.

    Args:
        usual: how the model's ids are chosen unless the request says otherwise.

    Raises:
        PromptError: a prompt is empty or holds what no prompt may.
        InputError: a box out of range, or a seed that counts beyond the last.
    """
    parse_box(request.box)
    if request.seed + request.variants - 1 > MAX_SEED:
        raise InputError(f"seed {request.seed} leaves no room for {request.variants} variants; choose a smaller one")
    usual = usual_sampling(usual, request.variants)
    sampling = sampling_of(usual, request.guidance, request.temperature, request.top_p, request.seed)
    box = None if request.box is None else (request.box[0], request.box[1], request.box[2])
    return [
        ObjectSpec(
            prompt=prompt, seed=request.seed + variant, guidance=float(sampling.guidance_scale),
            temperature=float(sampling.temperature), top_p=float(sampling.top_p), box=box, quality=request.quality,
            max_triangles=request.max_triangles, size_m=request.size_m, pivot=request.pivot, up=request.up,
        )
        for prompt in map(check_prompt, request.prompts)
        for variant in range(request.variants)
    ]  # fmt: skip


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
