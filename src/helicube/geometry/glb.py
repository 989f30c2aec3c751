"""Meshes as binary glTF. Source: Khronos Group, glTF 2.0 Specification, sections 3.6, 3.7, 3.9 and 4.4."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from helicube import __version__
from helicube.geometry.color import srgb_to_linear

if TYPE_CHECKING:
    from helicube.geometry.mesh import Mesh

__all__ = ["encode_glb"]

FLOAT, USHORT, UINT = 5126, 5123, 5125
VERTICES, INDICES = 34962, 34963


class _Binary:
    """The binary chunk in the making, with the accessors and buffer views that describe it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, array: NDArray[Any], *, kind: str, component: int, target: int, **more: Any) -> int:
        """Append an array; rows must be multiples of 4 bytes, except for indices. Returns the accessor."""
        raw = array.tobytes()
        self.views.append(
            {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(raw), "target": target},
        )
        self.accessors.append(
            {"bufferView": len(self.views) - 1, "componentType": component, "count": len(array), "type": kind, **more}
        )
        self.data += raw + bytes(-len(raw) % 4)
        return len(self.accessors) - 1


def encode_glb(mesh: Mesh, name: str = "mesh") -> bytes:
    """One mesh in one node, in metres, with its normals and colours.

    Colours are stored linear, as the format asks, in 16 bits: 8 would merge the dark ones.
    """
    binary = _Binary()
    attributes = add_attributes(binary, mesh)
    wide = mesh.num_vertices > 65535
    flat = np.ascontiguousarray(mesh.faces, dtype="<u4" if wide else "<u2").reshape(-1)
    indices = binary.add(flat, kind="SCALAR", component=UINT if wide else USHORT, target=INDICES)
    document = {
        "asset": {"version": "2.0", "generator": f"helicube {__version__}"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": name}],
        "meshes": [{"name": name, "primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}],
        "materials": [{"name": "surface", "pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 0.8}}],
        "accessors": binary.accessors,
        "bufferViews": binary.views,
        "buffers": [{"byteLength": len(binary.data)}],
    }
    return pack(document, bytes(binary.data))


def add_attributes(binary: _Binary, mesh: Mesh) -> dict[str, int]:
    positions = np.ascontiguousarray(mesh.vertices, dtype="<f4")
    attributes = {
        "POSITION": binary.add(
            positions,
            kind="VEC3",
            component=FLOAT,
            target=VERTICES,
            # The shortest decimals that give back these float32 values exactly, as the validator demands.
            min=[float(x) for x in positions.min(axis=0)],
            max=[float(x) for x in positions.max(axis=0)],
        )
    }
    if mesh.vertex_normals is not None:
        normals = np.ascontiguousarray(mesh.vertex_normals, dtype="<f4")
        attributes["NORMAL"] = binary.add(normals, kind="VEC3", component=FLOAT, target=VERTICES)
    if mesh.vertex_colors is not None:
        table = np.round(65535 * srgb_to_linear(np.arange(256) / 255)).astype("<u2")
        # With alpha: three 16-bit numbers are not a multiple of 4 bytes.
        rgba = np.full((mesh.num_vertices, 4), 65535, dtype="<u2")
        rgba[:, :3] = table[mesh.vertex_colors]
        attributes["COLOR_0"] = binary.add(rgba, kind="VEC4", component=USHORT, target=VERTICES, normalized=True)
    return attributes


def pack(document: dict[str, Any], binary: bytes) -> bytes:
    """Header, JSON chunk (padded with spaces) and binary chunk (padded with zeros)."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    binary += bytes(-len(binary) % 4)
    size = 12 + 8 + len(text) + 8 + len(binary)
    head = struct.pack("<4sII", b"glTF", 2, size)
    return head + struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
