"""What PyTorch and Triton raise when a device fails, as one line for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from helicube.errors import DeviceError, HelicubeError

__all__ = ["device_faults"]

# Words of a RuntimeError that is the device's doing. PyTorch has a type of its own for CUDA's errors alone.
FAULTS = ("cuda", "cublas", "cudnn", "device-side", "triton", "ptxas", "out of resource")
MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


@contextmanager
def device_faults(action: str) -> Iterator[None]:
    """Turn a failure of the device into a DeviceError; everything else passes.

    Args:
        action: what was going on, as in "the GPU failed during …".
    """
    try:
        yield
    except HelicubeError:
        raise
    except torch.OutOfMemoryError as error:
        raise DeviceError(_memory(action)) from error
    except (RuntimeError, MemoryError) as error:
        told = str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
        if isinstance(error, MemoryError) or any(word in told.lower() for word in MEMORY):
            raise DeviceError(_memory(action)) from error
        if isinstance(error, torch.AcceleratorError) or any(word in told.lower() for word in FAULTS):
            raise DeviceError(
                f"the device failed during {action} ({told}); start the program again, leave out graphs and fast "
                "kernels where there is a choice, or use the CPU"
            ) from error
        raise


def _memory(action: str) -> str:
    return (
        f"out of memory during {action}; ask for less at a time (shorter or fewer requests, smaller weights, more "
        "ranks), or close what else uses the device"
    )
