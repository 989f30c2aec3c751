"""From a decoder and options to an engine."""

from __future__ import annotations

import torch

from helicube.engine.engine import Engine
from helicube.engine.faults import device_faults
from helicube.engine.host_runner import HostRunner
from helicube.engine.kv_cache import KVCache
from helicube.engine.launch_runner import LaunchRunner
from helicube.engine.native_steps import NativeLogits, NativeSteps, bound_stack
from helicube.engine.options import EngineOptions, Resolved, resolve
from helicube.engine.request import IdPlan
from helicube.engine.runner import CubeRunner
from helicube.errors import InputError
from helicube.kernels.choose import facts_of
from helicube.kernels.cpu.library import Library, load
from helicube.kernels.sampling_state import SamplingState
from helicube.models.cube.decoder import CubeDecoder
from helicube.models.cube.formats import hold_matrices, pack_matrices
from helicube.nn.cache import CacheSpec
from helicube.nn.linear import module_format

__all__ = ["make_engine", "prepare", "resolve_for"]

# More rows than any machine decodes side by side: a slip of the keyboard, not a plan.
MAX_SLOTS = 4096


def resolve_for(device: torch.device | str, stored: str, options: EngineOptions) -> Resolved:
    """What options come to on a device here.

    Args:
        stored: format of the weights as they are, where the options say auto.

    Raises:
        DeviceError: kernels or a format were asked for by name that the device cannot have.
    """
    # Where they are of no use, no kernels are compiled.
    native = options.kernels == "native" or (options.kernels == "auto" and options.cache)
    return resolve(options, stored, facts_of(device, native=native))


def prepare(decoder: CubeDecoder, options: EngineOptions) -> Resolved:
    """Convert a decoder's matrices, in place, to what the options ask for; once, before engines are made for it.

    Raises:
        DeviceError: the device cannot have what the options name, or no memory is left.
    """
    stored = module_format(decoder.lm_head)
    resolved = resolve_for(decoder.device, stored, options)
    form = stored if options.weights == "auto" else options.weights
    # Triton's kernels convert a copy of their own; the condition stream is used once per prompt.
    if resolved.kernels.implementation != "triton":
        with device_faults("conversion of the weights"):
            hold_matrices(decoder, form, native=resolved.kernels.implementation == "native")
    return resolved


def make_engine(
    decoder: CubeDecoder,
    spec: CacheSpec,
    plan: IdPlan,
    *,
    num_slots: int,
    guided: bool = True,
    options: EngineOptions | None = None,
) -> Engine:
    """An engine for a decoder, whose matrices are in the format that they shall have.

    Args:
        spec: what the decoder keeps per row.
        num_slots: requests decoded side by side.
        guided: whether requests may ask for guidance.

    Raises:
        InputError: the number of slots is out of range.
        DeviceError: the device cannot have what the options name, or no memory is left for so many slots.
    """
    options = options or EngineOptions()
    if not 1 <= num_slots <= MAX_SLOTS:
        raise InputError(f"{num_slots} objects at once are out of range; choose 1 to {MAX_SLOTS}")
    stored = module_format(decoder.lm_head)
    resolved = resolve_for(decoder.device, stored, options)
    with device_faults(f"the set-up of {num_slots} slots"), torch.inference_mode():
        native = load() if resolved.kernels.implementation == "native" else None
        store = None if native is None else _native_cache(native, stored, spec, num_slots * (1 + int(guided)))
        runner = CubeRunner(decoder, spec, num_slots=num_slots, guided=guided, cache=options.cache, store=store)
        if native is not None:
            pack_matrices(decoder, native)
            return Engine(_native_runner(native, runner, plan, options, graph=resolved.graph))
        if resolved.graph or resolved.kernels.implementation == "triton":
            from helicube.engine.device_steps import make_launch_runner

            return Engine(make_launch_runner(runner, plan, options, resolved))
    return Engine(HostRunner(runner, plan, device=decoder.device))


def _native_cache(library: Library, stored: str, spec: CacheSpec, rows: int) -> KVCache:
    # float32 weights promise the ids of the plain path; other formats round more than such keys do.
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}.get(stored, torch.int8)
    return KVCache(spec, rows, dtype=dtype, zeros=library.memory.zeros)


def _native_runner(
    library: Library, runner: CubeRunner, plan: IdPlan, options: EngineOptions, *, graph: bool
) -> HostRunner | LaunchRunner:
    stack = bound_stack(library, runner.decoder, runner.cache)
    if not graph:
        runner.step_rows = NativeLogits(stack, plan)
        return HostRunner(runner, plan)
    state = SamplingState.empty(runner.num_slots, runner.copies, runner.cache.spec.max_tokens, plan.ranges)
    steps = NativeSteps(stack, state)
    return LaunchRunner(runner, state, steps, steps_per_launch=options.steps_per_launch, reads_freely=True)
