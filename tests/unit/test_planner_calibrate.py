"""Calibration on small made-up tables: the constants that made them come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helicube.errors import InputError
from helicube.planner.constants import AttentionConstants, GemmConstants
from helicube.planner.constants_file import constants_from_toml
from helicube.planner.cost_attention import attention_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.fit_kernels import fit_gpu
from helicube.planner.kernel_tables import find_gpus, unique_rows
from helicube.planner.shipped import shipped_constants
from helicube.specs.attention import AttentionSpec
from helicube.specs.hardware import load_hardware

pyarrow = pytest.importorskip("pyarrow", reason="the plan extra brings it")
H100 = load_hardware("h100")
GEMM = GemmConstants(hbm_efficiency=0.8, math_efficiency=0.6, loop_s=0.5e-9, launch_s=3e-6)
ATTENTION = AttentionConstants(hbm_efficiency=0.7, math_efficiency=0.3, split_s=60e-9, query_passes=5, launch_s=8e-6)


def test_unique_rows_takes_the_median_or_the_fastest() -> None:
    columns = {"m": np.array([1, 1, 1, 2]), "latency": np.array([3.0, 1.0, 2.0, 9.0])}
    every = np.ones(4, dtype=np.bool_)
    assert unique_rows(columns, ("m",), every)["latency_s"] == pytest.approx([2e-3, 9e-3])
    assert unique_rows(columns, ("m",), every, fastest=True)["latency_s"] == pytest.approx([1e-3, 9e-3])


def test_gemm_constants_come_back() -> None:
    from helicube.planner.fit_kernels import _fit_gemm

    m, n, k = (
        v.ravel().astype(float) for v in np.meshgrid([1, 16, 64, 256, 512], [1024, 4096, 16384], [512, 4096, 16384])
    )
    latency = (GEMM.launch_s + gemm_time(H100, GEMM, "bf16", m=m, n=n, k=k)) * 1e3
    columns = {"m": m, "n": n, "k": k, "latency": latency, "gemm_dtype": np.full(len(m), "bfloat16", dtype=object)}
    found, fit = _fit_gemm(H100, columns, "bfloat16")
    assert fit.median_error < 1e-4
    for key in ("hbm_efficiency", "math_efficiency", "loop_s", "launch_s"):
        assert getattr(found, key) == pytest.approx(getattr(GEMM, key), rel=0.02)


def test_attention_constants_come_back() -> None:
    from helicube.planner.fit_kernels import _fit_attention, _gqa_rows

    batch, heads, step = (v.ravel() for v in np.meshgrid([1, 8, 64, 256], [16, 64], [127, 1023, 8191, 131071]))
    spec = AttentionSpec(num_query_heads=64, num_kv_heads=8, qk_head_size=128, v_head_size=128)
    latency = ATTENTION.launch_s + attention_time(
        H100, ATTENTION, spec, batch=batch, heads=heads, kv_heads=4.0, tokens=step + 1.0, cache_bytes=2.0
    )
    size = len(batch)
    columns = {
        "batch_size": batch,
        "num_heads": heads,
        "num_key_value_heads": np.full(size, 4),
        "head_dim": np.full(size, 128),
        "step": step,
        "window_size": np.zeros(size, dtype=int),
        "kv_cache_dtype": np.full(size, "bfloat16", dtype=object),
        "latency": latency * 1e3,
    }
    found, fit = _fit_attention(H100, "gqa", "bf16", *_gqa_rows(columns, "bfloat16"))
    assert fit.median_error < 1e-3
    assert found.hbm_efficiency == pytest.approx(0.7, rel=0.02)
    assert found.split_s == pytest.approx(60e-9, rel=0.05)


def test_a_real_gpu_fits_as_well_as_documented(shared_dir: Path) -> None:
    folder = find_gpus(shared_dir / "data" / "silicon" / "kernels")["h100"]
    constants, fits = fit_gpu(H100, folder)
    errors = {fit.name: fit.median_error for fit in fits}
    assert max(errors.values()) < 0.2
    assert errors["gemm bf16"] < 0.06
    assert errors["attention mla bf16"] < 0.06
    assert errors["nccl all_reduce"] < 0.1
    shipped = shipped_constants()[0]["h100"]
    assert constants.gemm["bf16"].hbm_efficiency == pytest.approx(shipped.gemm["bf16"].hbm_efficiency, rel=0.01)


def test_message_size_of_nccl_counts_elements_of_the_whole_buffer(shared_dir: Path) -> None:
    """n 16-bit elements take as long as 2n 8-bit ones; a per-rank share would exceed the links."""
    from helicube.planner.kernel_tables import read_table

    t = read_table(shared_dir / "data" / "silicon" / "kernels" / "h100_sxm" / "nccl.parquet")

    def latency(dtype: str, size: int) -> float:
        mask = (
            (t["op_name"] == "all_gather")
            & (t["num_gpus"] == 8)
            & (t["nccl_dtype"] == dtype)
            & (t["message_size"] == size)
        )
        return float(t["latency"][mask][0]) * 1e-3

    half, byte = latency("half", 2**28), latency("int8", 2**29)
    assert half == pytest.approx(byte, rel=0.02)
    whole = 2**29 * 7 / 8 / half
    assert 0.5 * H100.link_bytes_per_s < whole < H100.link_bytes_per_s
    assert 2**29 * 7 / half > 2 * H100.link_bytes_per_s


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        find_gpus(tmp_path / "absent")
    with pytest.raises(InputError, match="holds no folder with all of gemm"):
        find_gpus(tmp_path)


def test_shipped_file_is_what_calibrate_writes() -> None:
    from helicube.planner.constants_file import constants_to_toml

    gpus, engines = shipped_constants()
    assert constants_from_toml(constants_to_toml(gpus, engines))[1] == engines
