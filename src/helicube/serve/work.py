"""One object to be made: what decides it, and how far it is."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from helicube.engine.request import Request
from helicube.engine.sampling import SamplingConfig
from helicube.models.cube.lattice_code import Shape
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.text_to_shape import parse_box
from helicube.serve.config import QUALITIES

__all__ = ["ObjectSpec", "Owner", "Work"]

# A job's id, and the object's place in it.
Owner = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSpec:
    """Everything that decides an object, besides the model."""

    prompt: str
    seed: int
    guidance: float
    temperature: float
    top_p: float
    box: tuple[float, float, float] | None
    quality: str
    max_triangles: int
    size_m: float | None
    pivot: Literal["base", "center"]
    up: Literal["y", "z"]

    @property
    def sampling(self) -> SamplingConfig:
        return SamplingConfig(
            guidance_scale=self.guidance, temperature=self.temperature, top_p=self.top_p, seed=self.seed
        )

    @property
    def mesh_options(self) -> MeshOptions:
        return MeshOptions(
            cells=QUALITIES[self.quality],
            max_triangles=self.max_triangles,
            size_m=self.size_m,
            pivot=self.pivot,
        )

    def key(self, model: str) -> str:
        """The object's id, 32 hex digits: equal for equal objects.

        Args:
            model: see `pipelines.object_steps.fingerprint`.
        """
        sizes = parse_box(self.box)
        decides = asdict(self) | {"model": model, "box": None if sizes is None else sizes.tolist()}
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> ObjectSpec:
        return cls(**(raw | {"box": None if raw["box"] is None else tuple(raw["box"])}))

    @property
    def settings(self) -> dict[str, Any]:
        """All but the prompt and the seed."""
        return {name: value for name, value in asdict(self).items() if name not in {"prompt", "seed"}}


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """An object under way; several jobs may wait for it. Written by one thread at a time: queue, engine, mesh."""

    key: str
    spec: ObjectSpec
    num_tokens: int
    # None after a restart: made when its turn comes.
    request: Request | None
    notes: tuple[str, ...]
    owners: list[Owner] = field(default_factory=list)
    # Address of who asked first: whose share of the queue it takes.
    client: str = ""
    status: Literal["queued", "decoding", "meshing"] = "queued"
    # No owner is left.
    cancelled: bool = False
    handle: int = 0
    tokens_done: int = 0
    # Objects in the batch at the last step.
    batch: int = 0
    ids: NDArray[np.int64] | None = None
    # Of all ids, once decoded.
    shape: Shape | None = None
    shape_told: bool = False
    # Newest preview: level, triangles, seconds since it was asked for.
    preview: tuple[int, int, float] | None = None
    # On the monotonic clock: asked for, joined the batch, first and last token, told of progress.
    queued_s: float = field(default_factory=time.monotonic)
    joined_s: float = 0.0
    first_token_s: float = 0.0
    last_token_s: float = 0.0
    told_s: float = 0.0

    @property
    def tpot_s(self) -> float | None:
        """Seconds per token so far."""
        return (self.last_token_s - self.joined_s) / self.tokens_done if self.tokens_done else None

    @property
    def progress(self) -> dict[str, Any]:
        tpot_s = self.tpot_s
        return {
            "status": self.status,
            "tokens_done": self.tokens_done,
            "tokens_total": self.num_tokens,
            "tpot_s": tpot_s,
            "tokens_per_s": 1 / tpot_s if tpot_s else None,
        }
