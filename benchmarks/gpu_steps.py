"""Whole decode steps on random weights: plain PyTorch, these kernels, and these kernels in a graph.

Times do not depend on the numbers in the weights, only on their sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from gpu_timing import Call, Clock, capture, clock
from torch import Tensor

from helicube.engine.metrics import cache_bytes
from helicube.engine.plain_step import PlainStep
from helicube.engine.runner import CubeRunner
from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.cube_weights import cube_weights
from helicube.kernels.triton.decode_step import DecodeStep, StepWeights
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.nn.cache import CacheSpec
from helicube.nn.quantize import WeightFormat, quantize

DEVICE, DTYPE = "cuda", torch.bfloat16
NUM_TEXT = 77
# Tokens in the cache when the clock starts: the middle of an object, as in the CPU figures.
START = 522


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a step is."""

    mode: str
    weights: str
    # Prompts, each with a guided and an unguided row.
    batch: int
    # Weights, and keys and values at START tokens, that a step reads.
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One line of the table."""

    subject: Subject
    # Per token of each prompt.
    tpot: Clock
    # Compilation, capture and first run.
    setup_s: float
    peak_bytes: int


def random_decoder(config: DecoderConfig) -> CubeDecoder:
    with torch.device("meta"):
        decoder = CubeDecoder(config).to(DTYPE)
    decoder = decoder.to_empty(device=DEVICE).eval().requires_grad_(False)
    for p in decoder.parameters():
        p.normal_(std=0.02) if p.dim() > 1 else p.fill_(1.0)
    return decoder


def convert_to(name: str) -> Callable[[Tensor], tuple[Tensor, Tensor | None]]:
    if name == "bfloat16":
        return lambda w: (w, None)
    return lambda w: quantize(w, WeightFormat(name=name, group=64 if name == "int4" else 0))


def weights_of(decoder: CubeDecoder, form: str, tokens: int) -> StepWeights:
    c = decoder.config
    return cube_weights(
        decoder.state_dict(),
        decoder.places(tokens).rotary,
        num_heads=c.n_head,
        prefix_slots=NUM_TEXT + int(c.use_bbox),
        eps=c.eps,
        convert=convert_to(form),
    )


class StepCase:
    """Slots in the middle of their objects, on random keys and values.

    Args:
        tokens: shape tokens per object.
    """

    def __init__(self, decoder: CubeDecoder, weights: StepWeights, batch: int, tokens: int) -> None:
        c = decoder.config
        self.config, self.batch, self.tokens = c, batch, tokens
        self.spec = decoder.cache_spec(NUM_TEXT, tokens)
        self.state = SamplingState.empty(batch, 2, tokens, [(0, c.shape_model_vocab_size)], DEVICE)
        shapes = [(2 * batch, s.num_heads, s.num_prefix + tokens, s.head_dim) for s in self.spec.layers]
        self.caches = [[torch.randn(shape, device=DEVICE, dtype=DTYPE) for shape in shapes] for _ in "kv"]
        keys, values = self.caches
        self.step = DecodeStep(weights, keys, values, self.state, max_width=c.shape_model_vocab_size)
        self.num_bytes = weights.num_bytes + cache_bytes(self.spec, 2 * batch, START, DTYPE.itemsize)

    def reset(self, at: int) -> None:
        """All slots with `at` tokens in the cache."""
        _fill(self.state, self.config, self.tokens, at)


def measure_step(step: Call, reset: Callable[[int], None], about: Subject, *, steps: int = 100) -> StepRow:
    """Time any step that is a callable without arguments and keeps its own state.

    Args:
        reset: puts so many tokens into every slot.
        steps: per measurement; two of them and the warm-up must fit between START and the end.
    """
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    reset(START)
    started = time.perf_counter()
    step()
    torch.cuda.synchronize()
    setup_s = time.perf_counter() - started
    reset(START)
    tpot = clock(step, repeats=steps)
    return StepRow(subject=about, tpot=tpot, setup_s=setup_s, peak_bytes=torch.cuda.max_memory_allocated())


def time_plain(decoder: CubeDecoder, batch: int, tokens: int) -> StepRow:
    """The plain decoder, eager, one forward per step."""
    spec = decoder.cache_spec(NUM_TEXT, tokens)
    runner = CubeRunner(decoder, spec, num_slots=batch)
    ids = torch.zeros(batch, dtype=torch.int64, device=DEVICE)

    def step() -> Tensor:
        return runner.step(ids, [START] * batch).argmax(dim=-1)

    return measure_step(step, lambda _: None, _about_plain(decoder, spec, batch))


def time_uncached(decoder: CubeDecoder, batch: int, tokens: int) -> StepRow:
    """The whole sequence anew at each step: where the published ablation begins, without its graphs."""
    spec = decoder.cache_spec(NUM_TEXT, tokens)
    runner = CubeRunner(decoder, spec, num_slots=batch, cache=False)
    ids = torch.zeros(batch, dtype=torch.int64, device=DEVICE)
    eager = _about_plain(decoder, spec, batch)

    def reset(at: int) -> None:
        runner.history = [[0] * at for _ in range(batch)]

    about = replace(eager, mode="no cache")
    return measure_step(lambda: runner.step(ids, [START] * batch).argmax(dim=-1), reset, about, steps=5)


def time_plain_graph(decoder: CubeDecoder, batch: int, tokens: int) -> StepRow:
    """PyTorch's operators over static buffers, captured."""
    spec = decoder.cache_spec(NUM_TEXT, tokens)
    runner = CubeRunner(decoder, spec, num_slots=batch)
    state = SamplingState.empty(batch, 2, tokens, [(0, decoder.config.shape_model_vocab_size)], DEVICE)
    started = time.perf_counter()
    graph = capture([PlainStep(decoder, runner.cache, runner.places, state)])
    setup_s = time.perf_counter() - started
    about = replace(_about_plain(decoder, spec, batch), mode="torch graph")
    row = measure_step(graph.replay, lambda at: _fill(state, decoder.config, tokens, at), about)
    return replace(row, setup_s=setup_s + row.setup_s)


