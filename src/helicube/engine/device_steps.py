"""Steps of a Cube decoder that need no host, from its weights, its cache and what was chosen for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from helicube.engine.faults import device_faults
from helicube.engine.graphs import Capture, CudaCapture, GraphSteps, Step, batch_sizes, call_each
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.options import EngineOptions, Resolved
from helicube.engine.plain_step import PlainStep
from helicube.engine.request import IdPlan
from helicube.engine.runner import CubeRunner
from helicube.kernels.sampling_state import SamplingState
from helicube.nn.quantize import parse_format, quantize

if TYPE_CHECKING:
    from helicube.kernels.triton.decode_step import StepWeights

__all__ = ["make_launch_runner"]

Convert = Callable[[Tensor], tuple[Tensor, Tensor | None]]


def make_launch_runner(runner: CubeRunner, plan: IdPlan, options: EngineOptions, resolved: Resolved) -> LaunchRunner:
    """A runner whose steps are Triton's kernels or PyTorch's operators, as graphs on CUDA.

    Args:
        runner: with a cache; its decoder's dense matrices are converted to the format that the options ask for, those
            that are quantised already stay as they are.

    Raises:
        DeviceError: out of memory, or the device cannot run the kernels.
    """
    device = runner.decoder.device
    with device_faults("the set-up of the engine"), torch.inference_mode():
        state = SamplingState.empty(
            runner.num_slots, runner.copies, runner.cache.spec.max_tokens, plan.ranges, device=device
        )
        if resolved.kernels.implementation == "triton":
            weights = _step_weights(runner, options.weights)
            make_step, weight_bytes = _triton_steps(runner, state, plan, weights), weights.num_bytes
        else:
            make_step, weight_bytes = _plain_steps(runner, state), None
    captured = resolved.graph and device.type == "cuda"
    capture: Capture = CudaCapture(device) if captured else call_each
    steps = GraphSteps(
        make_step,
        batch_sizes(runner.num_slots),
        capture,
        steps_per_graph=options.steps_per_launch if captured else 1,
        device=device,
    )
    return LaunchRunner(runner, state, steps, steps_per_launch=options.steps_per_launch, weight_bytes=weight_bytes)


def _plain_steps(runner: CubeRunner, state: SamplingState) -> Callable[[int], Step]:
    return lambda size: PlainStep(runner.decoder, runner.cache, runner.places, state.first(size))


def _step_weights(runner: CubeRunner, form: str) -> StepWeights:
    # It imports triton, which installations for CPUs lack.
    from helicube.kernels.triton.cube_weights import cube_weights

    config = runner.decoder.config
    return cube_weights(
        runner.decoder.state_dict(),
        runner.places.rotary,
        num_heads=config.n_head,
        prefix_slots=runner.cache.spec.layers[0].num_prefix,
        eps=config.eps,
        convert=_conversion(form),
    )


def _triton_steps(
    runner: CubeRunner, state: SamplingState, plan: IdPlan, weights: StepWeights
) -> Callable[[int], Step]:
    from helicube.kernels.triton.decode_step import DecodeStep

    cache, width = runner.cache, max(high - low for low, high in plan.ranges)
    return lambda size: DecodeStep(weights, cache.keys, cache.values, state.first(size), max_width=width)


def _conversion(weights: str) -> Convert | None:
    """Of dense matrices; None leaves them."""
    if weights == "auto":
        return None
    form = parse_format(weights)
    return lambda weight_NK: quantize(weight_NK, form)
