"""The exceptions that users may see.

::

    HelicubeError                 base of all; caught once, at the top of the command line
    ├── InputError                a prompt, option or file from the user breaks a rule
    │   ├── PromptError           empty, too long, or not text
    │   ├── MeshFileError         a mesh that cannot be read or is unfit for the task
    │   └── LayoutError           a parallel layout that the model or the pool cannot run
    ├── CheckpointError           weights that are missing, truncated, renamed or wrongly shaped
    ├── GeometryError             a field that is not finite, a mesh that cannot be repaired
    │   └── EmptyFieldError       a field without a surface: all of it empty, or all of it full
    ├── DecodeError               a request that ended early (NaN logits, out of cache, cancelled)
    ├── DeviceError               a device that is missing, out of memory, or lacks a feature
    ├── PoolError                 a rank of a pool that died, or did not answer in time
    └── MissingExtraError         an optional dependency that is not installed

Every message names the value, the rule and the remedy.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "DecodeError",
    "DeviceError",
    "EmptyFieldError",
    "GeometryError",
    "HelicubeError",
    "InputError",
    "LayoutError",
    "MeshFileError",
    "MissingExtraError",
    "PoolError",
    "PromptError",
]


class HelicubeError(Exception):
    """Base of every error that helicube raises on purpose."""


class InputError(HelicubeError, ValueError):
    """A value from the user breaks a rule."""


class PromptError(InputError):
    """A prompt is empty, too long, or not text."""


class MeshFileError(InputError):
    """A mesh file cannot be read or is unfit for the task."""


class LayoutError(InputError):
    """A parallel layout that the model or the pool cannot run."""


class CheckpointError(HelicubeError):
    """Weights are missing, truncated, renamed or wrongly shaped."""


class GeometryError(HelicubeError):
    """A field is not finite or has no surface, or a mesh cannot be repaired."""


class EmptyFieldError(GeometryError):
    """A field has no surface: all of it is empty, or all of it full."""


class DecodeError(HelicubeError):
    """A request ended early."""


class DeviceError(HelicubeError):
    """A device is missing, out of memory, or lacks a feature."""


class PoolError(HelicubeError):
    """A rank of a pool died, or did not answer in time."""


class MissingExtraError(HelicubeError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: import name that failed.
        extra: extra of helicube that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'helicube[{extra}]'")
