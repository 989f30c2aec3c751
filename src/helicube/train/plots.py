"""Curves of a training run."""

from __future__ import annotations

import json
from pathlib import Path

from helicube.errors import MissingExtraError

__all__ = ["plot_metrics"]


def plot_metrics(folder: Path) -> None:
    """Draw every column of `folder/metrics.jsonl` against the step into `folder/metrics.png`.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "train") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = sorted({key for row in rows for key in row} - {"step", "seconds"})
    columns = min(4, len(keys))
    lines = -(-len(keys) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4 * columns, 3 * lines), squeeze=False)
    for axis, key in zip(axes.flat, keys, strict=False):
        known = [(row["step"], row[key]) for row in rows if key in row]
        axis.plot(*zip(*known, strict=True))
        axis.set_title(key)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    partial = folder / "metrics.partial.png"
    figure.savefig(partial, dpi=80)
    plt.close(figure)
    partial.replace(folder / "metrics.png")
