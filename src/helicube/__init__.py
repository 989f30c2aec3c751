"""Text to 3D at interactive speed, and Helix-parallel decoding over contexts of millions of tokens.

Importing this package is cheap: names are resolved on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from helicube.idle_threads import let_idle_threads_sleep

if TYPE_CHECKING:
    from helicube.errors import HelicubeError
    from helicube.geometry.mesh import Mesh
    from helicube.pipelines.meshing import MeshOptions
    from helicube.pipelines.text_to_shape import TextToShape, load
    from helicube.serve.client import Client

__version__ = "0.1.0"
__all__ = ["Client", "HelicubeError", "Mesh", "MeshOptions", "TextToShape", "__version__", "load"]

_LAZY = {
    "Client": "helicube.serve.client",
    "HelicubeError": "helicube.errors",
    "Mesh": "helicube.geometry.mesh",
    "MeshOptions": "helicube.pipelines.meshing",
    "TextToShape": "helicube.pipelines.text_to_shape",
    "load": "helicube.pipelines.text_to_shape",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'helicube' has no attribute {name!r}")
    let_idle_threads_sleep()
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
