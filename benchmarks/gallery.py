"""The picture of the README: what the bundled model makes of a dozen prompts, first seed, nothing picked.

python benchmarks/gallery.py [--weights FOLDER] [--output docs/img/gallery.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from helicube.geometry.pictures import contact_sheet
from helicube.pipelines.text_to_shape import load

PROMPTS = (
    "a red wooden chair", "a round wooden table", "a blue race car", "a green pine tree",
    "a small house with a red roof",
    "a yellow desk lamp", "a brown horse", "a pirate ship", "a treasure chest", "a pink armchair", "a white airplane",
    "a grey castle tower",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights")
    parser.add_argument("--output", type=Path, default=Path("docs/img/gallery.png"))
    parser.add_argument("prompts", nargs="*")
    options = parser.parse_args()
    prompts = options.prompts or list(PROMPTS)
    pipeline = load(options.weights)
    made = pipeline.generate_many(prompts, [pipeline.model.sampling] * len(prompts))
    contact_sheet([m.mesh for m in made], prompts, options.output)


if __name__ == "__main__":
    main()
