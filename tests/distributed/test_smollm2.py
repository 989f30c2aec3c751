"""The promise of the README, as it is typed: a real model on real processes says what one device says."""

from __future__ import annotations

import re

import pytest
from test_run import helicube

from helicube.errors import CheckpointError
from helicube.models.loading_open import open_model


@pytest.mark.parametrize("layout", [["--nproc", "3", "--tpa", "3"], ["--nproc", "4", "--kvp", "4"]])
def test_smollm2_over_processes(layout: list[str]) -> None:
    """9 query heads and 3 KV heads: the second layout pads 9 heads to 12, and its last rank merges padding alone."""
    try:
        open_model("smollm2")
    except CheckpointError as error:
        pytest.skip(str(error))
    found = helicube("--model", "smollm2", "Why is the sky blue?", "--max-tokens", "4", *layout, "--check")
    assert found.returncode == 0, found.stderr
    [(count, worst)] = re.findall(
        r"check: ids identical over (\d+) tokens, largest difference of logits (\S+) ", found.stderr
    )
    # Logits reach 40 in float32 after 30 layers; transformers and this differ by 8e-5 on one device.
    assert (count, float(worst) < 3e-4) == ("4", True)
    assert found.stdout == "The answer to this\n"
