"""Layouts, memory, steps, search and frontier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from helicube.errors import InputError, LayoutError
from helicube.planner.answer import ask
from helicube.planner.arrays import Array
from helicube.planner.layouts import FAMILIES, LayoutArrays, LayoutRow, enumerate_layouts
from helicube.planner.memory import memory_of, weight_bytes
from helicube.planner.pareto import best_throughput_at, frontier, pareto_index, thin_index
from helicube.planner.question import Question
from helicube.planner.ranges import outside_range, range_remarks
from helicube.planner.search import Points, default_batches, evaluate, search
from helicube.planner.setting import Setting, checkpoint_formats, make_setting, uniform_formats
from helicube.planner.shipped import BOUND_ENGINE
from helicube.planner.step import PHASES, decode_phases, total_time
from helicube.specs.catalog import get_model
from helicube.specs.hardware import load_hardware
from helicube.specs.layout import HelixLayout


def setting(model: str = "deepseek-r1", gpu: str = "gb200", precision: str = "fp4", engine: str = "trtllm") -> Setting:
    spec = get_model(model)
    return make_setting(spec, load_hardware(gpu), engine=engine, formats=uniform_formats(spec, precision, precision))


def one(family: str, *, pp: int = 1, dp: int = 1, kvp: int = 1, tpa: int = 1, tpf: int = 1, ep: int = 1,
        overlap: bool = False) -> LayoutArrays:  # fmt: skip
    return LayoutArrays.stack([LayoutRow(FAMILIES.index(family), pp, dp, kvp, tpa, tpf, ep, overlap)])


@pytest.mark.parametrize("model", ["deepseek-r1", "llama-3.1-405b", "gpt-oss-120b", "qwen3.5-397b-a17b"])
def test_every_enumerated_layout_obeys_its_family(model: str) -> None:
    spec = get_model(model)
    x = enumerate_layouts(spec, 24)
    k = spec.attention.num_kv_heads
    assert len(x) > 50
    for i in range(len(x)):
        family = FAMILIES[int(x.family[i])]
        pool = x.dp[i] * x.kvp[i] * x.tpa[i]
        assert 1 <= x.num_gpus[i] <= 24
        if family != "medha":
            assert x.tpf[i] * x.ep[i] == pool
        else:
            assert x.tpf[i] == x.tpa[i]
            assert x.kvp[i] % x.ep[i] == 0
        assert (x.kvp[i] > 1) == (family in {"medha", "dcp", "helix"})
        assert (x.dp[i] > 1) == (family == "dp")
        assert (x.pp[i] > 1) == (family == "pp")
        if family in {"medha", "dcp", "helix"}:
            assert k % x.tpa[i] == 0
        if family == "helix":
            layout = x.helix_layout(i)
            assert layout is not None
            layout.validate(spec, num_ranks=int(x.num_gpus[i]))
        if spec.ffn.is_moe:
            assert spec.ffn.num_experts % x.ep[i] == 0
        else:
            assert x.ep[i] == 1


def test_all_legal_helix_layouts_are_enumerated() -> None:
    from helicube.specs.layout import legal_layouts

    spec = get_model("deepseek-r1")
    x = enumerate_layouts(spec, 16, min_gpus=16, families=("helix",), overlap=False)
    found = {str(x.helix_layout(i)) for i in range(len(x))}
    assert found == {str(layout) for layout in legal_layouts(spec, 16) if layout.kvp > 1}


def test_one_gpu_holds_all_weights() -> None:
    s = setting("llama-3.1-8b", "h100", "bf16")
    assert float(weight_bytes(s, one("tp"))[0]) == pytest.approx(get_model("llama-3.1-8b").num_params * 2, rel=0.001)


@pytest.mark.parametrize("model", ["llama-3.1-405b", "deepseek-r1"])
def test_helix_splits_all_but_the_qkv_copies(model: str) -> None:
    """KVP ranks repeat the QKV projection of their TPA slice, and nothing else."""
    s = setting(model)
    single = float(weight_bytes(s, one("tp"))[0])
    x = one("helix", kvp=8, tpa=1, tpf=8)
    a = s.model.attention
    copies = s.model.num_layers * (7 / 8) * a.qkv_params(s.model.hidden_size) * 0.5625
    small = s.model.num_layers * 2 * a.small_params(s.model.hidden_size) * 7 / 8
    router = 2.0 * s.model.num_moe_layers * s.model.ffn.router_params(s.model.hidden_size) * 7 / 8
    assert float(weight_bytes(s, x)[0]) == pytest.approx(single / 8 + copies + small + router, rel=1e-6)


def test_every_rank_holds_the_down_projections_of_mla() -> None:
    s = setting()
    a, h = s.model.attention, s.model.hidden_size
    held = [float(weight_bytes(s, one("tp", tpa=n, tpf=n))[0]) for n in (1, 8)]
    whole = s.model.num_layers * (a.down_params(h) * 0.5625 + 2 * a.small_params(h))
    whole += 2.0 * s.model.num_moe_layers * s.model.ffn.router_params(h)
    assert held[1] - whole == pytest.approx((held[0] - whole) / 8, rel=1e-9)
    # Latent and rotary part, compressed query, two norms: 576 · 7168 + 1536 · 7168 + 512 + 1536.
    assert a.down_params(h) == 576 * 7168 + 1536 * 7168 + 512 + 1536


def test_cache_of_a_million_tokens() -> None:
    s = setting()
    full = memory_of(s, one("tp", tpa=8, tpf=8), np.array([1.0]), 10**6).cache
    shard = memory_of(s, one("helix", kvp=8, tpf=8), np.array([1.0]), 10**6).cache
    # The published figures count half a byte for a value; one fp8 scale for 16 of them makes it 0.5625.
    assert float(full[0]) == pytest.approx(17.57e9 * 9 / 8, rel=0.001)
    assert float(shard[0]) == pytest.approx(17.57e9 * 9 / 8 / 8, rel=0.001)
    llama = setting("llama-3.1-405b")
    held = float(memory_of(llama, one("tp"), np.array([1.0]), 10**6).cache[0])
    assert held == pytest.approx(129.0e9 * 9 / 8, rel=0.001)
    # Beyond its 8 KV heads tensor parallelism copies them; Helix does not.
    wide = [
        memory_of(llama, x, np.array([1.0]), 10**6).cache
        for x in (one("tp", tpa=64, tpf=64), one("helix", kvp=8, tpa=8, tpf=64))
    ]
    assert float(wide[0][0]) == pytest.approx(8 * float(wide[1][0]))


def test_data_and_pipeline_copies_share_the_users() -> None:
    s = setting()
    alone = float(memory_of(s, one("tp", tpa=8, tpf=8), np.array([8.0]), 10**5).cache[0])
    spread = float(memory_of(s, one("dp", dp=8, tpa=1, tpf=8), np.array([8.0]), 10**5).cache[0])
    staged = float(memory_of(s, one("pp", pp=8, tpa=1), np.array([8.0]), 10**5).cache[0])
    assert spread == pytest.approx(alone / 8)
    assert staged == pytest.approx(alone / 8)


def test_phases_are_positive_and_sum_to_the_step() -> None:
    s = setting()
    x = enumerate_layouts(s.model, 8)
    batch = np.full(len(x), 4.0)
    phases = decode_phases(s, x, batch, 1e5)
    assert set(phases) == set(PHASES)
    assert all(np.all(value >= -1e-12) for value in phases.values())
    assert np.allclose(total_time(phases), np.sum(list(phases.values()), axis=0), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_time_grows_with_users_and_context(family: str) -> None:
    s = setting("llama-3.1-70b", "h200", "fp8")
    x = enumerate_layouts(s.model, 8, families=(family,))
    users = np.array([1.0, 8.0, 64.0, 512.0])
    times = np.stack([total_time(decode_phases(s, x, np.full(len(x), b), 32768.0)) for b in users])
    assert np.all(np.diff(times, axis=0) >= -1e-9)
    longer = total_time(decode_phases(s, x, np.full(len(x), 8.0), 65536.0))
    assert np.all(longer > times[1])


def test_bounds_are_below_fitted_times() -> None:
    s = setting("llama-3.1-70b", "h100", "bf16")
    bare = replace(s.hardware, calibrated_as="")
    peak = make_setting(s.model, bare, engine="trtllm", formats=s.formats)
    assert (peak.kind, peak.engine.name) == ("bound", "bound")
    x = enumerate_layouts(s.model, 8)
    for batch in (1.0, 32.0):
        b = np.full(len(x), batch)
        assert np.all(total_time(decode_phases(peak, x, b, 8192.0)) < total_time(decode_phases(s, x, b, 8192.0)))


def test_roofline_agrees_with_the_papers_appendix() -> None:
    """With peak bandwidth and no latency, one layer of the appendix's model takes its printed times."""
    from helicube.specs.attention import AttentionSpec
    from helicube.specs.model import FfnSpec, ModelSpec

    a = AttentionSpec(num_query_heads=128, num_kv_heads=8, qk_head_size=128, v_head_size=128)
    f = FfnSpec(dense_size=65536, num_dense_layers=1)
    model = ModelSpec(name="appendix", source="arXiv 2507.07120", num_layers=1, hidden_size=16384, vocab_size=1,
                      attention=a, ffn=f)  # fmt: skip
    hardware = replace(load_hardware("gb200"), calibrated_as="", bf16_flops=1e30, fp8_flops=1e30, fp4_flops=1e30)
    s = make_setting(model, hardware, engine="trtllm", formats=uniform_formats(model, "fp4", "fp4"))
    phases = decode_phases(s, one("helix", kvp=8, tpa=8, tpf=64), np.array([8.0]), 1e6)
    # Cache and weights are stored with their scales, 0.5625 bytes for 0.5, and W_O is split over the pool.
    assert float(phases["attention"][0]) * 1e6 == pytest.approx(16.0 * 0.5625 / 0.5, rel=0.01)
    weights = sum(float(phases[k][0]) for k in ("qkv", "output", "ffn")) * 1e6
    output = 16384**2 / 8 * 0.5 / 8e12 * 1e6
    assert weights == pytest.approx((7.602 - output * 7 / 8) * 0.5625 / 0.5, rel=0.03)


