"""Cost functions: limits, monotony, and agreement with hand-made sums."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helicube.errors import InputError
from helicube.planner.constants import AttentionConstants, GemmConstants, MoeConstants
from helicube.planner.constants_file import constants_from_toml, constants_to_toml
from helicube.planner.cost_attention import attention_time
from helicube.planner.cost_collective import all_reduce_time, collective_time, move_time
from helicube.planner.cost_gemm import gemm_time
from helicube.planner.cost_moe import busiest_experts, hit_share, hot_rank_load, moe_time
from helicube.planner.shipped import BOUND_ENGINE, engine_constants, gpu_constants, shipped_constants
from helicube.specs.catalog import get_model
from helicube.specs.hardware import list_hardware, load_hardware
from helicube.specs.model import FfnSpec

GB200 = load_hardware("gb200")
PEAK_GEMM = GemmConstants(hbm_efficiency=1, math_efficiency=1, loop_s=0, launch_s=0)
PEAK_ATTENTION = AttentionConstants(hbm_efficiency=1, math_efficiency=1, split_s=0, query_passes=0, launch_s=0)
PEAK_MOE = MoeConstants(hbm_efficiency=1, math_efficiency=1, spread=1e9, token_passes=0, launch_s=0)


def test_gemm_is_the_read_time_for_one_token_and_the_math_time_for_many() -> None:
    read = 8192 * 8192 * 2 / GB200.hbm_bytes_per_s
    assert float(gemm_time(GB200, PEAK_GEMM, "bf16", m=1, n=8192, k=8192)) == pytest.approx(read, rel=1e-3)
    math = 2 * 1e6 * 8192 * 8192 / GB200.bf16_flops
    assert float(gemm_time(GB200, PEAK_GEMM, "bf16", m=1e6, n=8192, k=8192)) == pytest.approx(math, rel=0.05)


def test_gemm_loop_bounds_narrow_shards() -> None:
    c = replace(PEAK_GEMM, loop_s=1e-9)
    assert float(gemm_time(GB200, c, "bf16", m=1, n=64, k=8192)) == pytest.approx(8192e-9, rel=0.01)


@settings(deadline=None)
@given(m=st.integers(1, 4096), n=st.integers(64, 65536), k=st.integers(64, 65536))
def test_gemm_grows_with_every_size(m: int, n: int, k: int) -> None:
    c = shipped_constants()[0]["h100"].gemm["bf16"]
    h100 = load_hardware("h100")
    base = float(gemm_time(h100, c, "bf16", m=m, n=n, k=k))
    bigger = [{"m": 2 * m}, {"n": 2 * n}, {"k": 2 * k}]
    assert all(float(gemm_time(h100, c, "bf16", **{"m": m, "n": n, "k": k, **change})) >= base for change in bigger)


def test_attention_reads_the_cache_at_bandwidth() -> None:
    a = get_model("llama-3.1-405b").attention
    time = float(attention_time(GB200, PEAK_ATTENTION, a, batch=8, heads=1, kv_heads=1, tokens=1e5, cache_bytes=0.5))
    assert time == pytest.approx(8 * 1e5 * 2 * 128 * 0.5 / GB200.hbm_bytes_per_s, rel=0.02)


def test_mla_attention_does_not_depend_on_kv_heads_and_hardly_on_heads() -> None:
    """Published: 128 heads 39.8 µs, 16 heads 40.5 µs at batch 1 and 128 k on GB200."""
    gpu, a = shipped_constants()[0]["gb200"], get_model("deepseek-r1").attention
    c = gpu.attention["mla_fp8"]
    times = [
        (c.launch_s + float(attention_time(GB200, c, a, batch=1, heads=h, kv_heads=1, tokens=131072, cache_bytes=1)))
        * 1e6
        for h in (128, 16)
    ]
    assert times[0] == pytest.approx(39.8, rel=0.1)
    assert times[1] == pytest.approx(40.5, rel=0.1)


def test_long_split_grows_as_a_root_and_linearly_where_asked() -> None:
    a = get_model("llama-3.1-8b").attention
    c = replace(PEAK_ATTENTION, split_s=1e-6)
    limited = replace(c, linear_beyond=1e4)
    size = {"batch": 1e-9, "heads": 1, "kv_heads": 1, "cache_bytes": 1.0}
    assert float(attention_time(GB200, c, a, tokens=4e4, **size)) == pytest.approx(2e-4, rel=1e-3)
    assert float(attention_time(GB200, limited, a, tokens=4e4, **size)) == pytest.approx(4e-4, rel=1e-3)


@settings(deadline=None)
@given(tokens=st.floats(0.001, 1000), spread=st.floats(0.1, 1e6))
def test_experts_hit_stay_between_one_token_and_all(tokens: float, spread: float) -> None:
    hit = 256 * float(hit_share(256, 8, tokens, spread))
    assert 0 < hit <= 256 * (1 + 1e-12)
    assert hit <= 8 * max(tokens, 1.0) * (1 + 1e-9)


@pytest.mark.parametrize("spread", [0.2, 0.6, 5.0, 1e9])
def test_one_token_hits_exactly_its_experts(spread: float) -> None:
    assert 256 * float(hit_share(256, 8, 1.0, spread)) == pytest.approx(8.0, rel=1e-12)


def test_even_popularity_gives_independent_draws() -> None:
    tokens = np.array([1.0, 2.0, 7.0, 64.0])
    assert hit_share(256, 8, tokens, 1e9) == pytest.approx(1 - (1 - 8 / 256) ** tokens, rel=1e-6)


@pytest.mark.parametrize(("top_k", "tokens"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (1, 4)])
@pytest.mark.parametrize("ep", [1, 2, 4, 8])
def test_busiest_rank_of_eight_experts_against_every_routing(top_k: int, tokens: int, ep: int) -> None:
    """The mean over all routings of 8 experts, one by one, of the experts that the busiest rank reads."""
    routings = itertools.product(itertools.combinations(range(8), top_k), repeat=tokens)
    rank = np.repeat(np.arange(ep), 8 // ep)
    counts = [np.bincount(rank[sorted(set().union(*routing))], minlength=ep).max() for routing in routings]
    share = hit_share(8, top_k, np.array([float(tokens)]), 1e9)
    found = float(busiest_experts(8, np.array([float(ep)]), share)[0])
    # Independent hits stand for draws without replacement: exact in the mean (ep 1), near it for the maximum.
    assert found == pytest.approx(
        float(np.mean(counts)), rel=1e-6 if ep == 1 else 0.35 if top_k * tokens == 1 else 0.17
    )


@pytest.mark.parametrize(("ep", "tokens"), [(8, 1), (64, 1), (16, 16), (8, 64), (32, 256)])
@pytest.mark.parametrize("spread", [0.6, 1e9])
def test_busiest_rank_matches_a_simulation(ep: int, tokens: int, spread: float) -> None:
    """256 experts, 8 per token: popularity by the gamma law, experts of a token drawn without replacement."""
    rng, counts = np.random.default_rng(ep * tokens), []
    for _ in range(400 if tokens < 100 else 100):
        log_weight = np.log(rng.gamma(spread, size=256) + 1e-300) if spread < 1e6 else np.zeros(256)
        # The 8 largest of log weight + Gumbel noise are a draw without replacement.
        drawn = np.argpartition(-(log_weight + rng.gumbel(size=(tokens, 256))), 8)[:, :8]
        counts.append(np.bincount(np.unique(drawn) // (256 // ep), minlength=ep).max())
    share = hit_share(256, 8, np.array([float(tokens)]), spread)
    found = float(busiest_experts(256, np.array([float(ep)]), share)[0])
    assert found == pytest.approx(float(np.mean(counts)), rel=0.1)


def test_hot_rank_matches_a_simulation() -> None:
    rng = np.random.default_rng(0)
    for ep in (2, 8, 32):
        popularity = rng.gamma(0.5, 1 / 0.5, size=(4000, ep, 256 // ep)).sum(axis=2)
        simulated = float(np.mean(popularity.max(axis=1) / popularity.mean(axis=1)))
        assert float(hot_rank_load(256, ep, 0.5)) == pytest.approx(simulated, rel=0.1)
    assert float(hot_rank_load(256, 1, 0.5)) == 1.0


def test_moe_of_one_token_reads_top_k_experts() -> None:
    f = FfnSpec(dense_size=0, num_dense_layers=0, num_experts=256, top_k=8, expert_size=2048)
    expert = 3 * 7168 * 2048 * 2 / GB200.hbm_bytes_per_s
    # Arithmetic of one row per expert adds under one in 10,000 to the read.
    one = float(moe_time(GB200, PEAK_MOE, f, "bf16", hidden=7168, tokens=1.0, tpf=1, ep=1))
    assert one == pytest.approx(8 * expert, rel=1e-4)
    split = float(moe_time(GB200, PEAK_MOE, f, "bf16", hidden=7168, tokens=1.0, tpf=8, ep=1))
    assert split == pytest.approx(expert, rel=1e-4)
    every = float(moe_time(GB200, PEAK_MOE, f, "bf16", hidden=7168, tokens=2000.0, tpf=1, ep=1))
    assert every >= 256 * expert


def test_wide_expert_parallelism_reads_more_than_an_even_share() -> None:
    """Chance alone puts several of one token's experts on one rank: 2.5 of 8 over 8 ranks, and never below one."""
    f = FfnSpec(dense_size=0, num_dense_layers=0, num_experts=256, top_k=8, expert_size=2048)
    expert = 3 * 7168 * 2048 * 2 / GB200.hbm_bytes_per_s
    ep = np.array([1.0, 8.0, 64.0, 256.0])
    read = moe_time(GB200, PEAK_MOE, f, "bf16", hidden=7168, tokens=np.ones(4), tpf=np.ones(4), ep=ep) / expert
    assert read == pytest.approx([8.0, 2.55, 1.29, 1.0], rel=0.04)


