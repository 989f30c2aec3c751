"""Measured serving rows, with their layouts brought into one convention.

The table mixes three conventions for expert and data parallelism. Runs that occur twice under two of them, and the run
names, settle what each means (docs/planner.md):

- plain: tp · attention_dp GPUs, moe_tp · moe_ep = that number.
- product: tp and ep of the run were multiplied (tp 4, ep 4 is written as tp 16, moe_tp 4, moe_ep 4): GPUs = moe_tp.
- doubled: tp GPUs with ep = tp are written as tp, attention_dp = tp, moe_ep = tp². The same runs occur under the first
  convention with attention_dp 1 and agree to 1 %, so that attention is tensor parallel in them.

`concurrency` counts requests per copy of attention.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from helicube.errors import InputError
from helicube.planner.setting import Formats, checkpoint_formats
from helicube.specs.catalog import get_model
from helicube.specs.hardware import HardwareSpec, load_hardware
from helicube.specs.model import ModelSpec

__all__ = ["LENGTH_SHARE", "ServingRow", "read_serving", "row_formats"]

# Lengths are drawn from 0.8 … 1.0 of the nominal ones: 0.9 on average.
LENGTH_SHARE = 0.9
# Of any number of the table; more is a slip.
_LARGEST = 1e8

_COLUMNS = ("backend", "model", "system", "precision", "isl", "osl", "concurrency", "tp_size", "pp_size",
            "attention_dp_size", "moe_tp_size", "moe_ep_size", "speculative_decoding_unknown")  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingRow:
    """One measured run."""

    engine: str
    model: ModelSpec
    hardware: HardwareSpec
    precision: str
    # bf16, fp8, fp4 or int4; bf16 where the table names none.
    prompt: float
    # Mean prompt tokens.
    output: float
    # Mean output tokens.
    concurrency: float
    # Requests in flight over all GPUs.
    pp: int
    dp: int
    # Copies of attention.
    tpa: int
    tpf: int
    ep: int
    speculative: bool
    # Multi-token prediction may have been on.
    tpot_s: float
    # Measured; NaN where the table gives none.
    ttft_s: float

    @property
    def num_gpus(self) -> int:
        """GPUs of the run."""
        return self.pp * self.dp * self.tpa

    @property
    def layout(self) -> str:
        """Short name of the layout."""
        parts = [f"tp{self.tpa}"] + [f"{k}{v}" for k, v in (("dp", self.dp), ("ep", self.ep), ("pp", self.pp)) if v > 1]
        return " ".join(parts)


def row_formats(row: ServingRow) -> Formats:
    """Number formats of a run.

    The recipes of vLLM and TensorRT-LLM set an fp8 cache with quantised weights, those of SGLang keep bf16; gpt-oss
    keeps a bf16 cache on Hopper in vLLM. A model published in 4 bits is served in them, whatever a run is called.
    """
    four_bit = row.model.native_precision in {"fp4", "int4"}
    precision = row.model.native_precision if four_bit else row.precision
    quantised = precision != "bf16"
    keeps = row.engine == "sglang" or (row.engine == "vllm" and four_bit and not row.hardware.fp4_flops)
    return checkpoint_formats(row.model, precision, "fp8" if quantised and not keeps else "bf16")


def _number(record: dict[str, str], key: str, line: int, default: float) -> float:
    text = (record.get(key) or "").strip()
    if not text or text.lower() == "nan":
        return default
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"line {line}: {key} is {text!r}; it must be a number") from error
    if not abs(value) <= _LARGEST:
        raise InputError(f"line {line}: {key} is {text}; no run has that many")
    return value


def _count(record: dict[str, str], key: str, line: int) -> int:
    value = int(_number(record, key, line, 1))
    if value < 1:
        raise InputError(f"line {line}: {key} is {value}; it is at least 1")
    return value


def _grid(record: dict[str, str], line: int, *, moe: bool) -> tuple[int, int, int, float]:
    """(GPUs of one stage, copies of attention, EP, factor on concurrency)."""
    tp, dp = _count(record, "tp_size", line), _count(record, "attention_dp_size", line)
    moe_tp = max(1, int(_number(record, "moe_tp_size", line, 1)))
    moe_ep = max(1, int(_number(record, "moe_ep_size", line, 1)))
    if not moe:
        return tp * dp, dp, 1, dp
    if moe_tp > 1 and moe_ep > 1:
        ranks, ep = moe_tp, moe_ep
    elif dp > 1 and tp == dp:
        return tp, 1, tp, dp
    else:
        ranks, ep = tp * dp, moe_ep
    return ranks, (ranks if dp > 1 else 1), min(ep, ranks), dp


def _row(record: dict[str, str], line: int) -> ServingRow:
    short = [key for key in _COLUMNS if record.get(key) is None]
    if short:
        raise InputError(f"line {line}: {', '.join(short)} missing; correct the row")
    model, hardware = get_model(record["model"]), load_hardware(record["system"])
    ranks, dp, ep, copies = _grid(record, line, moe=model.ffn.is_moe)
    if ranks % ep:
        raise InputError(f"line {line}: moe_ep_size {ep} does not divide {ranks} GPUs; correct the row")
    return ServingRow(
        engine=record["backend"], model=model, hardware=hardware, precision=(record["precision"] or "bf16").strip(),
        prompt=LENGTH_SHARE * _number(record, "isl", line, 0), output=LENGTH_SHARE * _number(record, "osl", line, 0),
        concurrency=copies * _number(record, "concurrency", line, 0), pp=_count(record, "pp_size", line),
        dp=dp, tpa=ranks // dp, tpf=ranks // ep, ep=ep,
        speculative=record["speculative_decoding_unknown"].strip().lower() == "true",
        tpot_s=_number(record, "tpot_ms", line, float("nan")) * 1e-3,
        ttft_s=_number(record, "ttft_ms", line, float("nan")) * 1e-3,
    )  # fmt: skip


def _checked_row(record: dict[str, str], line: int) -> ServingRow:
    row = _row(record, line)
    if min(row.prompt, row.output, row.concurrency) <= 0:
        raise InputError(f"line {line}: isl, osl and concurrency must be positive; correct the row")
    return row


def _rows(reader: csv.DictReader[str], left_out: list[str] | None) -> list[ServingRow]:
    rows = []
    for line, record in enumerate(reader, start=2):
        try:
            rows.append(_checked_row(record, line))
        except InputError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
    return rows


def read_serving(path: Path, *, left_out: list[str] | None = None) -> list[ServingRow]:
    """Read a table of measured runs.

    Args:
        path: CSV with a header.
        left_out: receives why each unusable row was left out; without it the first such row is an error.

    Raises:
        InputError: the file cannot be read, a column is missing, a row names an unknown model, GPU or number, or no row
            is left.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (reader.fieldnames or [])]
            if missing:
                raise InputError(f"{path}: columns {', '.join(missing)} are missing; give the table of serving runs")
            rows = _rows(reader, left_out)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read ({reason}); check the path") from error
    if not rows:
        reason = f"{left_out[0]}" if left_out else "give the table of serving runs"
        raise InputError(f"{path} holds no rows that can be read; {reason}")
    return rows