def test_hop_b_never_hurts_and_needs_a_batch() -> None:
    s = setting("llama-3.1-405b")
    on, off = one("helix", kvp=8, tpa=8, tpf=64, overlap=True), one("helix", kvp=8, tpa=8, tpf=64)
    for batch in (1.0, 2.0, 8.0, 64.0, 512.0):
        with_it, without = (total_time(decode_phases(s, x, np.array([batch]), 1e6))[0] for x in (on, off))
        assert with_it <= without
        if batch == 1:
            assert with_it == without
    free = replace(s, engine=BOUND_ENGINE)
    big = np.array([512.0])
    assert total_time(decode_phases(free, on, big, 1e4))[0] < total_time(decode_phases(free, off, big, 1e4))[0]


def test_hop_b_is_the_papers_formula_where_all_scales_with_the_batch() -> None:
    """Without latencies, 8 requests of compute c and exchange x take c + x + 7·max(c, x): 17.2 instead of 25.6."""
    from helicube.planner.paper import hop_b_time
    from helicube.planner.point import make_point
    from helicube.planner.step_attention import attention_times, exchange_times, exposed_exchange

    spec = get_model("llama-3.1-405b")
    hardware = replace(load_hardware("gb200"), calibrated_as="", bf16_flops=1e30)
    # A link at which the exchange of one request takes 0.6 of its attention, as 1.2 of 2 do.
    bare = make_setting(spec, hardware, engine="bound", formats=uniform_formats(spec, "bf16", "bf16"))
    x, batch = one("helix", kvp=4, tpa=8, tpf=32, overlap=True), np.array([8.0])

    def times(link: float) -> tuple[float, float, float]:
        s = replace(bare, hardware=replace(hardware, link_bytes_per_s=link))
        p = make_point(s, x, batch, 1e5)
        exchange, latency = exchange_times(p)
        whole = float(attention_times(p)[0][0])
        return whole, float(exchange[0]), whole + float(exposed_exchange(p, 0, exchange, latency)[0])

    compute, at_1e9, _ = times(1e9)
    compute, exchange, total = times(1e9 * at_1e9 / (0.6 * compute))
    assert exchange == pytest.approx(0.6 * compute, rel=1e-9)
    assert total == pytest.approx(hop_b_time(8, compute / 8, exchange / 8), rel=1e-9)
    assert total / (compute + exchange) == pytest.approx(17.2 / 25.6, rel=1e-9)