def test_collectives_cost_nothing_alone_and_use_the_network_beyond_the_domain() -> None:
    gpu = shipped_constants()[0]["h100"]
    h100 = load_hardware("h100")
    engine = BOUND_ENGINE
    for op in ("all_gather", "alltoall", "reduce_scatter"):
        assert float(collective_time(h100, gpu, engine, op, ranks=1, received_bytes=0.0)) == 0.0
        assert float(move_time(h100, gpu, engine, op, ranks=1.0, received_bytes=0.0)) == 0.0
    assert float(all_reduce_time(h100, gpu, engine, 1.0, 1e6)) == 0.0
    # An all-to-all leaves through one card of 50 GB/s instead of links of 450 GB/s; an all-reduce uses all eight cards.
    inside, outside = (
        float(move_time(h100, gpu, engine, "alltoall", ranks=n, received_bytes=1e8)) for n in (8.0, 16.0)
    )
    assert outside > 6 * inside
    inside, outside = (float(all_reduce_time(h100, gpu, engine, n, 1e8)) for n in (8.0, 16.0))
    assert inside < outside < 2 * inside
    small = [float(all_reduce_time(h100, gpu, engine, n, 1024.0)) for n in (8.0, 16.0)]
    assert small[1] - small[0] > 15e-6


def test_all_reduce_takes_the_fastest_algorithm() -> None:
    gpu, h100 = shipped_constants()[0]["h100"], load_hardware("h100")
    small = float(all_reduce_time(h100, gpu, BOUND_ENGINE, 8.0, 1024.0))
    nccl = float(collective_time(h100, gpu, BOUND_ENGINE, "all_reduce", ranks=8.0, received_bytes=1792.0))
    assert small < 0.5 * nccl
    pcie = replace(h100, link_kind="pcie")
    assert float(all_reduce_time(pcie, gpu, BOUND_ENGINE, 8.0, 1024.0)) == pytest.approx(nccl)


