"""Speed features of the one engine: what is asked for, and what a device gives.

In float32 with greedy choice, every combination gives the same ids as the plain one (all off).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from helicube.errors import InputError
from helicube.kernels.choose import Choice, Facts, choose
from helicube.nn.quantize import FORMATS, parse_format

__all__ = ["KERNELS", "PLAIN", "WEIGHTS", "EngineOptions", "Kernels", "Resolved", "resolve"]

Kernels = Literal["auto", "plain", "native", "triton"]
KERNELS: tuple[Kernels, ...] = ("auto", "plain", "native", "triton")
# fp8 is for GPUs alone.
WEIGHTS = ("auto", *FORMATS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Each feature can be switched off."""

    # Whole steps, sampling included, without the host: captured and replayed on CUDA, one native call on a CPU.
    graph: bool = True
    # False recomputes the whole sequence at each step: slow, and the reference that the cache must equal.
    cache: bool = True
    # Format of the matrices that a step reads: one of WEIGHTS, or int4-g32 and the like; auto is as they were loaded.
    weights: str = "auto"
    # plain: PyTorch's operators. native: kernels.cpu. triton: kernels.triton. auto: the fastest that the device has.
    kernels: Kernels = "auto"
    # Steps between two looks at the ids, where steps need no host.
    steps_per_launch: int = 8

    def __post_init__(self) -> None:
        if self.weights != "auto":
            parse_format(self.weights)
        if self.kernels not in KERNELS:
            raise InputError(f"kernels {self.kernels!r} is unknown; choose one of {', '.join(KERNELS)}")
        if not 1 <= self.steps_per_launch <= 1024:
            raise InputError(f"steps_per_launch={self.steps_per_launch} is out of range; choose 1 to 1024")


# The reference.
PLAIN = EngineOptions(graph=False, cache=True, weights="auto", kernels="plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What runs, and why."""

    kernels: Choice
    # Whether whole steps run without the host, and why not where that was asked for.
    graph: bool
    graph_reason: str


def resolve(options: EngineOptions, stored: str, facts: Facts) -> Resolved:
    """Pure: what the options come to on a device.

    Args:
        stored: format of the weights as they are, where the options say auto.

    Raises:
        DeviceError: kernels or a format were asked for by name that the device cannot have.
    """
    weights = stored if options.weights == "auto" else options.weights
    choice = choose(weights, facts, options.kernels)
    if not options.cache:
        reason = "without a cache every step is the plain model over the whole sequence"
        return Resolved(kernels=Choice(implementation="torch", reason=reason), graph=False, graph_reason=reason)
    if not options.graph:
        return Resolved(kernels=choice, graph=False, graph_reason="switched off")
    if choice.implementation == "torch" and facts.device != "cuda":
        return Resolved(kernels=choice, graph=False, graph_reason=f"needs kernels ({choice.reason})")
    return Resolved(kernels=choice, graph=True, graph_reason=choice.reason)
