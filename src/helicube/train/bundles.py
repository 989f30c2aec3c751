"""Runs put together: the model file that `--weights` takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from helicube.errors import CheckpointError, InputError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.default import MODEL_FILE, DefaultConfig, DefaultWeights, load_default, save_default
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.text_static import BUNDLED_TEXT_WEIGHTS, table_of
from helicube.train import decoder_task
from helicube.train.factored_decoder import FactoredDecoder, shared_rows
from helicube.train.text_table import copy_table, table_digest
from helicube.train.trained_runs import TokenizerRuns, load_code, load_state, settings

__all__ = ["bundle", "rebundle"]


def bundle(tokenizer: TokenizerRuns, decoder_run: Path, out: Path) -> Path:
    """Write the averaged weights of three runs as one model file, and the decoder's text table beside it; its path.

    Raises:
        InputError: a run is missing, or `out` holds a model or another text table.
        CheckpointError: a run is damaged or of another kind, the decoder was trained on another tokenizer, or the text
            table it was trained with is gone.
    """
    code = load_code(tokenizer)
    decoder, said = _trained_decoder(decoder_run, code)
    _check_basis(decoder_run, said, code, said.get("text"))
    table = _table_of_run(decoder_run, said.get("text"))
    config = _config(decoder_run, said, code, decoder)
    return _save(DefaultWeights(config=config, code=code, decoder=decoder), table, out)


def rebundle(model: Path, decoder_run: Path, out: Path) -> Path:
    """Write a whole model again with the averaged decoder of a run in place of its own; the path of its file.

    Raises:
        InputError: the run is missing, or `out` holds a model or another text table.
        CheckpointError: the model or the run is damaged or of another kind, or the run was trained on another tokenizer
            or text table than the model's.
    """
    weights, table = load_default(model), table_of(model)
    decoder, said = _trained_decoder(decoder_run, weights.code)
    _check_basis(decoder_run, said, weights.code, table_digest(table))
    config = _config(decoder_run, said, weights.code, decoder)
    return _save(replace(weights, config=config, decoder=decoder), table, out)


def _config(run: Path, said: dict[str, Any], code: LatticeCode, decoder: CubeDecoder) -> DefaultConfig:
    """Sizes of the parts, and the text states that the decoder of a run was trained with.

    Raises:
        CheckpointError: the run does not say how many.
    """
    try:
        return DefaultConfig(
            shape=code.shape.config,
            color=code.paint.config,
            decoder=decoder.config,
            num_text=said["task"].get("num_text"),
        )
    except CheckpointError as error:
        raise CheckpointError(f"{run}: {error}; train it again") from None


def _trained_decoder(run: Path, code: LatticeCode) -> tuple[CubeDecoder, dict[str, Any]]:
    """The averaged decoder of a run on a tokenizer's ids, and what the run says of itself."""
    state = load_state(run, decoder_task.KIND)
    said: dict[str, Any] = state["description"]
    config = settings(run, state, DecoderConfig, decoder_task.KIND)
    factored = FactoredDecoder(CubeDecoder(config), shared_rows(code, config.vocab_size))
    try:
        factored.load_state_dict(state["average"])
    except RuntimeError:
        raise CheckpointError(f"{run} does not fit the tokenizer; name the runs that it was trained with") from None
    return factored.folded(), said


def _check_basis(run: Path, said: dict[str, Any], code: LatticeCode, table: str | None) -> None:
    """Raise CheckpointError if a run says that it was trained on other ids or with another text table."""
    for key, name, ours in (("code", "tokenizer", code.encoder_digest()), ("text", "text table", table)):
        # Runs of before these were kept say nothing.
        if said.get(key) not in {None, ours}:
            raise CheckpointError(f"{run} was trained with another {name}; name the model or runs that it belongs to")


def _save(weights: DefaultWeights, table: Path, out: Path) -> Path:
    """Write a model and its text table; the path of its file.

    Raises:
        InputError: there is a model already.
    """
    if (out / MODEL_FILE).exists():
        raise InputError(f"{out / MODEL_FILE} exists; name another --out, so that no model is overwritten")
    _put_table(table, out)
    return save_default(weights, out)


def _put_table(table: Path, out: Path) -> None:
    """Put a text table into the folder of a model, unless it is the bundled one, which needs none."""
    if table_digest(table) != table_digest(BUNDLED_TEXT_WEIGHTS) or (out / "text").is_dir():
        copy_table(table, out / "text")


def _table_of_run(decoder_run: Path, digest: str | None) -> Path:
    """The text table that a decoder was trained with."""
    own = decoder_run / "text"
    if digest is None or digest == table_digest(BUNDLED_TEXT_WEIGHTS):
        return BUNDLED_TEXT_WEIGHTS
    if not own.is_dir() or table_digest(own) != digest:
        raise CheckpointError(f"{own} is not the text table that the decoder was trained with ({digest}); put it there")
    return own
