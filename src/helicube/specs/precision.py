"""Number formats of weights, cache and arithmetic, and the bytes that they really take."""

from __future__ import annotations

from dataclasses import dataclass

from helicube.errors import InputError
from helicube.specs.names import nearest_names

__all__ = ["BLOCK_FP8", "PRECISIONS", "Precision", "get_precision"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """One number format."""

    name: str
    # Short name: bf16, fp8, fp4, int8, int4.
    element_bytes: float
    # Bytes of one element without its scale; what papers quote.
    stored_bytes: float
    # Bytes of one weight with its share of the block scales; what memory really holds.
    math: str
    # Tensor-core format in which a GEMM over such weights runs: bf16, fp8 or fp4.


_ALL = (
    Precision(name="bf16", element_bytes=2.0, stored_bytes=2.0, math="bf16"),
    # One scale for a whole matrix; checkpoints with block scales: BLOCK_FP8.
    Precision(name="fp8", element_bytes=1.0, stored_bytes=1.0, math="fp8"),
    # NVFP4: one fp8 scale for each 16 elements. (MXFP4 has one for each 32; the larger is kept.)
    Precision(name="fp4", element_bytes=0.5, stored_bytes=0.5 + 1 / 16, math="fp4"),
    Precision(name="int8", element_bytes=1.0, stored_bytes=1.0 + 2 / 128, math="bf16"),
    # One bf16 scale for each 32 elements (the format of Kimi-K2.5's experts); arithmetic in bf16.
    Precision(name="int4", element_bytes=0.5, stored_bytes=0.5 + 2 / 32, math="bf16"),
)
PRECISIONS: dict[str, Precision] = {p.name: p for p in _ALL}
# fp8 with one float32 scale for each 128 × 128 block (DeepSeek-V3 report, section 3.3). No user asks for it by name:
# published MoE checkpoints in fp8 are stored so.
BLOCK_FP8 = Precision(name="fp8_block", element_bytes=1.0, stored_bytes=1.0 + 4 / 128**2, math="fp8")
_ALIASES = {"fp16": "bf16", "bfloat16": "bf16", "float16": "bf16", "nvfp4": "fp4", "mxfp4": "fp4", "fp8_e4m3": "fp8"}


def get_precision(name: str) -> Precision:
    """Look up a number format.

    Raises:
        InputError: the name is unknown; the message lists the known ones.
    """
    key = _ALIASES.get(name.lower(), name.lower())
    if key not in PRECISIONS:
        raise InputError(
            f"precision {name!r} is unknown; choose {nearest_names(name, PRECISIONS, most=len(PRECISIONS))}"
        )
    return PRECISIONS[key]
