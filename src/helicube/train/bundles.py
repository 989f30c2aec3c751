"""Runs put together: the model file that `--weights` takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from helicube.errors import CheckpointError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import DefaultConfig, DefaultWeights, load_default, save_default
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.text_static import BUNDLED_TEXT_WEIGHTS
from helicube.train import decoder_task
from helicube.train.factored_decoder import FactoredDecoder, shared_rows
from helicube.train.text_table import copy_table, table_digest
from helicube.train.trained_runs import TokenizerRuns, load_code, load_match, load_state, own_table, refuse_kind

__all__ = ["bundle", "rebundle"]


def bundle(tokenizer: TokenizerRuns, decoder_run: Path, out: Path) -> Path:
    """Write the averaged weights of three runs as one model file, and the decoder's text table beside it; its path.

    Raises:
        InputError: a run is missing, or `out` holds another text table.
        CheckpointError: a run is damaged or of another kind, or the text table it was trained with is gone.
    """
    code = load_code(tokenizer)
    decoder, description = _trained_decoder(decoder_run, code)
    _keep_table(decoder_run, description, out)
    config = DefaultConfig(
        shape=code.shape.config,
        color=code.paint.config,
        decoder=decoder.config,
        num_text=description["task"]["num_text"],
    )
    return save_default(DefaultWeights(config=config, code=code, decoder=decoder), out)


def rebundle(model: Path, out: Path, *, decoder_run: Path | None = None, match_run: Path | None = None) -> Path:
    """Write a whole model again with the averaged weights of runs in place of its own parts; the path of its file.

    Raises:
        InputError: a run is missing, or `out` holds another text table.
        CheckpointError: the model or a run is damaged, of another kind, or of other sizes.
    """
    weights = load_default(model)
    if decoder_run is not None:
        decoder, description = _trained_decoder(decoder_run, weights.code)
        if description.get("text") not in {None, table_digest(own_table(model) or BUNDLED_TEXT_WEIGHTS)}:
            raise CheckpointError(f"{decoder_run} was trained with another text table than that of {model}")
        config = replace(weights.config, decoder=decoder.config, num_text=description["task"]["num_text"])
        weights = replace(weights, config=config, decoder=decoder, form="float32")
    if match_run is not None:
        match = load_match(match_run)
        weights = replace(weights, config=replace(weights.config, match=match.config), match=match)
    if (text := own_table(model)) is not None:
        copy_table(text, out / "text")
    return save_default(weights, out)


def _trained_decoder(run: Path, code: LatticeCode) -> tuple[CubeDecoder, dict[str, Any]]:
    """The averaged decoder of a run on a tokenizer's ids, and what the run says of itself."""
    state = load_state(run, decoder_task.KIND)
    description: dict[str, Any] = state["description"]
    try:
        config = DecoderConfig(**description["model"])
    except TypeError:
        raise refuse_kind(run, decoder_task.KIND) from None
    factored = FactoredDecoder(CubeDecoder(config), shared_rows(code, config.vocab_size))
    try:
        factored.load_state_dict(state["average"])
    except RuntimeError:
        raise CheckpointError(f"{run} does not fit the tokenizer; name the runs that it was trained with") from None
    return factored.folded(), description


def _keep_table(decoder_run: Path, description: dict[str, Any], out: Path) -> None:
    """Put the text table of a decoder into the folder of its model, unless it is the bundled one."""
    text = _table_of(decoder_run, description.get("text"))
    if text is not None or (out / "text").is_dir():
        copy_table(text or BUNDLED_TEXT_WEIGHTS, out / "text")


def _table_of(decoder_run: Path, digest: str | None) -> Path | None:
    """The text table that a decoder was trained with, None if it is the bundled one."""
    own = decoder_run / "text"
    if digest is None or digest == table_digest(BUNDLED_TEXT_WEIGHTS):
        return None
    if not own.is_dir() or table_digest(own) != digest:
        raise CheckpointError(f"{own} is not the text table that the decoder was trained with ({digest}); put it there")
    return own
