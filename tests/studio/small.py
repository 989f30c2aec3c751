"""A small model whose objects are smooth, so that meshes take milliseconds: random decoder, ellipsoids of its ids."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from helicube.engine.engine import Engine
from helicube.engine.options import EngineOptions
from helicube.engine.request import IdPlan
from helicube.engine.runner import Conditioning
from helicube.engine.sampling import SamplingConfig
from helicube.errors import PromptError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.lattice_code import Shape
from helicube.pipelines.shape_model import Conditioned
from helicube.pipelines.text_to_shape import TextToShape
from helicube.serve.object_request import ObjectRequest, specs_of
from helicube.serve.work import Work

WIDTH, NUM_TEXT, NUM_SHAPE, NUM_IDS = 12, 8, 32, 40


class SmallModel:
    """40 ids, the first 32 of which decide the shape and the rest its colours. "nothing" has no surface."""

    name = "small"
    remarks: tuple[str, ...] = ()
    sampling = SamplingConfig(top_p=0.9)

    def __init__(self) -> None:
        torch.manual_seed(5)
        config = DecoderConfig(n_layer=2, n_single_layer=1, n_head=2, n_embd=32, shape_model_vocab_size=50,
                               shape_model_embed_dim=4, text_model_embed_dim=WIDTH, use_bbox=True)  # fmt: skip
        self.decoder = CubeDecoder(config).eval().requires_grad_(False)
        self.plan = IdPlan(ranges=((0, 50),) * NUM_IDS)
        self.cache_spec = self.decoder.cache_spec(NUM_TEXT, NUM_IDS)

    @torch.inference_mode()
    def condition(self, prompts: Sequence[str], boxes: NDArray[np.float32] | None) -> Conditioned:
        states = torch.zeros(len(prompts) + 1, NUM_TEXT, WIDTH)
        for b, prompt in enumerate(prompts):
            words = prompt.split()
            if len(words) > NUM_TEXT:
                raise PromptError(f"the prompt has {len(words)} words; the model takes {NUM_TEXT}: shorten it")
            for t, word in enumerate(words):
                seed = int.from_bytes(word.encode()[:6], "little")
                states[b, t] = torch.randn(WIDTH, generator=torch.Generator().manual_seed(seed))
        cond = self.decoder.condition(states[:-1], None if boxes is None else torch.from_numpy(boxes))
        uncond = self.decoder.condition(states[-1:])[0]
        notes = tuple(("'zzz' is not a known word",) if "zzz" in prompt else () for prompt in prompts)
        return Conditioned(prompts=tuple(Conditioning(cond=row, uncond=uncond) for row in cond), notes=notes)

    def closer(self, prompt: str, seed: int) -> tuple[str, tuple[str, ...]]:  # noqa: ARG002 - the interface
        return prompt, ()

    def forced(self, box: NDArray[np.float32] | None) -> NDArray[np.int64]:  # noqa: ARG002 - the interface
        return np.full(NUM_IDS, -1, dtype=np.int64)

    @property
    def num_shape_ids(self) -> int:
        return NUM_SHAPE

    def decode_shape(self, ids: NDArray[np.int64]) -> Shape:
        radii = 0.4 + 0.5 * ids[:3].astype(np.float32) / 50
        waves = ids[3:NUM_SHAPE].astype(np.float32) / 50

        def field(points: NDArray[np.float32]) -> NDArray[np.float32]:
            ripple = 0.05 * np.sin(points @ (4 * waves[:3]) + 6 * waves.mean())
            return np.asarray(1 - np.linalg.norm(points / radii, axis=1) + ripple, dtype=np.float32)

        return Shape(sizes=np.ones(3, dtype=np.float32), field=field, colors=None)

    def decode(self, ids: NDArray[np.int64]) -> Shape:
        shape = self.decode_shape(ids)
        color = (5 * ids[NUM_SHAPE : NUM_SHAPE + 3]).astype(np.uint8)

        def paint(points: NDArray[np.float32]) -> NDArray[np.uint8]:
            return np.where(points[:, :1] > 0, color, color[::-1]).astype(np.uint8)

        return Shape(sizes=shape.sizes, field=shape.field, colors=paint)


class SlowSteps(TextToShape):
    """Steps that last, so that there is time to cancel, kill and join in the midst of them."""

    def __init__(self, step_s: float) -> None:
        super().__init__(SmallModel(), EngineOptions(steps_per_launch=1))
        self.step_s = step_s

    def engine(self, num_slots: int, guided: bool) -> Engine:
        engine = super().engine(num_slots, guided)
        if self.step_s and not hasattr(engine, "slowed"):
            real = engine.step

            def step() -> dict[int, object]:
                time.sleep(self.step_s)
                return real()  # type: ignore[return-value]

            engine.step = step  # type: ignore[method-assign, assignment]
            engine.slowed = True  # type: ignore[attr-defined]
        return engine


def small_pipeline(step_s: float = 0.0) -> TextToShape:
    return SlowSteps(step_s)


def work_of(key: str) -> Work:
    """An object under way that nobody waits for."""
    request = ObjectRequest.model_validate({"prompt": "a chair"})
    return Work(key=key, spec=specs_of(request, SmallModel.sampling)[0], num_tokens=NUM_IDS, request=None, notes=())
