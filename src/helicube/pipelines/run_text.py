"""`helicube run`: prompts to text on one rank or on a pool, and the check of a layout against one device."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helicube.errors import InputError, PromptError
from helicube.parallel.launch import as_rank, launch
from helicube.specs.layout import HelixLayout

__all__ = ["RunOptions", "run_text"]

DTYPES = ("auto", "float32", "bfloat16")
# A day.
MOST_TIMEOUT_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `helicube run` was asked for."""

    # Name, folder or file of the model.
    model: str
    # Prompts, decoded side by side.
    prompts: tuple[str, ...] = ()
    # A text file whose content is one more prompt.
    prompt_file: Path | None = None
    # "kvp=2,tpa=1,…", or its widths one by one.
    layout: str | None = None
    kvp: int | None = None
    tpa: int | None = None
    tpf: int | None = None
    ep: int | None = None
    # Processes to start here; None is as many as the layout needs.
    nproc: int | None = None
    max_tokens: int = 256
    seed: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    # Continue the prompt as it is, without the chat template.
    raw: bool = False
    # Compare with one device.
    check: bool = False
    # Tokens dealt to a KVP rank at a time, and of a prompt per step.
    block: int = 16
    chunk: int = 512
    # Tokens that the cache holds in all; None is what the prompts need.
    cache_tokens: int | None = None
    # Parts of a batch whose exchanges overlap with attention.
    hopb: int = 1
    # auto: float32 on a CPU, bfloat16 on a GPU.
    dtype: str = "auto"
    # Of a collective, seconds.
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for name, low in (
            ("max_tokens", 1),
            ("block", 1),
            ("chunk", 1),
            ("hopb", 1),
            ("cache_tokens", 1),
            ("nproc", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < low:
                raise InputError(f"{name}={value} is too small; choose at least {low}")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype {self.dtype!r} is unknown; choose {' or '.join(DTYPES)}")
        if not 0 < self.timeout <= MOST_TIMEOUT_S:
            raise InputError(f"timeout={self.timeout} is out of range; choose seconds above 0, up to {MOST_TIMEOUT_S}")

    def helix_layout(self, num_ranks: int | None) -> HelixLayout:
        """The layout asked for, filled up to the ranks that there are.

        Raises:
            LayoutError: the widths contradict each other or the ranks.
        """
        if self.layout is None:
            return HelixLayout.of(kvp=self.kvp, tpa=self.tpa, tpf=self.tpf, ep=self.ep, num_ranks=num_ranks)
        given = [n for n in ("kvp", "tpa", "tpf", "ep") if getattr(self, n) is not None]
        if given:
            raise InputError(f"--layout and --{given[0]} say the same thing twice; give one of them")
        return HelixLayout.parse(self.layout, num_ranks=num_ranks)

    def texts(self) -> tuple[str, ...]:
        """All prompts.

        Raises:
            PromptError: none, or a file that cannot be read as text.
        """
        found = self.prompts
        if self.prompt_file is not None:
            try:
                found = (*found, self.prompt_file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise PromptError(f"{self.prompt_file} cannot be read as text: {error}") from None
        if not found:
            raise PromptError("there is no prompt; write one, or name a file with --prompt-file")
        if self.check and len(found) > 1:
            raise PromptError(f"--check takes one prompt, not {len(found)}")
        return found


def run_text(options: RunOptions, argv: Sequence[str]) -> None:
    """Decode, as the rank that this process is, or with processes that are started here.

    Args:
        argv: the command line of this process, run again by each rank.

    Raises:
        HelicubeError: whatever a user can mend, and ranks that died or hung.
    """
    options.texts()
    if "RANK" in os.environ:
        as_rank(lambda: _rank(options, int(os.environ["WORLD_SIZE"])))
        return
    layout = options.helix_layout(options.nproc)
    _check_layout(layout, options.model)
    if layout.num_ranks == 1:
        _rank(options, 1)
        return
    launch([sys.executable, "-m", "helicube", *argv], layout.num_ranks)


def _check_layout(layout: HelixLayout, model: str) -> None:
    """Refuse a layout before processes are started for it."""
    from helicube.models.loading_open import open_model

    layout.validate(open_model(model).spec)


def _rank(options: RunOptions, num_ranks: int) -> None:
    from helicube.pipelines.text_rank import run_rank

    run_rank(options, options.helix_layout(num_ranks))
