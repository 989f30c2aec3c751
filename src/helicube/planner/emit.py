"""Launch lines of a layout for vLLM, SGLang, TensorRT-LLM and this package, or what an engine cannot run of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
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
    remarks: tuple[str, ...]
    # What of the layout the engine does not run, and what else a reader must do.


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
    def nodes(self) -> int:
        return -(-self.c.num_gpus // self.s.hardware.gpus_per_node)

    @property
    def weights(self) -> str:
        """Format of most weights, as a reader calls it."""
        f = self.s.formats
        return (f.experts if self.s.model.ffn.is_moe else f.ffn).removesuffix("_block")

    @property
    def native(self) -> str:
        """Format of the published weights; int4 experts are planned with the kernels of fp4."""
        own = self.s.model.native_precision
        return "fp4" if own == "int4" else own

    @property
    def uneven(self) -> str:
        """What the tensor parallelism of other engines does not divide; "" if all does."""
        m, ffn = self.s.model, self.width("tpf")
        for what, size, ranks in (("query heads", m.attention.num_query_heads, self.tp),
                                  ("columns of an expert", m.ffn.expert_size, ffn),
                                  ("columns of the dense FFN", m.ffn.dense_size, ffn * self.width("ep"))):  # fmt: skip
            if size % ranks:
                return f"{ranks} ranks do not divide the {size} {what}"
        return ""


def _precision(p: _Plan, engine: str, online: bool) -> tuple[list[str], list[str]]:
    """(flags, remarks) for the weights: the checkpoint's own format, fp8 made at loading, or another checkpoint."""
    if p.weights == p.native:
        return [], []
    if p.weights == "fp8" and p.native == "bf16" and online:
        return ["--quantization", "fp8"], []
    own = p.s.model.native_precision
    return [], [
        f"{engine} takes the checkpoint's format: give one in {p.weights} instead of {p.name}, which is in {own}"
    ]


def _overlap_remarks(p: _Plan, engine: str) -> list[str]:
    found = []
    if p.c.overlap:
        found.append(f"{engine} has no HOP-B: the exchange is not overlapped")
    if p.s.formats.cache == "fp4":
        found.append(f"{engine} has no fp4 cache here: fp8 is set, which doubles the cache")
    return found


def _refused(reason: str) -> Launch:
    return Launch(command="", files=(), remarks=(reason,))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Dialect:
    """How an engine with KV shards inside its tensor parallelism spells a layout."""

    title: str
    start: tuple[str, ...]
    # Words before the model.
    tp: str
    pp: str
    dp: str
    kvp: str
    context: str
    users: str
    cache: str
    # Value of --kv-cache-dtype for fp8.
    copies_inside_tp: bool
    # The tensor parallelism counts all copies of attention.


_VLLM = _Dialect(
    title="vLLM", start=("vllm", "serve"), tp="--tensor-parallel-size", pp="--pipeline-parallel-size",
    dp="--data-parallel-size", kvp="--decode-context-parallel-size", context="--max-model-len", users="--max-num-seqs",
    cache="fp8", copies_inside_tp=False,
)  # fmt: skip
_SGLANG = _Dialect(
    title="SGLang", start=("python", "-m", "sglang.launch_server", "--model-path"), tp="--tp", pp="--pp-size",
    dp="--dp", kvp="--dcp-size", context="--context-length", users="--max-running-requests", cache="fp8_e4m3",
    copies_inside_tp=True,
)  # fmt: skip


def _no_shards(p: _Plan, d: _Dialect) -> str:
    """Why an engine cannot split the cache of this layout by tokens; "" if it can or need not."""
    kvp, a = p.width("kvp"), p.s.model.attention
    if p.family == "medha":
        return f"{d.title} has no KV shards beyond its tensor parallelism; plan with --families dcp,tp"
    if p.uneven:
        return f"{d.title} cannot run it: {p.uneven}; add --no-padding to the plan"
    if kvp > 1 and d is _SGLANG and not a.is_mla:
        return "SGLang shards only the cache of MLA models by tokens; plan with --families tp"
    # vLLM: the KV shards share what tensor parallelism would copy.
    if kvp > 1 and not a.is_mla and p.width("tpa") < a.num_kv_heads:
        return (
            f"{d.title} shards the cache only beyond the {a.num_kv_heads} KV heads: kvp ≤ tp / {a.num_kv_heads}, but "
            f"tpa={p.width('tpa')}; choose --why-not kvp={max(1, p.tp // a.num_kv_heads)},tpa={a.num_kv_heads}"
        )
    return ""


