"""A Cube decoder's steps in the native CPU kernels: one call for a step's logits, or for several whole steps."""

from __future__ import annotations

from torch import Tensor
from torch.profiler import record_function

from helicube.engine.kv_cache import KVCache
from helicube.engine.request import IdPlan
from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.stack import DecodeStack
from helicube.kernels.sampling_state import SamplingState
from helicube.models.cube.decode_stack import decode_stack
from helicube.models.cube.decoder import CubeDecoder

__all__ = ["NativeLogits", "NativeSteps", "bound_stack"]


def bound_stack(library: Library, decoder: CubeDecoder, cache: KVCache) -> DecodeStack:
    """The decoder's shape stream over a cache."""
    stack = decode_stack(library, decoder, cache.spec.max_tokens)
    stack.bind(cache.keys, cache.values, [layer.num_prefix for layer in cache.spec.layers])
    return stack


class NativeSteps:
    """Whole steps of the first slots, sampling included, in one native call: what a graph is on a GPU."""

    def __init__(self, stack: DecodeStack, state: SamplingState) -> None:
        self.stack, self.state = stack, state

    def __call__(self, num_slots: int, count: int) -> None:
        """Make up to `count` steps."""
        # The profiler sees nothing of what does not go through PyTorch.
        with record_function("helicube::native_steps"):
            self.stack.decode(self.state, num_slots, count)


class NativeLogits:
    """Logits of one step, operator by operator; the choice is PyTorch's.

    Args:
        plan: of all ids that may stand anywhere, the logits are computed.
    """

    def __init__(self, stack: DecodeStack, plan: IdPlan) -> None:
        self.stack, self.num_ids = stack, max(high for _, high in plan.ranges)

    def __call__(self, ids_R: Tensor, positions_R: Tensor) -> Tensor:
        """(R, ids)."""
        return self.stack.step_by_operators(ids_R, positions_R, ids_range=(0, self.num_ids))