def _about_plain(decoder: CubeDecoder, spec: CacheSpec, batch: int) -> Subject:
    weights = [p for name, p in decoder.named_parameters() if _in_shape_stream(name)]
    num_bytes = sum(p.nbytes for p in weights) + cache_bytes(spec, 2 * batch, START, DTYPE.itemsize)
    return Subject(mode="torch eager", weights="bfloat16", batch=batch, num_bytes=num_bytes)


def _fill(state: SamplingState, config: DecoderConfig, tokens: int, at: int) -> None:
    """All slots with `at` tokens in the cache."""
    for slot in range(len(state.steps)):
        state.start(slot, config.bos_id, tokens, guidance=3.0, temperature=1.0, key=slot)
    state.steps.fill_(at)
    state.positions.fill_(at)
    state.lengths.fill_(at + 1)


def _in_shape_stream(name: str) -> bool:
    return name.startswith(("transformer.", "lm_head")) and not any(s in name for s in ("pre_c", "post_2", "wte"))


def time_steps(
    decoder: CubeDecoder, forms: tuple[str, ...], batches: tuple[int, ...], tokens: int
) -> Iterator[StepRow]:
    for form in forms:
        weights = weights_of(decoder, form, tokens)
        for batch in batches:
            case = StepCase(decoder, weights, batch, tokens)
            eager = Subject(mode="triton eager", weights=form, batch=batch, num_bytes=case.num_bytes)
            if batch == batches[0]:
                yield measure_step(case.step, case.reset, eager)
            case.reset(START)
            started = time.perf_counter()
            graph = capture([case.step])
            setup_s = time.perf_counter() - started
            row = measure_step(graph.replay, case.reset, replace(eager, mode="triton graph"))
            yield replace(row, setup_s=setup_s + row.setup_s)