def test_without_graphs_the_host_sets_the_pace_of_small_models() -> None:
    x, b = one("tp"), np.array([1.0])
    small, large = setting("llama-3.2-1b", "h100", "bf16"), setting("llama-3.1-70b", "h200", "bf16")
    fast, slow = (decode_phases(replace(small, graphs=g), x, b, 1024.0) for g in (True, False))
    # 4 GEMMs and 8 other kernels a layer, and the head, at 10 µs each; the host time of the step comes on top.
    launches = (small.model.num_layers * 12 + 1) * 10e-6
    assert float(total_time(slow)[0]) == pytest.approx(launches + float(fast["host"][0]))
    assert total_time(slow)[0] > total_time(fast)[0]
    # A large model keeps the GPU busy while the host runs ahead.
    quick, eager = (total_time(decode_phases(replace(large, graphs=g), x, b, 1024.0))[0] for g in (True, False))
    assert quick == eager


@pytest.mark.parametrize("model", ["deepseek-r1", "llama-3.1-405b", "gpt-oss-120b", "qwen3.5-397b-a17b"])
def test_search_gives_only_points_that_fit_and_equals_point_by_point(model: str) -> None:
    """The search works on a grid of layouts × batches; each of its points is what the layout gives alone."""
    s = setting(model, precision="fp8")
    points = search(s, enumerate_layouts(s.model, 12), 1e5, default_batches(256))
    assert np.all(points.fits)
    assert len(set(points.layouts.family.tolist())) >= 5
    rng = np.random.default_rng(0)
    for i in rng.choice(len(points), 60, replace=False):
        layout, batch = points.layouts.take(slice(int(i), int(i) + 1)), points.batch[i : i + 1]
        alone = total_time(decode_phases(s, layout, batch, 1e5))
        assert points.ttl_s[i] == pytest.approx(float(alone[0]), rel=1e-12)
        assert points.free_bytes[i] == pytest.approx(float(memory_of(s, layout, batch, 1e5).free[0]), rel=1e-12)
    flat = evaluate(s, points.layouts, points.batch, 1e5)
    assert flat.ttl_s == pytest.approx(points.ttl_s, rel=1e-12)


