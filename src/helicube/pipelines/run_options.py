"""What `helicube run` was asked for; the command line holds the defaults."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from helicube.errors import InputError, PromptError
from helicube.specs.layout import HelixLayout

__all__ = ["RunOptions"]

DTYPES = ("auto", "float32", "bfloat16")
# A day.
MOST_TIMEOUT_S = 86_400
# Far above any context; a device that never ends is not read for ever.
MOST_PROMPT_BYTES = 1 << 30
# Least values of whole numbers.
LEAST = {"max_tokens": 1, "block": 1, "chunk": 1, "hopb": 1, "cache_tokens": 1, "nproc": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """One run, the same on every rank.

    Raises:
        InputError: a value is out of range.
    """

    # Name, folder or file of the model.
    model: str
    # Prompts, decoded side by side.
    prompts: tuple[str, ...]
    # A text file whose content is one more prompt.
    prompt_file: Path | None
    # "kvp=2,tpa=1,…", or its widths one by one.
    layout: str | None
    kvp: int | None
    tpa: int | None
    tpf: int | None
    ep: int | None
    # Processes to start here; None is as many as the layout needs.
    nproc: int | None
    max_tokens: int
    seed: int
    temperature: float
    top_p: float
    # Continue the prompt as it is, without the chat template.
    raw: bool
    # Compare with one device.
    check: bool
    # Tokens dealt to a KVP rank at a time, and of a prompt per step.
    block: int
    chunk: int
    # Tokens that the cache holds in all; None is what the prompts need.
    cache_tokens: int | None
    # Parts of a batch whose exchanges overlap with attention.
    hopb: int
    # auto: float32 on a CPU and for a check, bfloat16 on a GPU.
    dtype: str
    # Format of the linear layers' weights; auto: as `dtype`, in PyTorch's own products.
    weight_format: str
    # Of a collective, seconds.
    timeout: float

    def __post_init__(self) -> None:
        for name, low in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise InputError(f"{name}={value} is too small; choose at least {low}")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype {self.dtype!r} is unknown; choose {' or '.join(DTYPES)}")
        if self.check and self.dtype == "bfloat16":
            raise InputError("--check compares in float32, as rounding to bfloat16 may change ids; leave --dtype out")
        self._check_weights()
        if not 1 <= self.timeout <= MOST_TIMEOUT_S:
            raise InputError(f"timeout={self.timeout} is out of range; choose 1 to {MOST_TIMEOUT_S} seconds")

    def _check_weights(self) -> None:
        if self.weight_format == "auto":
            return
        # Here, so that a launcher, which only starts ranks, need not import PyTorch for its options.
        from helicube.kernels.cpu.matrix import FORMATS
        from helicube.nn.quantize import parse_format

        if parse_format(self.weight_format).name not in FORMATS:
            raise InputError(f"weight format {self.weight_format!r} is for GPUs; choose one of {', '.join(FORMATS)}")
        if self.check:
            raise InputError(
                f"--check compares bit by bit what --weight-format {self.weight_format} rounds; leave one of them out"
            )

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

    def with_texts(self) -> RunOptions:
        """The same with all prompts read, so that a file that can be read only once is.

        Raises:
            PromptError: none, an empty one, or a file that cannot be read as text.
        """
        texts = self.prompts if self.prompt_file is None else (*self.prompts, _text(self.prompt_file))
        if not texts:
            raise PromptError("there is no prompt; write one, or name a file with --prompt-file")
        if not all(text.strip() for text in texts):
            raise PromptError("the prompt is empty; write a question or a text to continue")
        if self.check and len(texts) > 1:
            raise PromptError(f"--check takes one prompt, not {len(texts)}; check them one by one")
        return replace(self, prompts=texts, prompt_file=None)

    def to_json(self) -> str:
        """As text for another process; the prompts must have been read."""
        assert self.prompt_file is None, "prompts are read before options travel"
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunOptions:
        found: dict[str, Any] = json.loads(text)
        return cls(**(found | {"prompts": tuple(found["prompts"])}))


def _text(path: Path) -> str:
    """A file as text.

    Raises:
        PromptError: it cannot be read as such.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_PROMPT_BYTES + 1)
        if len(content) > MOST_PROMPT_BYTES:
            raise PromptError(f"{path} holds more than {MOST_PROMPT_BYTES:,} bytes; name a file with a shorter prompt")
        return content.decode("utf-8")
    except PromptError:
        raise
    except (OSError, ValueError) as error:
        # ValueError: a name with a zero byte.
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(getattr(error, "strerror", error))
        raise PromptError(f"{path} cannot be read as text ({why}); name a text file in UTF-8") from None
