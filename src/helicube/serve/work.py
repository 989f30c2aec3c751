"""One object to be made: what decides it, how far it is, and its candidates."""

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
from helicube.pipelines.box import parse_box
from helicube.pipelines.meshing import MeshOptions
from helicube.pipelines.soundness import USUAL_CANDIDATES
from helicube.serve.config import QUALITIES

__all__ = ["Draw", "ObjectSpec", "Owner", "Work"]

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
    # Candidates drawn, of which the soundest is kept.
    best_of: int

    @property
    def cost(self) -> float:
        """How many objects of the usual number of candidates it is as much work as."""
        return max(1.0, self.best_of / USUAL_CANDIDATES)

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
        # Databases of before there were candidates know of none.
        return cls(**({"best_of": 1} | raw | {"box": None if raw["box"] is None else tuple(raw["box"])}))

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
    # No owner is left, or it has failed: nothing more is done for it.
    cancelled: bool = False
    # Slots in use at the last step.
    batch: int = 0
    # Of the candidate that is kept, once it is chosen, and their shape.
    ids: NDArray[np.int64] | None = None
    shape: Shape | None = None
    # Newest preview: level, triangles, seconds since it was asked for.
    preview: tuple[int, int, float] | None = None
    # On the monotonic clock: asked for, joined the batch, first and last token, told of progress.
    queued_s: float = field(default_factory=time.monotonic)
    joined_s: float = 0.0
    first_token_s: float = 0.0
    last_token_s: float = 0.0
    told_s: float = 0.0
    draws: tuple[Draw, ...] = ()
    # Of `Attempts` alone: how many threads are at it, and whose items were counted for that.
    attempts: int = 0
    suspects: tuple[Owner, ...] = ()

    def __post_init__(self) -> None:
        self.draws = tuple(Draw(work=self, number=number) for number in range(self.spec.best_of))

    @property
    def tokens_done(self) -> int:
        """Of all candidates together."""
        return sum(draw.tokens_done for draw in self.draws)

    @property
    def tpot_s(self) -> float | None:
        """Seconds per token of a candidate, so far."""
        spent_s = sum(draw.last_token_s - draw.joined_s for draw in self.draws)
        return spent_s / self.tokens_done if self.tokens_done else None

    @property
    def progress(self) -> dict[str, Any]:
        done, spent_s = self.tokens_done, self.last_token_s - self.joined_s
        return {
            "status": self.status,
            "tokens_done": done,
            "tokens_total": self.num_tokens * len(self.draws),
            "tpot_s": self.tpot_s,
            "tokens_per_s": done / spent_s if done and spent_s > 0 else None,
        }


@dataclass(slots=True, kw_only=True, eq=False)
class Draw:
    """One candidate of an object: what takes a slot. Written by the engine's thread alone."""

    work: Work
    # 0 is the one with the object's own seed.
    number: int
    tokens_done: int = 0
    # Whether the listener knows of the shape, before all ids are there.
    shape_told: bool = False
    ids: NDArray[np.int64] | None = None
    # On the monotonic clock.
    joined_s: float = 0.0
    last_token_s: float = 0.0
