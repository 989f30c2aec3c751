"""The reproduction of the Helix paper as tables, and why what does not come out does not."""

from __future__ import annotations

from collections.abc import Sequence

from helicube.planner.paper import PaperLayer, kv_read_time, weight_read_time
from helicube.planner.report import Table
from helicube.planner.reproduce import CLAIMS, MAX_GPUS, Claim, Outcome, reproduce

__all__ = ["appendix_table", "reproduction_tables"]

# The example of the paper's appendix A, and the layouts (TPA, TPF, KVP) that it prints.
_APPENDIX = PaperLayer(
    batch=8, query_heads=128, kv_heads=8, head_size=128, hidden=16384, ffn=65536, element_bytes=0.5, bandwidth=8000e9
)
_APPENDIX_LAYOUTS = ((1, 1, 1), (8, 8, 1), (64, 64, 1), (8, 64, 8))


def appendix_table() -> Table:
    """Read times by the appendix's formulas, as printed and with W_O split over the pool as the paper's text says."""
    rows = []
    for tpa, tpf, kvp in _APPENDIX_LAYOUTS:
        cache = kv_read_time(_APPENDIX, context=10**6, tpa=tpa, kvp=kvp) * 1e6
        printed, pooled = (
            weight_read_time(_APPENDIX, tpa=tpa, tpf=tpf, kvp=kvp, output_over_pool=pool) * 1e6
            for pool in (False, True)
        )
        rows.append((f"({tpa}, {tpf}, {kvp})", f"{cache:g}", f"{printed:.4g}", f"{pooled:.4g}"))
    header = ("(TPA, TPF, KVP)", "cache, µs", "weights, µs (as printed)", "weights, µs (W_O over the pool)")
    return Table(title="Appendix A of the paper, one layer (bound)", header=header, rows=tuple(rows))


def _claim_table(claim: Claim, outcomes: Sequence[Outcome]) -> Table:
    rows = [("the paper (simulated)", f"{claim.interactivity:g} ×", f"{claim.users:g} ×", "", f"{claim.hop_b_loss:.0%}",
             "", "", "")]  # fmt: skip
    rows += [
        (o.name, f"{o.interactivity:.2f} ×", f"{o.users:.1f} ×", f"{o.users_at_ttl_ms:.1f}", f"{o.hop_b_loss:.1%}",
         f"{o.hop_b_per_request:.0%}", o.helix, o.baseline)
        for o in outcomes
    ]  # fmt: skip
    header = ("constants", "tokens/s/user, Helix / baseline", "users at one latency, at the most", "at ms/token",
              "HOP-B off costs", "with an exchange per request", "fastest Helix", "fastest baseline")  # fmt: skip
    return Table(title=f"{claim.model}, 10⁶ tokens, up to {MAX_GPUS} × GB200, fp4 (modelled)", header=header,
                 rows=tuple(rows))  # fmt: skip


def _band(values: Sequence[float]) -> str:
    return (
        f"{min(values):.2f} … {max(values):.2f} ×" if max(values) < 10 else f"{min(values):.1f} … {max(values):.0f} ×"
    )


def _reasons(claim: Claim, outcomes: Sequence[Outcome]) -> tuple[str, str, str]:
    """Why each of the three figures differs from the paper's."""
    first = outcomes[0]
    five, peak = (next(o for o in outcomes if o.name.startswith(text)) for text in
                  ("5 µs a collective, 2.5", "the same at peak"))  # fmt: skip
    speed = (
        f"latency of collectives grows with the ranks; with 5 µs each and 2.5 µs a kernel {five.interactivity:.2f} ×, "
        f"at peak bandwidth besides {peak.interactivity:.2f} ×"
    )
    users = (
        f"a maximum, at the fastest baseline's latency: {five.users:.0f} × and {peak.users:.1f} × in those two cases"
    )
    overlap = (
        "one exchange of a whole batch is latency, which each part of it pays again; if every request had one of its "
        f"own, as in the paper's example, {first.hop_b_per_request:.0%} (paper {claim.hop_b_loss:.0%})"
    )
    return speed, users, overlap


def _summary(found: Sequence[tuple[Claim, list[Outcome]]]) -> Table:
    """Each claim beside what comes out, the band over the constants, and the reason for the gap."""
    rows = []
    for claim, outcomes in found:
        # A roofline has no latency at all, and other baselines and grids are no constants.
        band = [o for o in outcomes if not o.name.startswith(("roofline", "calibrated,"))]
        first, (speed, users, overlap) = outcomes[0], _reasons(claim, outcomes)
        losses = [o.hop_b_loss for o in band]
        rows += [
            (claim.model, "tokens/s/user", f"{claim.interactivity:g} ×", f"{first.interactivity:.2f} ×",
             _band([o.interactivity for o in band]), speed),
            (claim.model, "users at one latency", f"{claim.users:g} ×", f"{first.users:.1f} ×",
             _band([o.users for o in band]), users),
            (claim.model, "HOP-B off costs", f"{claim.hop_b_loss:.0%}", f"{first.hop_b_loss:.1%}",
             f"{min(losses):.1%} … {max(losses):.1%}", overlap),
        ]  # fmt: skip
    header = ("model", "claim", "paper (simulated)", "here (modelled)", "band over the constants", "why it differs")
    return Table(title="The paper's claims", header=header, rows=tuple(rows))


def reproduction_tables() -> list[Table]:
    """The claims with their reasons, one table of variants for each, and the appendix."""
    found = [(claim, reproduce(claim)) for claim in CLAIMS]
    return [_summary(found), *(_claim_table(claim, outcomes) for claim, outcomes in found), appendix_table()]
