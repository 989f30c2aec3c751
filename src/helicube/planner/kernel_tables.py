"""The measured kernel tables as numpy columns.

A folder holds <gpu>/{gemm,decode_attention,decode_mla,moe,nccl,custom_allreduce}.parquet; latencies in milliseconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helicube.errors import InputError, MissingExtraError

__all__ = ["Columns", "find_gpus", "read_table", "unique_rows"]

Columns = dict[str, NDArray[Any]]
_NEEDED = {
    "gemm": ("gemm_dtype", "m", "n", "k", "latency"),
    "decode_attention": ("kv_cache_dtype", "window_size", "num_heads", "num_key_value_heads", "head_dim", "batch_size",
                         "step", "latency", "framework", "version", "device"),
    "decode_mla": ("kv_cache_dtype", "num_heads", "batch_size", "step", "latency"),
    "moe": ("moe_dtype", "distribution", "kernel_source", "num_tokens", "hidden_size", "inter_size", "topk",
            "num_experts", "moe_tp_size", "moe_ep_size", "latency"),
    "nccl": ("op_name", "num_gpus", "nccl_dtype", "message_size", "latency", "version"),
    "custom_allreduce": ("num_gpus", "message_size", "latency"),
}  # fmt: skip
_TABLES = tuple(_NEEDED)


def find_gpus(folder: Path) -> dict[str, Path]:
    """Folders of complete tables by GPU name ("h100_sxm" → h100).

    Raises:
        InputError: the folder is missing, or holds no complete set of tables.
    """
    if not folder.is_dir():
        raise InputError(f"kernel tables {folder} is no folder; give the one that holds <gpu>/gemm.parquet")
    found = {
        path.name.removesuffix("_sxm"): path
        for path in sorted(folder.iterdir())
        if path.is_dir() and all((path / f"{name}.parquet").is_file() for name in _TABLES)
    }
    if not found:
        raise InputError(f"{folder} holds no folder with all of {', '.join(_TABLES)} as .parquet; check the path")
    return found


def read_table(file: Path) -> Columns:
    """Read a parquet file into numpy columns.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InputError: the file cannot be read, or lacks a column.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "plan") from error
    try:
        table = pyarrow.parquet.read_table(file)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise InputError(f"{file} is no readable parquet file ({error}); fetch it again") from error
    missing = [name for name in _NEEDED.get(file.stem, ()) if name not in table.column_names]
    if missing:
        raise InputError(f"{file} lacks the columns {', '.join(missing)}; give the table of that operation")
    return {name: table[name].to_numpy() for name in table.column_names}


def unique_rows(columns: Columns, keys: tuple[str, ...], mask: NDArray[np.bool_], *,
                fastest: bool = False) -> dict[str, NDArray[np.float64]]:  # fmt: skip
    """Median latency in seconds of each combination of `keys` among the rows in `mask`.

    Args:
        columns: a table with a column "latency" in milliseconds.
        keys: columns of numbers.
        mask: (rows,) rows to use.
        fastest: take the smallest latency instead, where rows are of several kernels that an engine chooses among.
    """
    table = np.stack([columns[key][mask].astype(np.float64) for key in keys])
    latency = columns["latency"][mask] * 1e-3
    unique, inverse = np.unique(table, axis=1, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    groups = np.split(latency[order], np.cumsum(np.bincount(inverse.ravel()))[:-1])
    found = dict(zip(keys, unique, strict=True))
    found["latency_s"] = np.array([np.min(group) if fastest else np.median(group) for group in groups])
    return found
