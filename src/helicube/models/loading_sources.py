"""Where the tensors of a checkpoint come from: a dictionary, or memory-mapped safetensors files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from helicube.errors import CheckpointError

__all__ = ["DictSource", "RenamedSource", "SafetensorsSource", "TensorSource", "WatchedSource"]

INDEX_FILE = "model.safetensors.index.json"
# Suffix of the scales of weights in float8, one per block of 128 × 128 (DeepSeek-V3's format).
SCALE_SUFFIX, SCALE_BLOCK = "_scale_inv", 128
# Types by their names in the file.
READABLE = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")


class TensorSource(Protocol):
    """Published tensors by their published names."""

    def names(self) -> frozenset[str]:
        """All names."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        ...

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        """Rows, and of a matrix columns, of a tensor; only these are read from the file."""
        ...


class DictSource:
    """Tensors in memory."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors

    def names(self) -> frozenset[str]:
        return frozenset(self.tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        found = self.tensors[name][rows.start : rows.stop]
        return found if columns is None else found[:, columns.start : columns.stop]


class RenamedSource:
    """Another source, some of whose tensors are published under other names.

    Args:
        ours: from a published name to the one used here.
    """

    def __init__(self, source: TensorSource, ours: Callable[[str], str]) -> None:
        self.source = source
        self.published = {ours(name): name for name in source.names()}

    def names(self) -> frozenset[str]:
        return frozenset(self.published)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.source.shape(self.published[name])

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        return self.source.read(self.published[name], rows, columns)


class WatchedSource:
    """Another source that tells of each region that was read, as a sign of life in a long load."""

    def __init__(self, source: TensorSource, on_read: Callable[[], None]) -> None:
        self.source, self.on_read = source, on_read

    def names(self) -> frozenset[str]:
        return self.source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self.source.shape(name)

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        found = self.source.read(name, rows, columns)
        self.on_read()
        return found


class SafetensorsSource:
    """A folder of safetensors files, with or without an index.

    Raises:
        CheckpointError: there is none, the index names a file that is missing, or a file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[Path, Any] = {}
        self._file = self._index()

    def names(self) -> frozenset[str]:
        return frozenset(n for n in self._file if not n.endswith(SCALE_SUFFIX))

    def shape(self, name: str) -> tuple[int, ...]:
        with _readable(self._file[name]):
            return tuple(self._slice(name).get_shape())

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        with _readable(self._file[name]):
            found: Tensor
            self._check_type(name)
            if columns is None:
                found = self._slice(name)[rows.start : rows.stop]
            else:
                found = self._slice(name)[rows.start : rows.stop, columns.start : columns.stop]
            if name + SCALE_SUFFIX in self._file:
                found = found.float() * self._scales(name + SCALE_SUFFIX, rows, columns)
            return found

    def _scales(self, name: str, rows: range, columns: range | None) -> Tensor:
        """Scales of a region, one per element."""
        scales: Tensor = self._slice(name)[:]
        assert columns is not None, f"{name}: only matrices have block scales"
        by_row = torch.arange(rows.start, rows.stop) // SCALE_BLOCK
        by_column = torch.arange(columns.start, columns.stop) // SCALE_BLOCK
        return scales.float()[by_row][:, by_column]

    def _check_type(self, name: str) -> None:
        """Integers are codes of a quantised format, which are nothing without its rule."""
        found = self._slice(name).get_dtype()
        if found not in READABLE:
            raise CheckpointError(
                f"{self._file[name]}: {name} is of type {found}, and weights are read from {', '.join(READABLE)} only; "
                "use the unquantised model or a GGUF file"
            )

    def _slice(self, name: str) -> Any:
        path = self._file[name]
        if path not in self._open:
            self._open[path] = safe_open(path, framework="pt", device="cpu")
        return self._open[path].get_slice(name)

    def _index(self) -> dict[str, Path]:
        """File of each tensor."""
        path = self.folder / INDEX_FILE
        if not path.is_file():
            return self._scan()
        try:
            names: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
            files = {name: self.folder / file for name, file in names.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} is not an index with a weight_map: {error}") from None
        missing = sorted({str(f.name) for f in files.values() if not f.is_file()})
        if missing:
            raise CheckpointError(f"{path} names {', '.join(missing[:3])}, which is missing; download the folder again")
        return files

    def _scan(self) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for path in sorted(self.folder.glob("*.safetensors")):
            with _readable(path), safe_open(path, framework="pt", device="cpu") as file:
                files |= dict.fromkeys(file.keys(), path)
        if not files:
            raise CheckpointError(f"{self.folder} holds no safetensors file; it must hold the weights of the model")
        return files


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); download it again") from None
