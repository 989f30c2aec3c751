"""`helicube run`: prompts to text on one process or on a pool."""

from __future__ import annotations

import sys

from helicube.parallel.environment import is_rank, pool_size
from helicube.parallel.launch import launch
from helicube.parallel.launched import as_rank
from helicube.pipelines.run_options import RunOptions
from helicube.specs.layout import HelixLayout

__all__ = ["run_text"]


def run_text(options: RunOptions) -> None:
    """Decode, as the rank that this process is, or with processes that are started here.

    Raises:
        HelicubeError: whatever a user can mend, and ranks that died or hung.
    """
    ranks = pool_size() if is_rank() else options.nproc
    layout = options.helix_layout(ranks)
    read = options.with_texts()
    if is_rank():
        as_rank(lambda: _rank(read, layout))
        return
    _check_layout(layout, options.model)
    if layout.num_ranks == 1:
        _rank(read, layout)
        return
    sys.stderr.write(f"starting {layout.num_ranks} ranks: {layout}\n")
    sys.stderr.flush()
    argv = [sys.executable, "-m", "helicube.pipelines.rank_process", "run"]
    launch(argv, layout.num_ranks, given=read.to_json().encode())


def _check_layout(layout: HelixLayout, model: str) -> None:
    """Refuse a layout before processes are started for it."""
    from helicube.models.loading_open import open_model

    layout.validate(open_model(model).spec)


def _rank(options: RunOptions, layout: HelixLayout) -> None:
    from helicube.pipelines.text_rank import run_rank

    run_rank(options, layout)
