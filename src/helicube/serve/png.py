"""Whether a picture is what was written."""

from __future__ import annotations

import zlib

__all__ = ["is_whole_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def is_whole_png(data: bytes) -> bool:
    """Whether all chunks are there and agree with their checksums.

    Source: PNG (Third Edition), 5.2 "PNG signature" and 5.3 "Chunk layout".
    """
    if not data.startswith(SIGNATURE):
        return False
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        end = at + 8 + size
        if zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4]):
            return False
        at = end + 4
        if kind == b"IEND":
            return at == len(data)
    return False