@settings(deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 60)), elements=st.integers(0, 9).map(float)))
def test_pareto_equals_the_definition(values: Array) -> None:
    x, y = values
    index = pareto_index(x, y)
    kept = {(x[i], y[i]) for i in index}
    wanted = {
        (a, b) for a, b in zip(x, y, strict=True)
        if not any((c >= a and d >= b) and (c > a or d > b) for c, d in zip(x, y, strict=True))
    }  # fmt: skip
    assert kept == wanted
    assert len(index) == len(kept)
    assert np.all(np.diff(x[index]) < 0)
    assert np.all(np.diff(y[index]) > 0)


def test_throughput_at_a_speed_equals_brute_force() -> None:
    s = setting()
    points = search(s, enumerate_layouts(s.model, 8), 1e5, default_batches(512))
    speeds = np.array([1.0, 20.0, 50.0, 80.0, 100.0, 1e4])
    brute = [np.max(points.tokens_per_s_gpu[points.tokens_per_s_user >= v], initial=0.0) for v in speeds]
    assert np.allclose(best_throughput_at(points, speeds), brute)
    front = frontier(points)
    assert set(thin_index(front.tokens_per_s_user, 5)) >= {0, len(front) - 1}


def test_batches_cover_every_small_number_and_never_jump() -> None:
    b = default_batches(4096)
    assert list(b[:10]) == list(range(1, 11))
    assert b[-1] == 4096
    assert np.all(b[1:] <= np.maximum(b[:-1] + 1, 1.1 * b[:-1]))


def test_range_flags() -> None:
    s = setting(precision="fp8")
    nccl = replace(s, gpu=replace(s.gpu, fused_moves=False))
    x, wide = one("helix", kvp=4, tpf=4), one("helix", kvp=64, tpf=64)
    cases = [
        (nccl, x, 8.0, 4 * 131072, ""),
        (nccl, x, 8.0, 5 * 131072, "cached tokens"),
        (nccl, x, 1000.0, 1e4, "sequences"),
        (nccl, one("helix", kvp=8, tpf=8), 8.0, 1e5, "more than the 4 GPUs measured"),
        (nccl, wide, 8.0, 1e5, "expert shards of fewer than 64"),
        (nccl, one("helix", kvp=128, tpf=1, ep=128), 8.0, 1e5, "W_O shard of fewer than 256"),
        (s, x, 8.0, 4 * 131072, "assumed and not measured"),
        (s, one("tp", tpa=4, tpf=4), 8.0, 131072, ""),
    ]
    for setting_of, layout, batch, context, remark in cases:
        found = range_remarks(setting_of, layout, np.array([batch]), context)
        assert bool(found) == bool(remark)
        assert bool(outside_range(setting_of, layout, np.array([batch]), context)[0]) == bool(remark)
        assert not remark or any(remark in text for text in found)


