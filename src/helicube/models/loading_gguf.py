"""GGUF files: metadata as a Hugging Face configuration, tensors dequantised a region at a time.

Source: the GGUF specification of the ggml project (version 3). The header is read here, as strings and arrays are
slow to walk through the gguf package (13 s against 0.3 s for a vocabulary of 49,152 on a busy machine); the formats of
quantised blocks come from that package.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from helicube.errors import CheckpointError, MissingExtraError

__all__ = ["GgufFile", "GgufSource", "gguf_config", "stored_names"]

Rows = np.ndarray[Any, np.dtype[np.int64]]

# Type code -> struct format of a scalar; 8 is a string and 9 an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

# Architecture -> model_type. Only "llama" stores the rows of queries and keys in the interleaved order.
ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}

TOP_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One tensor in the file."""

    # Row-major, as PyTorch counts: the file lists them in reverse.
    shape: tuple[int, ...]
    # ggml's type code.
    kind: int
    # Bytes from the start of the file.
    offset: int


class GgufFile:
    """The header of a file, and the file mapped into memory.

    Raises:
        CheckpointError: not a GGUF file of version 2 or 3, or truncated.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._at = 0
            self._read_header()
        except struct.error:
            raise CheckpointError(f"{path} is truncated: it ends within its header; download it again") from None
        except (OSError, ValueError, KeyError) as error:
            why = f"unknown type {error} of a value" if isinstance(error, KeyError) else error
            raise CheckpointError(f"{path} is not a readable GGUF file ({why}); download it again") from None

    def _read_header(self) -> None:
        magic, version, num_tensors, num_fields = self._take("<4sIQQ")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"magic {magic!r}, version {version}; need GGUF version 2 or 3")
        self.fields: dict[str, Any] = {}
        for _ in range(num_fields):
            key = self._string()
            self.fields[key] = self._value(self._take("<I")[0])
        infos = [self._tensor() for _ in range(num_tensors)]
        align = self.fields.get("general.alignment", 32)
        if not isinstance(align, int) or align < 1:
            raise ValueError(f"general.alignment is {align!r}; it must be a whole number above 0")
        start = -(-self._at // align) * align
        self.tensors = {n: Stored(shape=s, kind=k, offset=start + o) for n, s, k, o in infos}

    def _take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(form, self.bytes, self._at)
        self._at += struct.calcsize(form)
        return found

    def _string(self) -> str:
        (length,) = self._take("<Q")
        self._at += length
        return self.bytes[self._at - length : self._at].decode("utf-8")

    def _value(self, kind: int) -> Any:
        if kind == 8:
            return self._string()
        if kind == 9:
            inner, count = self._take("<IQ")
            if inner in SCALARS:
                return list(self._take(f"<{count}{SCALARS[inner]}"))
            return [self._value(inner) for _ in range(count)]
        return self._take("<" + SCALARS[kind])[0]

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        (dims,) = self._take("<I")
        shape = self._take(f"<{dims}Q")[::-1]
        kind, offset = self._take("<IQ")
        return name, shape, kind, offset


def gguf_config(file: GgufFile) -> dict[str, Any]:
    """The metadata in the words of a Hugging Face config.json.

    Raises:
        CheckpointError: an architecture or an option that is not implemented, or a missing key.
    """
    arch = file.fields.get("general.architecture")
    if arch not in ARCHITECTURES:
        raise CheckpointError(
            f"{file.path}: architecture {arch!r} is not supported; supported: {', '.join(ARCHITECTURES)}"
        )

    def get(key: str, default: Any = None) -> Any:
        value = file.fields.get(f"{arch}.{key}", default)
        if value is None:
            raise CheckpointError(f"{file.path}: {arch}.{key} is missing from the metadata; convert the model again")
        return value

    heads, embedding = get("attention.head_count"), file.tensors.get("token_embd.weight")
    if embedding is None:
        raise CheckpointError(f"{file.path}: token_embd.weight is missing; name the first file of a whole model")
    config: dict[str, Any] = {
        "model_type": ARCHITECTURES[arch],
        "hidden_size": get("embedding_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": file.fields.get(f"{arch}.attention.key_length"),
        "intermediate_size": get("feed_forward_length"),
        "vocab_size": embedding.shape[0] if embedding.shape else 0,
        "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": get("context_length"),
        "rope_theta": get("rope.freq_base", 10_000.0),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "eos_token_id": file.fields.get("tokenizer.ggml.eos_token_id"),
        "bos_token_id": file.fields.get("tokenizer.ggml.bos_token_id"),
    }
    return config | _rope(file, get)


def _rope(file: GgufFile, get: Callable[..., Any]) -> dict[str, Any]:
    kind = get("rope.scaling.type", "none")
    if "rope_freqs.weight" in file.tensors:
        # Llama 3.1 and later: the file holds the divisor of each frequency, already computed.
        divisors = GgufSource(file, 1, 1).values("rope_freqs.weight")[0]
        return {"rope_parameters": {"rope_type": "divided", "divisors": divisors.tolist()}}
    if kind in {"none", ""}:
        return {}
    scaling = {"rope_type": kind, "factor": get("rope.scaling.factor")}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = get("rope.scaling.original_context_length")
    return {"rope_parameters": scaling}


class GgufSource:
    """The tensors of a file by their Hugging Face names, in the row order of that format.

    Args:
        num_heads, num_kv_heads: of queries, and of keys and values.
    """

    def __init__(self, file: GgufFile, num_heads: int, num_kv_heads: int) -> None:
        self.file = file
        self.interleaved = {"attn_q": num_heads, "attn_k": num_kv_heads}
        if file.fields.get("general.architecture") != "llama":
            self.interleaved = {}
        blocks = {int(m[1]) for n in file.tensors if (m := re.match(r"blk\.(\d+)\.", n))}
        self.stored = {ours: theirs for ours, theirs in stored_names(blocks).items() if theirs in file.tensors}

    def names(self) -> frozenset[str]:
        return frozenset(self.stored)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.file.tensors[self.stored[name]].shape

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        stored = self.stored[name]
        kind = stored.split(".")[-2]
        chosen: range | Rows = rows
        if kind in self.interleaved:
            chosen = _interleaved_rows(rows, self.file.tensors[stored].shape[0] // self.interleaved[kind])
        if columns is None:
            found = self.values(stored)[0]
            return found[chosen.start : chosen.stop] if isinstance(chosen, range) else found[chosen]
        return self.values(stored, chosen, columns)

    def values(self, stored: str, rows: range | Rows = range(1), columns: range | None = None) -> Tensor:
        """A region of a stored matrix, or a stored vector as its one row; dequantised to float32."""
        info = self.file.tensors[stored]
        height, width = info.shape if len(info.shape) > 1 else (1, *info.shape)
        columns = columns if columns is not None else range(width)
        block, size, dequantize = _format(info.kind, self.file.path)
        if width % block:
            raise CheckpointError(f"{self.file.path}: rows of {stored} are {width} wide, no multiple of {block}")
        pitch = width // block * size
        end = info.offset + height * pitch
        if end > len(self.file.bytes):
            raise CheckpointError(f"{self.file.path} is truncated: {stored} ends at byte {end}; download it again")
        data = np.frombuffer(self.file.bytes, np.uint8, height * pitch, info.offset).reshape(height, pitch)
        # Whole blocks around the columns: a block shares its scale.
        first, last = columns.start // block, -(-columns.stop // block)
        chosen = (data[rows.start : rows.stop] if isinstance(rows, range) else data[rows])[
            :, first * size : last * size
        ]
        found = np.array(dequantize(np.ascontiguousarray(chosen)), np.float32)
        return torch.from_numpy(found[:, columns.start - first * block : columns.stop - first * block])


def stored_names(blocks: Iterable[int]) -> dict[str, str]:
    """From Hugging Face names to those in a GGUF file, of all that the layers may have."""
    layers = {
        f"model.layers.{i}.{ours}.{kind}": f"blk.{i}.{theirs}.{kind}"
        for i in blocks
        for ours, theirs in LAYER_NAMES.items()
        for kind in ("weight", "bias")
    }
    return TOP_NAMES | layers


def _interleaved_rows(rows: range, head_dim: int) -> Rows:
    """Where rows in the order of Hugging Face (half after half) stand in the order of neighbouring pairs."""
    r = np.arange(rows.start, rows.stop)
    head, channel = r // head_dim, r % head_dim
    half, pair = channel // (head_dim // 2), channel % (head_dim // 2)
    return np.asarray(head * head_dim + 2 * pair + half)


def _format(kind: int, path: Path) -> tuple[int, int, Callable[[Any], Any]]:
    """Values and bytes of a block, and what turns rows of whole blocks into float32."""
    try:
        import gguf
    except ImportError:
        raise MissingExtraError("gguf", "llm") from None
    if kind == gguf.GGMLQuantizationType.BF16:
        return 1, 2, lambda data: (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    try:
        named = gguf.GGMLQuantizationType(kind)
        block, size = gguf.GGML_QUANT_SIZES[named]
        gguf.quants.dequantize(np.zeros((1, size), np.uint8), named)
    except (ValueError, KeyError, NotImplementedError):
        raise CheckpointError(
            f"{path}: tensors of ggml type {kind} cannot be read; use a file in another format"
        ) from None
    return block, size, lambda data: gguf.quants.dequantize(data, named)