def _server(p: _Plan, d: _Dialect) -> Launch:
    """Launch line of vLLM or SGLang."""
    reason = _no_shards(p, d)
    if reason:
        return _refused(reason)
    remarks = _overlap_remarks(p, d.title)
    if p.family == "helix":
        remarks.append(
            f"{d.title} ties TPA to the tensor parallelism: its KV shards lie inside tp={p.tp}, as does the FFN"
        )
    copies = p.width("dp")
    words = [*d.start, p.name, d.tp, str(p.tp * (copies if d.copies_inside_tp else 1))]
    for flag, width in ((d.pp, p.width("pp")), (d.dp, copies), (d.kvp, p.width("kvp"))):
        if width > 1:
            words += [flag, str(width)]
    if copies > 1 and d is _SGLANG:
        words.append("--enable-dp-attention")
    if p.width("ep") > 1:
        words += ["--enable-expert-parallel"] if d is _VLLM else ["--ep", str(p.width("ep"))]
        if p.width("tpf") > 1 and d is _VLLM:
            remarks.append("vLLM spreads experts over all ranks: TPF × EP within a layer becomes EP alone")
    users = max(1, p.c.batch // copies) if d is _VLLM else p.c.batch
    words += [d.context, str(p.context), d.users, str(users)]
    if p.s.formats.cache in {"fp8", "fp4"}:
        words += ["--kv-cache-dtype", d.cache]
    flags, more = _precision(p, d.title, online=True)
    nodes, last = _several_nodes(p, d)
    return Launch(command=shlex.join([*words, *flags, *nodes]), files=(), remarks=(*remarks, *more, *last))


def _several_nodes(p: _Plan, d: _Dialect) -> tuple[list[str], list[str]]:
    """(flags, remarks) for a pool that spans hosts."""
    if p.nodes == 1:
        return [], []
    size = f"{p.nodes} nodes of {p.s.hardware.gpus_per_node} GPUs"
    if d is _VLLM:
        return ["--distributed-executor-backend", "ray"], [f"start a Ray cluster of {size} first"]
    flags = ["--nnodes", str(p.nodes), "--node-rank", "0", "--dist-init-addr", "HOST:5000"]
    return flags, [f"run it on each of {size}, with that node's rank and the address of the first"]


def _trtllm(p: _Plan) -> Launch:
    if p.family in {"medha", "dcp"}:
        return _refused(f"TensorRT-LLM has no {p.family} layout; its cp_type HELIX is the helix family")
    if p.uneven:
        return _refused(f"TensorRT-LLM cannot run it: {p.uneven}; add --no-padding to the plan")
    remarks = _overlap_remarks(p, "TensorRT-LLM")
    if p.family == "helix" and not p.s.model.attention.is_mla:
        remarks.append("TensorRT-LLM's cp_type HELIX is written for MLA: check that your version takes grouped queries")
    tensor = p.width("tpa") if p.family == "helix" else p.tp * p.width("dp")
    words = ["trtllm-serve", p.name, "--max_seq_len", str(p.context), "--max_batch_size", str(p.c.batch),
             "--tp_size", str(tensor), "--config", "helicube.yaml"]  # fmt: skip
    for flag, width in (("--pp_size", p.width("pp")), ("--ep_size", p.width("ep"))):
        if width > 1:
            words += [flag, str(width)]
    lines = ["cuda_graph_config: {}"]
    if p.family == "helix":
        lines += [f"context_parallel_size: {p.width('kvp')}", "cp_config:", "  cp_type: HELIX"]
    if p.width("dp") > 1:
        lines.append("enable_attention_dp: true")
    if p.s.formats.cache in {"fp8", "fp4"}:
        lines += ["kv_cache_config:", "  dtype: fp8"]
    remarks += _precision(p, "TensorRT-LLM", online=False)[1]
    if p.nodes > 1:
        words = ["trtllm-llmapi-launch", *words]
        remarks.append(f"start it under srun or mpirun, one process for each of the {p.c.num_gpus} GPUs")
    return Launch(
        command=shlex.join(words), files=(("helicube.yaml", "\n".join(lines) + "\n"),), remarks=tuple(remarks)
    )


def _helicube(p: _Plan) -> Launch:
    if p.c.helix is None:
        return _refused(f"helicube runs tp and helix layouts, not {p.family}; plan with --families tp,helix")
    remarks = ["--model takes a folder with the downloaded checkpoint, a GGUF file or smollm2"]
    if p.weights != "bf16" or p.s.formats.cache != "bf16":
        remarks.append("helicube run holds weights and cache in 16 bits: plan with --precision bf16 for its memory")
    words = ["helicube", "run", "--model", p.name, "--layout", str(p.c.helix), "--nproc", str(p.c.num_gpus)]
    if p.c.overlap:
        words += ["--hopb", "2"]
    if p.nodes > 1:
        remarks.append("--nproc starts processes on one host; on several, start it under torchrun")
    return Launch(command=shlex.join([*words, "Once upon a time"]), files=(), remarks=tuple(remarks))


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
    makers: dict[str, Callable[[_Plan], Launch]] = {
        "vllm": lambda p: _server(p, _VLLM), "sglang": lambda p: _server(p, _SGLANG), "trtllm": _trtllm,
        "helicube": _helicube,
    }  # fmt: skip
    if engine not in makers:
        raise InputError(f"engine {engine!r} is unknown; choose {nearest_names(engine, ENGINES, most=len(ENGINES))}")
    return makers[engine](_Plan(s=s, c=c, x=x, name=name, context=context))
