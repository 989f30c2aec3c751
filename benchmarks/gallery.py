"""The picture of the README: what the bundled model makes of a dozen prompts, with the settings and seed of `generate`.

python benchmarks/gallery.py [--weights FOLDER] [--output docs/img/gallery.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from helicube.geometry.pictures import contact_sheet
from helicube.pipelines.text_to_shape import load

PROMPTS = (
    "a red wooden chair", "a blue race car", "a green pine tree", "a grey castle tower", "a treasure chest",
    "an oak tree", "a blue vase", "a white toilet", "a brown dog", "a red mushroom", "a stone well", "a wooden crate",
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
    contact_sheet([m.mesh for m in made], prompts, options.output, columns=6)


if __name__ == "__main__":
    main()
