"""Which implementation runs a decode step's products and attention, and why."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Literal

import torch

from helicube.errors import DeviceError

__all__ = ["Choice", "Facts", "Implementation", "choose", "facts_of"]

# triton: kernels.triton. native: kernels.cpu. torch: PyTorch's own operators.
Implementation = Literal["triton", "native", "torch"]

# Compute capability from which tensor cores take bfloat16, and from which fp8 converts in hardware.
TRITON_CAPABILITY = (8, 0)
FP8_CAPABILITY = (8, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the choice depends on."""

    # PyTorch's name of the kind of device.
    device: str
    # NVIDIA's compute capability; None elsewhere.
    capability: tuple[int, int] | None = None
    has_triton: bool = False
    # Whether the CPU kernels could be compiled.
    has_native: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An implementation and one line for whoever asks why."""

    implementation: Implementation
    reason: str


def choose(weights: str, facts: Facts, wanted: str = "auto") -> Choice:
    """The fastest implementation of a weight format on a device, or the one asked for.

    Args:
        weights: float32, bfloat16, int8, int4, or fp8.
        wanted: "auto", "plain", "native" or "triton".

    Raises:
        DeviceError: the device cannot hold that format's numbers, or has not the kernels asked for.
    """
    if weights == "fp8" and (facts.capability is None or facts.capability < FP8_CAPABILITY):
        raise DeviceError(f"fp8 weights need a GPU of compute capability 8.9 or above, not {_told(facts)}; choose int8")
    if wanted == "plain":
        return Choice(implementation="torch", reason="asked for")
    choice = _fastest(weights, facts)
    if wanted not in {"auto", choice.implementation}:
        why = "they are for GPUs" if wanted == "triton" and facts.device == "cpu" else choice.reason
        raise DeviceError(f"{wanted} kernels cannot run on {_told(facts)} ({why}); choose auto or plain")
    return choice


def _fastest(weights: str, facts: Facts) -> Choice:
    if facts.device == "cpu":
        if facts.has_native:
            return Choice(implementation="native", reason=f"{weights} weights in the compiled CPU kernels")
        return Choice(implementation="torch", reason="the CPU kernels could not be compiled here")
    if facts.capability is None:
        return Choice(implementation="torch", reason=f"the Triton kernels are for NVIDIA GPUs, not {_told(facts)}")
    if facts.capability < TRITON_CAPABILITY:
        return Choice(
            implementation="torch", reason=f"the Triton kernels need compute capability 8.0, not {_told(facts)}"
        )
    if not facts.has_triton:
        return Choice(implementation="torch", reason="triton is not installed; run: pip install triton")
    return Choice(implementation="triton", reason=f"{weights} weights on {_told(facts)}")


def facts_of(device: torch.device | str, *, native: bool = True) -> Facts:
    """The facts of a device here.

    Args:
        native: whether anybody asks for the CPU's kernels, which compiles them if that was never done.
    """
    device = torch.device(device)
    if device.type == "cpu":
        from helicube.kernels.cpu.library import load

        return Facts(device="cpu", has_native=native and load() is not None)
    capability = None
    # ROCm builds call their devices cuda too, and number them otherwise.
    if device.type == "cuda" and torch.version.hip is None:
        capability = torch.cuda.get_device_capability(device)
    return Facts(device=device.type, capability=capability, has_triton=importlib.util.find_spec("triton") is not None)


def _told(facts: Facts) -> str:
    if facts.capability is None:
        return facts.device
    return f"{facts.device} {facts.capability[0]}.{facts.capability[1]}"