def test_constants_round_trip_through_toml() -> None:
    gpus, engines = shipped_constants()
    again = constants_from_toml(constants_to_toml(gpus, engines))
    assert again[0].keys() == gpus.keys()
    assert constants_to_toml(*again) == constants_to_toml(gpus, engines)


def test_shipped_constants_are_physical() -> None:
    gpus, engines = shipped_constants()
    assert set(gpus) == {"h100", "h200", "b200", "gb200"}
    assert set(engines) == {"vllm", "sglang", "trtllm"}
    for gpu in gpus.values():
        for part in (gpu.gemm, gpu.attention, gpu.moe, gpu.collectives):
            for c in part.values():
                shares = [getattr(c, k) for k in ("hbm_efficiency", "math_efficiency", "efficiency") if hasattr(c, k)]
                assert all(0 < share <= 1 for share in shares)
        assert gpu.source
    for engine in engines.values():
        assert engine.source
        assert all(0 < share <= 1 for share in engine.prefill_efficiency.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 3", "not TOML"),
        ("[engine.x]\nlayer_s = 1.0", "lacks 'gpu'"),
        ("[gpu]\n[engine.x]\nsource='y'\nlayer = 1.0", "key 'layer' is unknown; the nearest are layer_s"),
    ],
)
def test_broken_constants_file(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        constants_from_toml(text)


def test_no_gpu_gets_another_ones_figures_in_silence() -> None:
    for hardware in list_hardware():
        gpu, kind, remark = gpu_constants(hardware)
        if hardware.name == gpu.name:
            assert (kind, remark) == ("fitted", "")
        elif kind == "fitted":
            assert hardware.name in remark
            assert gpu.name in remark
        else:
            assert "lower bounds" in remark
    with pytest.raises(InputError, match="names no fitted GPU"):
        gpu_constants(replace(GB200, calibrated_as="v100"))


def test_unknown_engine() -> None:
    with pytest.raises(InputError, match="vllm"):
        engine_constants("vlm")
