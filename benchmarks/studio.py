"""The studio under load, under kill -9, under nonsense, and as one user sees it; each is one command.

    python benchmarks/studio.py load [--clients 1 8 32] [--seconds 60]
    python benchmarks/studio.py kill [--kills 50] [--clients 8]
    python benchmarks/studio.py fuzz [--requests 10000]
    python benchmarks/studio.py page [--presses 10]

With --small, the random model of the tests stands in for the bundled one: quick, and says nothing of its speed.
Results go to standard output as JSON, and to results/studio_WHAT.json unless --output says otherwise; those of --small
only to --output. Each is meant for six minutes at most on two quiet cores; `page` needs Chromium. The exit status is 1
where anything was lost, wrong or failed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import os
import platform
import sys
from pathlib import Path

import torch

import helicube

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["load", "kill", "fuzz", "page"])
    parser.add_argument("--clients", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--within-s", type=float, default=10.0, help="A kill comes at most this long after a start.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--presses", type=int, default=10, help="Of Enter, one after the other.")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--step-s", type=float, default=0.0, help="With --small: least seconds per step.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", help="A model other than the bundled one.")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "tests" / "studio"))
    # `page` alone needs a browser's driver.
    found = importlib.import_module(f"studio_{options.what}").run(options)
    report = {
        "what": options.what,
        "model": "small random model" if options.small else options.weights or "bundled",
        "date": dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                    "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None},
        "versions": {"helicube": helicube.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "command": " ".join(["python", "benchmarks/studio.py", *sys.argv[1:]]),
        **found,
    }  # fmt: skip
    text = json.dumps(report, indent=2)
    print(text)
    output = options.output or (None if options.small else HERE / "results" / f"studio_{options.what}.json")
    if output:
        output.write_text(text + "\n", encoding="utf-8")
    sys.exit(0 if found["sound"] else 1)


if __name__ == "__main__":
    main()
