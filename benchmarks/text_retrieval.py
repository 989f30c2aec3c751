"""How often a prompt in foreign words is nearest to the right noun, for tables of static text vectors.

All pairs are in tests/data/text_pairs.tsv. "foreign" are those with no word that the table was taught for the right
class; of these, "blind" were not looked at while weights were chosen; "phrases" have adjectives or details.

    python benchmarks/text_retrieval.py [FOLDER ...] [--misses]

A FOLDER holds static.safetensors and vocab.txt, as written by `distill_static_vectors`; the shipped table by default.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from helicube.models.cube.text_static import BUNDLED_TEXT_WEIGHTS, StaticTextEncoder
from helicube.train.text_retrieval import load_pairs, nearest_names, rank_names

PAIRS = Path(__file__).resolve().parents[1] / "tests" / "data" / "text_pairs.tsv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", default=[BUNDLED_TEXT_WEIGHTS], metavar="FOLDER")
    parser.add_argument("--misses", action="store_true", help="list the pairs that miss, with the nearest nouns")
    arguments = parser.parse_args()
    pairs = load_pairs(PAIRS)
    groups = {
        "all": np.array([True for _ in pairs]),
        "foreign": np.array([pair.foreign for pair in pairs]),
        "blind and foreign": np.array([pair.blind and pair.foreign for pair in pairs]),
        "phrases": np.array([pair.is_phrase for pair in pairs]),
    }
    table = Table("table", "D", "V", "MB", "load ms", *(f"{name} ({n.sum()})" for name, n in groups.items()))
    console = Console(width=160)
    for folder in arguments.folders:
        start = time.perf_counter()
        encoder = StaticTextEncoder.load(folder)
        load_ms = (time.perf_counter() - start) * 1e3
        ranks = rank_names(encoder, pairs)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        shares = [f"{(ranks[g] == 0).mean():.1%} / {(ranks[g] < 3).mean():.1%}" for g in groups.values()]
        table.add_row(folder.name, str(encoder.width), str(len(encoder)), f"{size:.1f}", f"{load_ms:.0f}", *shares)
        if arguments.misses:
            names = nearest_names(encoder, [pair.prompt for pair in pairs], 3)
            for pair, rank, near in zip(pairs, ranks, names, strict=True):
                if rank:
                    console.print(f"{rank:3d}  {pair.prompt}: {', '.join(near)}  (right: {', '.join(pair.right)})")
    console.print(table)
    console.print("top-1 / top-3")


if __name__ == "__main__":
    main()
