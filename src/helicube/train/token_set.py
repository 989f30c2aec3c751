"""Token rows of all items: what the decoder is trained on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track

from helicube.errors import InputError
from helicube.geometry.box_sample import pool_mean, unpack
from helicube.geometry.files import whole_file
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.palette import LEVELS, find_palette
from helicube.train.items import TRAINING, unseen_mask
from helicube.train.shards import DAMAGED, ItemInfo, ItemSet, load_shards, parse_infos, shard_paths

__all__ = ["TokenSet", "choose_tokens", "kept_tokens", "tokenize_items"]

# Items encoded at once.
BATCH = 32
# Raised when the same items and weights give other tokens.
VERSION = 1


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


ARRAYS = [f.name for f in fields(TokenSet) if f.name != "infos"]


def kept_tokens(code: LatticeCode, items_folder: Path) -> tuple[TokenSet, TokenSet]:
    """The tokens of all prepared items: those to learn from, and those kept back.

    Shard by shard, since all items at once may not fit in memory; a file of each, in a folder of the encoder's beside
    the items, keeps its tokens, so that what is interrupted goes on, runs on the same ids share them, and only shards
    that changed are encoded.

    Raises:
        InputError: there are no items, or the folder cannot be written.
    """
    shards = shard_paths(items_folder, TRAINING)
    start = _exact_digest(code)
    folder = items_folder / f"tokens-{start[:12]}"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder} for the items' tokens ({error.strerror}); name other --data") from None
    paths = track(shards, description="tokenizing")
    found = [_shard_tokens(code, path, folder / path.name, start) for path in paths]
    infos = tuple(info for shard in found for info in shard.infos)
    arrays = {name: np.concatenate([getattr(shard, name) for shard in found]) for name in ARRAYS}
    whole, unseen = TokenSet(infos=infos, **arrays), unseen_mask(infos)
    return choose_tokens(whole, ~unseen), choose_tokens(whole, unseen)


def choose_tokens(tokens: TokenSet, mask: NDArray[np.bool_]) -> TokenSet:
    """The items where mask (n,) is true."""
    infos = tuple(info for info, keep in zip(tokens.infos, mask, strict=True) if keep)
    return TokenSet(infos=infos, **{name: getattr(tokens, name)[mask] for name in ARRAYS})


def _shard_tokens(code: LatticeCode, shard: Path, kept: Path, start: str) -> TokenSet:
    """Tokens of one shard, from `kept` if they are of this encoder and of the shard as it is now."""
    key = start + hashlib.sha256(shard.read_bytes()).hexdigest()
    if kept.is_file() and (known := _kept(kept, key)):
        return known
    found = tokenize_items(code, load_shards(shard.parent, (shard.name,)))
    infos = json.dumps([asdict(info) for info in found.infos])
    arrays = {name: getattr(found, name) for name in ARRAYS}
    with whole_file(kept) as passing:
        np.savez_compressed(passing, allow_pickle=False, key=np.array(key), infos=np.array(infos), **arrays)
    return found


def _kept(path: Path, key: str) -> TokenSet | None:
    """What a file keeps; None if it is of another key, or damaged: then it is made again."""
    try:
        with np.load(path) as file:
            if str(file["key"]) == key:
                return TokenSet(infos=tuple(parse_infos(str(file["infos"]))), **{name: file[name] for name in ARRAYS})
    except DAMAGED:
        pass
    return None


def _exact_digest(code: LatticeCode) -> str:
    """Changes with all that ids depend on but the items."""
    sizes = [asdict(code.shape.config), asdict(code.paint.config), code.palette_size, LEVELS]
    digest = hashlib.sha256(repr((VERSION, sizes)).encode())
    for name, tensor in code.encoder_state().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


@torch.inference_mode()
def tokenize_items(code: LatticeCode, items: ItemSet) -> TokenSet:
    """Encode all items, unmirrored and mirrored."""
    if not len(items):
        return _no_tokens(code)
    parts: dict[str, list[NDArray[np.generic]]] = {name: [] for name in ARRAYS}
    for start in range(0, len(items), BATCH):
        for name, array in _tokenize(code, items, range(start, min(start + BATCH, len(items)))).items():
            parts[name].append(array)
    arrays = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    return TokenSet(infos=items.infos, **arrays)


def _no_tokens(code: LatticeCode) -> TokenSet:
    """Of a shard whose objects all lack volume."""
    size, num_paint = code.palette_size, code.paint.num_tokens
    return TokenSet(
        infos=(),
        shape_ids=np.zeros((0, 2, code.shape.config.num_tokens), np.int16),
        palettes=np.zeros((0, size, 3), np.uint8),
        counts=np.zeros((0, size), np.uint16),
        paint_ids=np.zeros((0, 2, num_paint), np.int16),
        sizes=np.zeros((0, 3), np.float32),
    )


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
