"""Fitted constants of kernels, GPUs and engines, as records."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "AttentionConstants",
    "CollectiveConstants",
    "EngineConstants",
    "FitRange",
    "FusedConstants",
    "GemmConstants",
    "GpuConstants",
    "Kind",
    "MoeConstants",
]

Kind = Literal["measured", "fitted", "assumed", "bound"]
# measured: read from a table. fitted: computed with constants fitted to tables. assumed: with a stated constant that no
# table decides. bound: from peak rates, without any overhead.


@dataclass(frozen=True, kw_only=True, slots=True)
class GemmConstants:
    """t = launch + sqrt(read² + math² + loop²), see :mod:`helicube.planner.cost_gemm`."""

    hbm_efficiency: float
    # Share of peak memory bandwidth that a large weight matrix reaches.
    math_efficiency: float
    # Share of peak FLOP/s that a large batch reaches.
    loop_s: float
    # Seconds per element of the inner dimension and wave: the serial pace of one tile.
    launch_s: float
    # Fixed time of one stand-alone call.
    serving_scale: float = 1.0
    # Time inside an engine over that of the table, launch aside: tuned kernels are below 1.


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConstants:
    """t = launch + sqrt(read² + math² + split²) + query, see :mod:`helicube.planner.cost_attention`."""

    hbm_efficiency: float
    # Share of peak memory bandwidth when the cache is long.
    math_efficiency: float
    # Share of peak bf16 FLOP/s.
    split_s: float
    # Seconds per square root of the cached tokens of one sequence: the serial part of a split cache.
    query_passes: float
    # Time per query row in units of one pass over queries and outputs at peak bandwidth; takes up merging splits too.
    launch_s: float
    # Fixed time of one stand-alone call.
    linear_beyond: float = math.inf
    # Cached tokens from which the split part grows linearly instead; infinite unless a sensitivity is asked for.


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeConstants:
    """t = launch + sqrt(read² + math²) + tokens, see :mod:`helicube.planner.cost_moe`."""

    hbm_efficiency: float
    # Share of peak memory bandwidth for the weights of the experts hit.
    math_efficiency: float
    # Share of the peak FLOP/s of the format.
    spread: float
    # Shape of the gamma law of expert popularity: large is even, small is skewed.
    token_passes: float
    # Passes over routed activations (permute, un-permute), in units of their bytes at peak bandwidth.
    launch_s: float
    # Fixed time of routing and of one stand-alone call.
    serving_scale: float = 1.0
    # Time inside an engine over that of the table, launch and token passes aside.


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveConstants:
    """t = base + step·log2(n) + bytes/(link·efficiency) + root·sqrt(bytes); bytes as received by one rank."""

    base_s: float
    # Latency of the smallest call.
    step_s: float
    # Latency for each doubling of the ranks.
    efficiency: float
    # Share of link bandwidth for large messages.
    root_s: float
    # Seconds per sqrt(byte): messages between latency and bandwidth.


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedConstants:
    """A fused all-reduce kernel: t = base + step·log2(n) + bytes/(link·efficiency)."""

    base_s: float
    # Latency of the smallest call.
    step_s: float
    # Latency for each doubling of the ranks.
    efficiency: float
    # Share of link bandwidth.


@dataclass(frozen=True, kw_only=True, slots=True)
class FitRange:
    """Ends of the tables that the constants were fitted to; a point beyond one is extrapolated."""

    max_rows: int
    # Tokens of a GEMM or of an expert layer.
    min_columns: int
    # Columns of a GEMM.
    min_inner: int
    # Inner dimension of a GEMM.
    max_cached_tokens: int
    # Of one sequence on one GPU.
    max_sequences: int
    # Of one decode attention call.
    min_expert_columns: int
    # Columns of an expert's shard.
    max_ranks: int
    # Widest collective.


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuConstants:
    """Everything fitted for one GPU; efficiencies are shares of its own peaks, so that they transfer."""

    name: str
    # GPU whose tables were fitted.
    source: str
    # Tables, versions and error of the fit.
    gemm: dict[str, GemmConstants]
    # By math format: bf16, fp8, fp8_block, fp4.
    attention: dict[str, AttentionConstants]
    # By "gqa" or "mla" and cache format: gqa_bf16, gqa_fp8, mla_bf16, mla_fp8.
    moe: dict[str, MoeConstants]
    # By weight format: bf16, fp8, fp4.
    collectives: dict[str, CollectiveConstants]
    # all_gather, all_reduce, alltoall, reduce_scatter.
    one_shot: FusedConstants
    # Fused all-reduce in which every rank reads all others.
    two_shot: FusedConstants
    # The same that scatters and gathers.
    generation: str
    # GPUs that run the same kernels, such as hopper or blackwell.
    range: FitRange | None
    # None for peak rates, which were fitted to nothing.
    fused_moves: bool = True
    # Engines have fused gathers and exchanges beside NCCL's; false only when a sensitivity is asked for.


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConstants:
    """What an engine adds to its kernels, fitted to served requests. Times in seconds."""

    name: str
    # vllm, trtllm, sglang; "bound" has no overhead.
    source: str
    # Rows and error of the fit.
    models: tuple[str, ...] = ()
    # Models among those rows; of others the error is unknown.
    step_s: float = 0.0
    # Host time of one decode step.
    request_s: float = 0.0
    # Host time per running request and step.
    layer_s: float = 0.0
    # Small kernels and gaps of one layer.
    qk_norm_s: float = 0.0
    # Norms of queries and keys in one layer, for models that have them.
    gemm_s: float = 0.0
    # Launch of one GEMM inside a captured graph.
    attention_s: float = 0.0
    # Fixed time of one attention call.
    attention_scale: float = 1.0
    # Attention time over that of the table.
    moe_s: dict[str, float] = field(default_factory=dict)
    # Fixed time of one MoE layer (routing, permutation, launches), by GPU generation.
    linear_s: float = 0.0
    # Fixed time of one linear-attention layer.
    collective_step_s: float = 0.0
    # Added to each collective for each doubling of the ranks: launch and waiting for the slowest.
    prefill_layer_s: float = 0.0
    # Launch-bound time of one layer in prefill, which runs without a captured graph.
    prefill_efficiency: dict[str, float] = field(default_factory=dict)
    # Share of peak FLOP/s in prefill, by math format; "moe" multiplies it for experts.
    linear_prefill_s: float = 0.0
    # Seconds per token and value channel of a linear-attention layer in prefill, on one GPU.
    interleave: float = 1.0
    # Share of other requests' prefill that delays a decoding one.
    chunked_prefill: bool = False
    # Prefill chunks ride in decode steps and share their reads of the weights.
