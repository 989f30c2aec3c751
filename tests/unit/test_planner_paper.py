"""The appendix of the Helix paper, and HOP-B."""

from __future__ import annotations

import pytest

from helicube.planner.paper import PaperLayer, hop_b_time, kv_read_time, weight_read_time

LAYER = PaperLayer(
    batch=8, query_heads=128, kv_heads=8, head_size=128, hidden=16384, ffn=65536, element_bytes=0.5, bandwidth=8000e9
)


@pytest.mark.parametrize(
    ("tpa", "tpf", "kvp", "kv_us", "weight_us"),
    [(1, 1, 1, 1024.0, 236.98), (8, 8, 1, 128.0, 29.62), (64, 64, 1, 128.0, 3.932), (8, 64, 8, 16.0, 7.602)],
)
def test_golden_values_of_the_appendix(tpa: int, tpf: int, kvp: int, kv_us: float, weight_us: float) -> None:
    assert kv_read_time(LAYER, context=10**6, tpa=tpa, kvp=kvp) * 1e6 == kv_us
    assert weight_read_time(LAYER, tpa=tpa, tpf=tpf) * 1e6 == pytest.approx(weight_us, abs=0.005)


def test_output_projection_over_the_pool_reads_less() -> None:
    """Step 5 of the paper shards W_O over N; its appendix divides by TPA."""
    printed = weight_read_time(LAYER, tpa=8, tpf=64, kvp=8)
    true = weight_read_time(LAYER, tpa=8, tpf=64, kvp=8, output_over_pool=True)
    output = 16384 * 16384 / 8 * 0.5 / 8000e9
    assert printed - true == pytest.approx(output * 7 / 8)


def test_hop_b() -> None:
    assert hop_b_time(8, 2.0, 1.2) == pytest.approx(17.2)
    assert hop_b_time(1, 2.0, 1.2) == pytest.approx(3.2)
    assert hop_b_time(8, 1.2, 2.0) == pytest.approx(17.2)
