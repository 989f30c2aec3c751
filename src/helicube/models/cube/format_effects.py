"""What weight formats do to the figures of a model, as measured and kept beside its weights.

formats.json    {"right_class_share": {"bfloat16": 0.9, "int8": 0.9, "int4": 0.85}}
"""

from __future__ import annotations

import json
from pathlib import Path

from helicube.errors import CheckpointError

__all__ = ["FORMATS_FILE", "format_note"]

FORMATS_FILE = "formats.json"
# Share of a figure that a format may take without a word.
HARM = 0.01
FIGURES = {"right_class_share": "objects of the right class", "volume_iou": "the tokenizer's volume IoU"}


def format_note(folder: Path, form: str) -> str | None:
    """A sentence for people if a format harms a figure by more than 1 %; None if not, or if nobody measured it.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = folder / FORMATS_FILE
    if not path.is_file():
        return None
    try:
        measured = json.loads(path.read_text(encoding="utf-8"))
        changes = {name: (float(m["bfloat16"]), float(m[form])) for name, m in measured.items() if form in m}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged ({error!r}); remove it or measure anew") from None
    harm = [
        f"{FIGURES.get(name, name)} {before:.1%} to {after:.1%}"
        for name, (before, after) in changes.items()
        if after < before * (1 - HARM)
    ]
    return f"weights in {form} harm this model: {'; '.join(harm)} (see docs/quantization.md)" if harm else None
