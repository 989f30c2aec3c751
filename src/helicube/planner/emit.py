"""Launch lines of a layout for vLLM, SGLang, TensorRT-LLM and this package, or what an engine cannot run of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from helicube.errors import InputError
from helicube.planner.candidate import Candidate
from helicube.planner.layouts import FAMILIES, LayoutArrays
from helicube.planner.setting import Setting
from helicube.specs.names import nearest_names

__all__ = ["ENGINES", "Launch", "emit"]

ENGINES = ("vllm", "sglang", "trtllm", "helicube")


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How to start a layout."""

    command: str
    # Shell line; "" where the engine cannot run the layout.
    files: tuple[tuple[str, str], ...]
    # (name, content) of files that the command reads.
    cannot: tuple[str, ...]
    # What of the layout the engine does not run.


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """Widths of a candidate, as engines count them."""

    s: Setting
    c: Candidate
    x: LayoutArrays
    name: str
    # Model name or path, as the engine takes it.
    context: int

    def width(self, name: str) -> int:
        return int(getattr(self.x, name)[0])

    @property
    def family(self) -> str:
        return FAMILIES[int(self.x.family[0])]

    @property
    def tp(self) -> int:
        """Ranks of one copy of attention."""
        return self.width("kvp") * self.width("tpa")

    @property
    def cache_is_fp8(self) -> bool:
        return self.s.formats.cache == "fp8"


def _common_limits(p: _Plan, engine: str) -> list[str]:
    found = []
    if p.c.overlap:
        found.append(f"{engine} has no HOP-B: the exchange is not overlapped")
    if p.s.formats.cache == "fp4":
        found.append(f"{engine} has no fp4 cache here: fp8 is set, which doubles the cache")
    return found


def _vllm(p: _Plan) -> Launch:
    cannot = _common_limits(p, "vLLM")
    if p.family == "helix":
        cannot.append(
            "vLLM ties TPA to the tensor parallelism: decode context parallel gathers queries inside it; "
            f"the nearest is tp={p.tp} with dcp={p.width('kvp')}"
        )
    if p.family == "medha":
        return Launch(command="", files=(), cannot=("vLLM has no KV shards beyond its tensor parallelism",))
    words = ["vllm", "serve", p.name, "--tensor-parallel-size", str(p.tp)]
    for flag, width in (("--pipeline-parallel-size", p.width("pp")), ("--data-parallel-size", p.width("dp")),
                        ("--decode-context-parallel-size", p.width("kvp"))):  # fmt: skip
        if width > 1:
            words += [flag, str(width)]
    if p.width("ep") > 1:
        words.append("--enable-expert-parallel")
        if p.width("tpf") > 1:
            cannot.append("vLLM spreads experts over all ranks: TPF × EP within a layer becomes EP alone")
    words += ["--max-model-len", str(p.context), "--max-num-seqs", str(max(1, p.c.batch // p.width("dp")))]
    if p.s.formats.cache in {"fp8", "fp4"}:
        words += ["--kv-cache-dtype", "fp8"]
    return Launch(command=shlex.join(words), files=(), cannot=tuple(cannot))


def _sglang(p: _Plan) -> Launch:
    cannot = _common_limits(p, "SGLang")
    if p.family == "helix":
        cannot.append(
            "SGLang ties TPA to the tensor parallelism: decode context parallel splits the cache inside tp; "
            f"the nearest is tp={p.tp} with dcp={p.width('kvp')}"
        )
    if p.family == "medha":
        return Launch(command="", files=(), cannot=("SGLang has no KV shards beyond its tensor parallelism",))
    ranks = p.tp * p.width("dp")
    words = ["python", "-m", "sglang.launch_server", "--model-path", p.name, "--tp", str(ranks)]
    if p.width("dp") > 1:
        words += ["--dp", str(p.width("dp")), "--enable-dp-attention"]
    if p.width("kvp") > 1:
        words += ["--dcp-size", str(p.width("kvp"))]
    if p.width("pp") > 1:
        words += ["--pp-size", str(p.width("pp"))]
    if p.width("ep") > 1:
        words += ["--ep", str(p.width("ep"))]
    words += ["--context-length", str(p.context), "--max-running-requests", str(p.c.batch)]
    if p.s.formats.cache in {"fp8", "fp4"}:
        words += ["--kv-cache-dtype", "fp8_e4m3"]
    return Launch(command=shlex.join(words), files=(), cannot=tuple(cannot))


def _trtllm(p: _Plan) -> Launch:
    cannot = _common_limits(p, "TensorRT-LLM")
    if p.family in {"medha", "dcp"}:
        return Launch(command="", files=(), cannot=(
            f"TensorRT-LLM has no {p.family} layout; its cp_type HELIX is the helix family",
        ))  # fmt: skip
    if p.family == "helix" and not p.s.model.attention.is_mla:
        cannot.append("TensorRT-LLM's cp_type HELIX is written for MLA: check that your version takes grouped queries")
    ranks = p.tp * p.width("dp")
    words = ["trtllm-serve", p.name, "--max_seq_len", str(p.context), "--max_batch_size", str(p.c.batch)]
    if p.family == "helix":
        words += ["--tp_size", str(p.width("tpa")), "--config", "helicube.yaml"]
    else:
        words += ["--tp_size", str(ranks), "--config", "helicube.yaml"]
    if p.width("pp") > 1:
        words += ["--pp_size", str(p.width("pp"))]
    if p.width("ep") > 1:
        words += ["--ep_size", str(p.width("ep"))]
    lines = ["cuda_graph_config: {}"]
    if p.family == "helix":
        lines += [f"context_parallel_size: {p.width('kvp')}", "cp_config:", "  cp_type: HELIX"]
    if p.width("dp") > 1:
        lines.append("enable_attention_dp: true")
    if p.s.formats.cache in {"fp8", "fp4"}:
        lines += ["kv_cache_config:", "  dtype: fp8"]
    return Launch(command=shlex.join(words), files=(("helicube.yaml", "\n".join(lines) + "\n"),), cannot=tuple(cannot))


def _helicube(p: _Plan) -> Launch:
    if p.c.helix is None:
        return Launch(command="", files=(), cannot=(f"helicube runs tp and helix layouts, not {p.family}",))
    cannot = []
    if {p.s.formats.attention, p.s.formats.ffn, p.s.formats.experts} != {"bf16"} or p.s.formats.cache != "bf16":
        cannot.append(
            "helicube run reads 16-bit weights and cache: memory and times are those of bf16, not of this plan"
        )
    words = ["helicube", "run", "--model", p.name, "--layout", str(p.c.helix), "--nproc", str(p.c.num_gpus)]
    return Launch(command=shlex.join(words), files=(), cannot=tuple(cannot))


def emit(engine: str, s: Setting, c: Candidate, x: LayoutArrays, *, name: str, context: int) -> Launch:
    """Launch line of a candidate.

    Args:
        engine: a name out of ENGINES.
        s: model and formats.
        c: the candidate.
        x: (1,) its layout.
        name: model name or path, as the engine takes it.
        context: tokens per user.

    Raises:
        InputError: the engine is unknown.
    """
    makers = {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm, "helicube": _helicube}
    if engine not in makers:
        raise InputError(f"engine {engine!r} is unknown; choose {nearest_names(engine, ENGINES, most=len(ENGINES))}")
    return makers[engine](_Plan(s=s, c=c, x=x, name=name, context=context))