def test_the_million_token_answer() -> None:
    a = ask(setting(), Question(context=10**6, max_gpus=64))
    assert a.best.family == "helix"
    assert a.ratio is not None
    assert a.ratio > 1
    assert a.best.memory_bytes["free"] >= 0
    assert [c.ttl_s for _, c, _ in a.others if c] == sorted(c.ttl_s for _, c, _ in a.others if c)
    limited = ask(setting(), Question(context=10**6, max_gpus=64, ttl_s=0.02, users=16))
    assert limited.best.ttl_s <= 0.02
    assert limited.best.batch >= 16
    qualified: Points = limited.points.where((limited.points.ttl_s <= 0.02) & (limited.points.batch >= 16))
    assert limited.best.tokens_per_s_gpu == pytest.approx(float(np.max(qualified.tokens_per_s_gpu)))
    users = ask(setting(), Question(context=10**6, max_gpus=64, users=33))
    assert users.best.batch == 33


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": 0}, "context is 0; it must be positive"),
        ({"max_gpus": -1}, "max-gpus is -1"),
        ({"users": 0}, "users is 0"),
        ({"ttl_s": -1.0}, "ttl-ms"),
        ({"min_gpus": 65}, "exceeds max-gpus"),
        ({"ttl_s": 0.001}, "1 ms per token is impossible here: the fastest point takes .* links|launches"),
        ({"users": 10**6}, "users do not fit 64 × gb200: the most is"),
        ({"context": 10**9, "max_gpus": 2}, "does not fit 2 × gb200: the roomiest layout, .* GB too much"),
    ],
)
def test_refusals_say_which_limit_fails(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ask(setting(), Question(**{"context": 10**6, "max_gpus": 64, **change}))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_impossible_latency_names_a_context_that_works() -> None:
    s = setting()
    with pytest.raises(InputError, match=r"a context of [0-9,]+ makes it possible") as caught:
        ask(s, Question(context=10**6, max_gpus=8, ttl_s=0.012, users=32))
    text = str(caught.value)
    context = int(text.split("a context of ")[1].split(" ", maxsplit=1)[0].replace(",", ""))
    assert ask(s, Question(context=context, max_gpus=8, ttl_s=0.012, users=32)).best.ttl_s <= 0.012


@pytest.mark.parametrize(
    ("model", "gpu", "precision", "legal"),
    [("llama-3.1-8b", "h100", "fp4", "bf16, fp8"), ("llama-3.1-8b", "a100", "fp8", "bf16")],
)
def test_precision_that_a_gpu_lacks(model: str, gpu: str, precision: str, legal: str) -> None:
    with pytest.raises(InputError, match=f"{gpu} has no {precision} arithmetic.*choose {legal}"):
        setting(model, gpu, precision)


def test_four_bit_experts_run_anywhere() -> None:
    spec = get_model("gpt-oss-120b")
    s = make_setting(spec, load_hardware("h100"), engine="vllm", formats=checkpoint_formats(spec, "fp4", "bf16"))
    assert total_time(decode_phases(s, one("tp", tpa=2, tpf=2), np.array([4.0]), 2048.0))[0] > 0


def test_candidate_layout_is_the_record_that_starts_a_run() -> None:
    s = setting("llama-3.1-405b", precision="fp8")
    best = ask(s, Question(context=10**6, max_gpus=64, ttl_s=0.05, families=("helix",))).best
    assert isinstance(best.helix, HelixLayout)
    best.helix.validate(get_model("llama-3.1-405b"), num_ranks=best.num_gpus)
    assert HelixLayout.parse(str(best.helix)) == best.helix
    others = ask(s, Question(context=10**6, max_gpus=64, ttl_s=0.05, families=("medha",))).best
    assert others.helix is None


def test_unknown_layout_widths_raise() -> None:
    from helicube.planner.why_not import parse_layout

    cases = [
        ("foo kvp=2", "family 'foo'"),
        ("kvp=2,xx=3", "'xx' is unknown"),
        ("tp=8", "choose pp, dp, kvp, tpa"),
        ("dp=0", "dp must be a whole number"),
        ("kvp=2,kvp=4", "kvp twice"),
        ("medha kvp=2,tpa=x", "'tpa=x': tpa must be a whole number"),
    ]
    for text, message in cases:
        with pytest.raises(LayoutError, match=message):
            parse_layout(text)
