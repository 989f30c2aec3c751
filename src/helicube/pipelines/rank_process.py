"""One rank of a pool that a command starts: `python -m helicube.pipelines.rank_process run` or `bench`.

What it does comes from the command that started it, and imports come late: a rank first takes hold of its lifeline.
"""

from __future__ import annotations

import sys

from helicube.parallel.environment import pool_size
from helicube.parallel.launched import as_rank, given

__all__: list[str] = []


def _run() -> None:
    from helicube.pipelines.run_options import RunOptions
    from helicube.pipelines.text_rank import run_rank

    options = RunOptions.from_json(given().decode())
    run_rank(options, options.helix_layout(pool_size()))


def _bench() -> None:
    from helicube.pipelines.bench_rank import bench_rank

    bench_rank()


if __name__ == "__main__":
    as_rank({"run": _run, "bench": _bench}[sys.argv[1]])
