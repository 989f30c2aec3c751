"""Token rows of all items: what the decoder is trained on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track

from helicube.geometry.box_sample import pool_mean, unpack
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.palette import find_palette
from helicube.train.items import choose
from helicube.train.shards import ItemInfo, ItemSet

__all__ = ["TokenSet", "kept_tokens", "tokenize_items"]

# Items encoded at once.
BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """Parts of the rows of n items, each as it is and mirrored at x = 0; the palette as colours, to be recoloured."""

    infos: tuple[ItemInfo, ...]
    # (n, 2, N) int16, shape ids.
    shape_ids: NDArray[np.int16]
    # (n, K, 3) uint8 sRGB, and (n, K) uint16, points of the surface that each entry paints: 0 where it is not used.
    palettes: NDArray[np.uint8]
    counts: NDArray[np.uint16]
    # (n, 2, M) int16, paint ids.
    paint_ids: NDArray[np.int16]
    # (n, 3) float32, sizes of the box, longest 1.
    sizes: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.infos)


def kept_tokens(code: LatticeCode, items: ItemSet, path: Path) -> TokenSet:
    """The tokens of all items; a file keeps them, so that only items that are new to it are encoded."""
    keys = _keys(code, items)
    kept: dict[str, NDArray[np.generic]] = {}
    if path.is_file():
        with np.load(path) as file:
            kept = dict(file)
    places = {key: place for place, key in enumerate(kept["keys"].tolist())} if kept else {}
    new = np.array([key not in places for key in keys])
    fresh = tokenize_items(code, choose(items, new)) if new.any() else None
    arrays = {"keys": np.array(keys)}
    for name in (f.name for f in fields(TokenSet) if f.name != "infos"):
        parts = [kept[name][[places[key] for key in keys if key in places]]] if places else []
        parts += [getattr(fresh, name)] if fresh is not None else []
        # Back in the order of the items: those that were kept came first.
        arrays[name] = np.concatenate(parts)[np.argsort(np.argsort(new, kind="stable"), kind="stable")]
    if fresh is not None:
        partial = path.with_suffix(".partial")
        with partial.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        partial.replace(path)
    return TokenSet(infos=items.infos, **{name: array for name, array in arrays.items() if name != "keys"})


def _keys(code: LatticeCode, items: ItemSet) -> list[str]:
    """One per item, which changes with what encodes it and with the item."""
    paint = {name: t for name, t in code.paint.state_dict().items() if name.startswith(code.paint.ENCODER)}
    start = hashlib.sha256()
    for name, tensor in [*code.shape.encoder.state_dict().items(), *paint.items()]:
        start.update(name.encode() + tensor.numpy().tobytes())
    keys = []
    for i in range(len(items)):
        digest = start.copy()
        for array in (items.bits[i], items.points[i], items.colors[i], items.extents[i]):
            digest.update(np.ascontiguousarray(array).tobytes())
        keys.append(digest.hexdigest()[:32])
    return keys


@torch.inference_mode()
def tokenize_items(code: LatticeCode, items: ItemSet) -> TokenSet:
    """Encode all items, unmirrored and mirrored."""
    parts: dict[str, list[NDArray[np.generic]]] = {f.name: [] for f in fields(TokenSet) if f.name != "infos"}
    for start in track(range(0, len(items), BATCH), description="tokenizing"):
        for name, array in _tokenize(code, items, range(start, min(start + BATCH, len(items)))).items():
            parts[name].append(array)
    arrays = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    return TokenSet(infos=items.infos, **arrays)


def _tokenize(code: LatticeCode, items: ItemSet, chosen: range) -> dict[str, NDArray[np.generic]]:
    filled = np.stack([pool_mean(unpack(items.bits[i]), code.shape.config.input_cells) for i in chosen])
    points = items.points[chosen.start : chosen.stop].astype(np.float32) / 32767
    found = [find_palette(items.colors[i], code.palette_size) for i in chosen]
    entries = torch.from_numpy(np.stack([entry for _, entry in found]))
    shape_ids, paint_ids = [], []
    for mirror in (False, True):
        seen = np.ascontiguousarray(filled[:, ::-1]) if mirror else filled
        where = points * np.array([-1, 1, 1], dtype=np.float32) if mirror else points
        ids = code.shape.encode(torch.from_numpy(seen))
        codes = code.shape.quantizer.to_codes(ids)
        channels = code.paint.to_channels(codes, code.paint.shares(torch.from_numpy(where), entries))
        shape_ids.append(ids.numpy().astype(np.int16))
        paint_ids.append(code.paint.quantizer.to_ids(channels).numpy().astype(np.int16))
    palettes = np.zeros((len(found), code.palette_size, 3), dtype=np.uint8)
    for row, (palette, _) in zip(palettes, found, strict=True):
        row[: len(palette)] = palette
    extents = items.extents[chosen.start : chosen.stop]
    return {
        "shape_ids": np.stack(shape_ids, axis=1),
        "palettes": palettes,
        "counts": np.stack([np.bincount(e, minlength=code.palette_size).astype(np.uint16) for _, e in found]),
        "paint_ids": np.stack(paint_ids, axis=1),
        "sizes": (extents / extents.max(axis=1, keepdims=True)).astype(np.float32),
    }
