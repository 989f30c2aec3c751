"""The rules that a layout of each family obeys; the search lists exactly the layouts that break none."""

from __future__ import annotations

from helicube.errors import LayoutError
from helicube.planner.layouts import FAMILIES, LayoutArrays
from helicube.specs.layout import HelixLayout
from helicube.specs.model import ModelSpec

__all__ = ["broken_rule"]

# Widths beside TPA and TPF that a family may set.
_WIDTHS = {"tp": (), "pp": ("pp",), "dp": ("dp",), "medha": ("kvp",), "dcp": ("kvp",), "helix": ("kvp",)}


def broken_rule(model: ModelSpec, x: LayoutArrays, i: int = 0) -> str:
    """The first rule that the i-th layout breaks for a model, with the legal choices; "" if it is legal."""
    family = FAMILIES[int(x.family[i])]
    w = {key: int(getattr(x, key)[i]) for key in ("pp", "dp", "kvp", "tpa", "tpf", "ep")}
    for key in ("pp", "dp", "kvp"):
        if w[key] > 1 and key not in _WIDTHS[family]:
            others = ", ".join(name for name, widths in _WIDTHS.items() if key in widths)
            return f"{family} has no {key}; {key}={w[key]} needs {others}"
    if family == "helix":
        return _helix_rule(model, w)
    return _attention_rule(model, family, w) or _ffn_rule(model, family, w)


def _helix_rule(model: ModelSpec, w: dict[str, int]) -> str:
    try:
        HelixLayout(kvp=w["kvp"], tpa=w["tpa"], tpf=w["tpf"], ep=w["ep"]).validate(model)
    except LayoutError as error:
        return str(error)
    return ""


def _attention_rule(model: ModelSpec, family: str, w: dict[str, int]) -> str:
    a, tpa, kvp = model.attention, w["tpa"], w["kvp"]
    if w["pp"] > model.num_layers:
        return f"pp={w['pp']} exceeds the {model.num_layers} layers; choose pp ≤ {model.num_layers}"
    if family in {"tp", "pp", "dp"}:
        # Tensor parallelism may copy KV heads, but no engine splits query heads unevenly.
        return f"tpa={tpa} does not divide the {a.num_query_heads} query heads" if a.num_query_heads % tpa else ""
    if a.num_kv_heads % tpa:
        return f"tpa={tpa} does not divide the {a.num_kv_heads} KV heads, which {family} must not copy"
    if kvp > a.num_query_heads // tpa:
        return f"kvp={kvp} exceeds the {a.num_query_heads // tpa} query heads of a TPA slice"
    if family == "dcp" and a.num_query_heads % (kvp * tpa):
        return f"kvp × tpa = {kvp * tpa} does not divide the {a.num_query_heads} query heads, which dcp splits"
    return ""


def _ffn_rule(model: ModelSpec, family: str, w: dict[str, int]) -> str:
    f, tpf, ep = model.ffn, w["tpf"], w["ep"]
    if ep > 1 and not f.is_moe:
        return f"ep={ep} needs experts, but {model.name} is dense; choose ep=1"
    if f.is_moe and f.num_experts % ep:
        return f"ep={ep} does not divide the {f.num_experts} experts"
    ranks = w["dp"] * w["kvp"] * w["tpa"]
    if family == "medha":
        if tpf != w["tpa"]:
            return f"tpf={tpf}, but medha ties it to tpa={w['tpa']}"
        if w["kvp"] % ep:
            return f"ep={ep} does not divide kvp={w['kvp']}, whose ranks share the experts"
    elif tpf * ep != ranks:
        return f"tpf × ep = {tpf * ep}, but attention has {ranks} ranks; both grids cover the same ranks"
    narrowest = f.expert_size if f.is_moe else f.dense_size
    return f"tpf={tpf} exceeds the FFN width {narrowest}" if tpf > narrowest else ""
