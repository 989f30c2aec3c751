"""What is asked for, as JSON: its fields and their bounds, and the objects that it means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from helicube.engine.sampling import SamplingConfig
from helicube.errors import InputError
from helicube.models.cube.text import MAX_PROMPT_CHARS, check_prompt
from helicube.pipelines.box import parse_box
from helicube.pipelines.soundness import USUAL_CANDIDATES
from helicube.pipelines.usual_sampling import sampling_of, usual_sampling
from helicube.serve.config import MOST_CANDIDATES, MOST_PROMPTS, MOST_TRIANGLES, MOST_VARIANTS, Limits
from helicube.serve.work import ObjectSpec

__all__ = ["ID", "MAX_SEED", "PROMPT", "ObjectRequest", "check_limits", "specs_of"]

Format = Literal["glb", "obj", "stl", "ply", "json"]
Quality = Literal["draft", "standard", "fine"]
# Whole numbers beyond this are not exact in JavaScript.
MAX_SEED = 2**53 - 1
# Examples.
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
    best_of: int = Field(
        USUAL_CANDIDATES,
        ge=1,
        le=MOST_CANDIDATES,
        description="Candidates drawn for each object; the one that hangs together best is kept.",
    )
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
        ("best_of", request.best_of, limits.candidates),
        ("max_triangles", request.max_triangles, limits.triangles),
        ("objects (prompts × variants)", num_objects, limits.most_objects),
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
    # All candidates of a greedy request are the same: one is enough, and no other object.
    best_of = request.best_of if sampling.temperature else 1
    box = None if request.box is None else (request.box[0], request.box[1], request.box[2])
    return [
        ObjectSpec(
            prompt=prompt, seed=request.seed + variant, guidance=float(sampling.guidance_scale),
            temperature=float(sampling.temperature), top_p=float(sampling.top_p), box=box, quality=request.quality,
            max_triangles=request.max_triangles, size_m=request.size_m, pivot=request.pivot, up=request.up,
            best_of=best_of,
        )
        for prompt in map(check_prompt, request.prompts)
        for variant in range(request.variants)
    ]  # fmt: skip
