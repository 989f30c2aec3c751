"""The rows of `helicube bench helix` for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from helicube.pipelines.bench_helix import BenchOptions
from helicube.pipelines.bench_layout import Row
from helicube.specs.layout import HelixLayout

__all__ = ["table"]

HEADS = ("kvp·tpa\ntpf·ep", "weights\nMB", "of all\nranks", "cache\nMB", "tokens\nmin–max", "sent kB\na step",
         "of it\na2a", "TTL\nms", "HOP-B\nms", "differ-\nence", "\nids")  # fmt: skip


def table(options: BenchOptions, rows: Sequence[Row]) -> Table:
    """One line per layout."""
    found = Table(title=_title(options, rows[0].device), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in HEADS:
        found.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        layout = HelixLayout.parse(row.layout)
        found.add_row(
            f"{layout.kvp}·{layout.tpa} {layout.tpf}·{layout.ep}",
            f"{row.weight_bytes / 1e6:.2f}",
            f"{row.weight_bytes_all / 1e6:.2f}",
            f"{row.cache_bytes / 1e6:.2f}",
            f"{row.least_tokens}–{row.most_tokens}",
            f"{row.sent_bytes / 1e3:.1f}",
            f"{row.exchanged_bytes / 1e3:.1f}",
            f"{row.ttl_s * 1e3:.1f}",
            f"{row.ttl_overlapped_s * 1e3:.1f}",
            f"{row.difference:.1e}",
            "same" if row.same_ids else "differ",
        )
    return found


def _title(options: BenchOptions, device: str) -> str:
    ranks = "all ranks in one process" if options.in_process else "one process per rank"
    lengths = options.lengths
    what = f"1 sequence of {lengths[0]} tokens"
    if len(lengths) > 1:
        what = f"{len(lengths)} sequences of {lengths[-1]} to {lengths[0]} tokens"
    return f"Measured: {options.model} in float32, {what}, {ranks}, device {device}"
