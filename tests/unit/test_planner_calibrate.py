"""Calibration on small made-up tables: the constants that made them come back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from helicube.errors import InputError
from helicube.planner.constants import (
    AttentionConstants,
    CollectiveConstants,
    FusedConstants,
    GemmConstants,
    MoeConstants,
)
from helicube.planner.constants_file import constants_from_toml
from helicube.planner.cost_attention import attention_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.cost_moe import moe_time
from helicube.planner.fit_kernels import fit_gpu
from helicube.planner.kernel_tables import find_gpus, unique_rows
from helicube.planner.shipped import shipped_constants
from helicube.specs.attention import AttentionSpec
from helicube.specs.hardware import load_hardware
from helicube.specs.model import FfnSpec

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


def test_expert_constants_come_back() -> None:
    from helicube.planner.fit_kernels import _fit_moe

    made = MoeConstants(hbm_efficiency=0.7, math_efficiency=0.4, spread=0.6, token_passes=8.0, launch_s=20e-6)
    spec = FfnSpec(dense_size=0, num_dense_layers=0, num_experts=256, top_k=8, expert_size=2048)
    tokens, tp, ep = (v.ravel() for v in np.meshgrid([1, 4, 16, 64, 256, 512], [1, 2, 4], [1, 2, 8]))
    size = len(tokens)
    latency = made.launch_s + moe_time(H100, made, spec, "bf16", hidden=7168, tokens=tokens, tpf=tp, ep=ep)
    columns = {
        "moe_dtype": np.full(size, "bfloat16", dtype=object),
        "distribution": np.full(size, "power_law_1.01", dtype=object),
        "kernel_source": np.full(size, "made up", dtype=object),
        "num_tokens": tokens, "hidden_size": np.full(size, 7168), "inter_size": np.full(size, 2048),
        "topk": np.full(size, 8), "num_experts": np.full(size, 256), "moe_tp_size": tp, "moe_ep_size": ep,
        "latency": latency * 1e3,
    }  # fmt: skip
    found, fit = _fit_moe(H100, columns, "bfloat16", None)
    assert fit.median_error < 1e-3
    assert fit.on_bound == ()
    for key in ("hbm_efficiency", "math_efficiency", "spread", "token_passes", "launch_s"):
        assert getattr(found, key) == pytest.approx(getattr(made, key), rel=0.03)
    fixed, _ = _fit_moe(H100, columns, "bfloat16", 0.9)
    assert fixed.spread == 0.9


def _messages(ranks: list[int], sizes: list[int]) -> dict[str, np.ndarray]:
    n, size = (v.ravel() for v in np.meshgrid(ranks, sizes))
    return {"num_gpus": n, "message_size": size}


def test_collective_constants_come_back() -> None:
    from helicube.planner.fit_collectives import fit_collective, fit_fused

    made = CollectiveConstants(base_s=6e-6, step_s=2e-6, efficiency=0.7, root_s=4e-9)
    table = _messages([2, 4, 8], [2**k for k in range(8, 29, 2)])
    n, received = table["num_gpus"], (table["num_gpus"] - 1) / table["num_gpus"] * table["message_size"] * 2.0
    link = H100.link_bytes_per_s
    time = (
        made.base_s + made.step_s * np.log2(n) + received / (link * made.efficiency) + made.root_s * np.sqrt(received)
    )
    text = {"op_name": np.full(len(n), "alltoall", dtype=object), "nccl_dtype": np.full(len(n), "half", dtype=object)}
    found, fit = fit_collective(H100, {**table, **text, "latency": time * 1e3}, "alltoall")
    assert fit.median_error < 1e-4
    for key in ("base_s", "step_s", "efficiency", "root_s"):
        assert getattr(found, key) == pytest.approx(getattr(made, key), rel=0.01)
    one = FusedConstants(base_s=3e-6, step_s=0.3e-6, efficiency=0.6)
    two = FusedConstants(base_s=14e-6, step_s=4e-6, efficiency=0.7)
    table = _messages([2, 4, 8], [2**k for k in range(8, 25, 2)])
    n, buffer = table["num_gpus"], table["message_size"] * 2.0
    shares = ((one, n - 1), (two, 2 * (n - 1) / n))
    both = [c.base_s + c.step_s * np.log2(n) + share * buffer / (link * c.efficiency) for c, share in shares]
    (first, second), _ = fit_fused(H100, {**table, "latency": np.minimum(*both) * 1e3})
    for got, wanted in ((first, one), (second, two)):
        for key in ("base_s", "step_s", "efficiency"):
            assert getattr(got, key) == pytest.approx(getattr(wanted, key), rel=0.05)


def test_constants_on_a_bound_are_named() -> None:
    from helicube.planner.kernel_fit import Parameter, fit_constants

    size = np.array([1.0, 2.0, 4.0])
    parameters = (
        Parameter(name="inside", start=1.0, low=0.1, high=10.0),
        Parameter(name="outside", start=1.0, low=0.1, high=2.0),
    )
    _, fit = fit_constants("made up", lambda p: p["inside"] + p["outside"] * size, parameters, 3.0 + 5.0 * size)
    assert [text.split(" = ")[0] for text in fit.on_bound] == ["outside"]


def test_a_gpu_without_a_generation_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="names no generation; add a line such as generation"):
        fit_gpu(replace(H100, generation=""), tmp_path)


def test_shipped_constants_are_what_a_fit_of_the_tables_gives(shared_dir: Path) -> None:
    folder = find_gpus(shared_dir / "data" / "silicon" / "kernels")["h100"]
    constants, fits = fit_gpu(H100, folder)
    errors = {fit.name: fit.median_error for fit in fits}
    assert max(errors.values()) < 0.2
    assert errors["gemm bf16"] < 0.06
    assert errors["attention mla bf16"] < 0.06
    assert errors["nccl all_reduce"] < 0.1
    shipped = shipped_constants()[0]["h100"]
    assert constants.range == shipped.range
    assert constants.generation == shipped.generation
    for part in ("gemm", "attention", "moe", "collectives"):
        fitted, kept = getattr(constants, part), getattr(shipped, part)
        assert fitted.keys() == kept.keys()
        for name, c in fitted.items():
            for key, value in asdict(c).items():
                # Scales of served kernels come from another fit; four digits ship.
                if key not in {"serving_scale", "linear_beyond"}:
                    assert value == pytest.approx(getattr(kept[name], key), rel=0.01), f"{part} {name} {key}"


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


def test_constants_survive_writing_and_reading() -> None:
    from helicube.planner.constants_file import constants_to_toml

    gpus, engines = shipped_constants()
    assert constants_from_toml(constants_to_toml(gpus, engines))[1] == engines
