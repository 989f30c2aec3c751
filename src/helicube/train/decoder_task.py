"""Training the default decoder: captions and boxes to token rows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from helicube.errors import InputError, PromptError
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.text import TextEncoder
from helicube.nn.digest import weights_digest
from helicube.train.factored_decoder import FactoredDecoder, shared_rows
from helicube.train.shards import ItemInfo
from helicube.train.token_rows import Captioner, class_weights, token_rows
from helicube.train.token_set import TokenSet

__all__ = ["DecoderTask", "DecoderTaskConfig"]

# Name of the command that trains it.
KIND = "decoder"

# Text states that rewording may add to a caption: templates, and synonyms of several words.
REWORDING = 10

# Kinds of ids, in the order of the sequence.
KINDS = ("box", "shape", "palette", "paint")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderTaskConfig:
    """What a step sees."""

    # Rows a step.
    batch: int = 24
    # Text states of a row, zero where a caption has fewer.
    num_text: int = 40
    # Shares of rows with an empty prompt (for guidance), with the box told, and mirrored.
    empty_share: float = 0.1
    box_share: float = 0.5
    mirror_share: float = 0.5
    # Share of words that a caption loses; the pooled state stays.
    dropout_text: float = 0.1
    # Weight of a palette id's loss against that of any other: six ids decide whether a red chair is red, out of 252.
    palette_weight: float = 5.0
    # Rows of the evaluation.
    eval_rows: int = 96
    # Whether steps run through torch.compile: a fifth less time on a CPU, after a minute of compiling.
    compiled: bool = False


class DecoderTask:
    """Cross-entropy of each id among those that may stand there.

    Args:
        text_digest: of the table behind `text`, so that a run does not go on with another.
        start: weights to go on from, of the same sizes; they are left as they are.

    Raises:
        InputError: a caption cannot be read, or leaves no room for rewording.
    """

    model: FactoredDecoder

    def __init__(
        self,
        decoder: DecoderConfig,
        config: DecoderTaskConfig,
        code: LatticeCode,
        *,
        text: TextEncoder,
        captioner: Captioner,
        train: TokenSet,
        unseen: TokenSet,
        text_digest: str | None = None,
        start: CubeDecoder | None = None,
        device: str = "cpu",
    ) -> None:
        for tokens in (train, unseen):
            check_captions(tokens.infos, text, config.num_text)
        cube = fresh_decoder(decoder) if start is None else copy.deepcopy(start).requires_grad_(True)
        self.model = FactoredDecoder(cube, shared_rows(code, decoder.vocab_size)).to(device)
        self.config, self.code, self.text, self.captioner = config, code, text, captioner
        self.text_digest = text_digest
        self.start_digest = None if start is None else weights_digest(start.state_dict())
        self.train, self.unseen, self.device = train, unseen, device
        self.weights = class_weights(train.infos)
        # Steps with the same range of ids stand together, so that one product serves each kind.
        self.spans = spans_of(code.ranges)
        self.training_losses = torch.compile(self._losses) if config.compiled else self._losses

    def describe(self) -> dict[str, Any]:
        task = {name: value for name, value in asdict(self.config).items() if name != "compiled"}
        ids = list(map(list, self.spans))
        known = {"code": self.code.encoder_digest()}
        known |= {} if self.text_digest is None else {"text": self.text_digest}
        known |= {} if self.start_digest is None else {"start": self.start_digest}
        return {"kind": KIND, "model": asdict(self.model.decoder.config), "task": task, "ids": ids} | known

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:  # noqa: ARG002 - Task's
        chosen = rng.choice(len(self.train), self.config.batch, p=self.weights)
        losses = self.training_losses(self.model, *self._inputs(self.train, chosen, rng))
        logged = {f"{name}_nll": float(value) for name, value in zip(KINDS, losses.detach(), strict=True)}
        weights = torch.tensor([end - start for start, end, _, _ in self.spans], device=losses.device)
        palette = [self.config.palette_weight if kind == "palette" else 1.0 for kind in KINDS]
        weights = weights * torch.tensor(palette, device=losses.device)
        return (losses * weights).sum() / weights.sum(), logged

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Negative log-likelihood per id of unseen objects, by kind."""
        assert isinstance(model, FactoredDecoder)
        rng = np.random.default_rng(0)
        chosen = rng.choice(len(self.unseen), min(self.config.eval_rows, len(self.unseen)), replace=False)
        sums: dict[str, float] = {}
        batches = np.array_split(chosen, max(1, len(chosen) // self.config.batch))
        for batch in batches:
            losses = self._losses(model, *self._inputs(self.unseen, batch, rng))
            for name, value in zip(KINDS, losses, strict=True):
                sums[f"unseen_{name}_nll"] = sums.get(f"unseen_{name}_nll", 0.0) + float(value) / len(batches)
        return sums

    def _inputs(
        self, tokens: TokenSet, chosen: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ids (B, n), text states (B, T, C) and boxes (B, 3)."""
        ids, captions, boxes = self._rows(tokens, chosen, rng)
        states = self.text.encode(captions).padded(self.config.num_text).states
        return tuple(t.to(self.device) for t in (torch.from_numpy(ids), states, torch.from_numpy(boxes)))  # type: ignore[return-value]

    def _losses(self, model: FactoredDecoder, ids: Tensor, states: Tensor, boxes: Tensor) -> Tensor:
        """Mean negative log-likelihood per kind of id, (4,)."""
        if model.training and self.config.dropout_text:
            keep = torch.rand(states.shape[:2], device=states.device) >= self.config.dropout_text
            keep[:, 0] = True
            states = states * keep.unsqueeze(-1)
        decoder, head = model.decoder, model.head()
        bos = torch.full_like(ids[:, :1], decoder.config.bos_id)
        x = F.embedding(torch.cat([bos, ids[:, :-1]], dim=1), model.table())
        hidden = decoder.whole(x, decoder.condition(states, boxes))
        losses = []
        for start, end, low, high in self.spans:
            logits = F.linear(hidden[:, start:end], head[low:high])
            losses.append(F.cross_entropy(logits.flatten(0, 1), (ids[:, start:end] - low).flatten()))
        return torch.stack(losses)

    def _rows(
        self, tokens: TokenSet, chosen: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], list[str], NDArray[np.float32]]:
        """Id rows (B, n), captions, and boxes (B, 3), zero where not told."""
        c = self.config
        rows = token_rows(self.code, tokens, chosen.tolist(), self.captioner, rng, mirror_share=c.mirror_share)
        told = rng.random(len(chosen)) < c.box_share
        captions = ["" if rng.random() < c.empty_share else caption for caption in rows.captions]
        return rows.ids, captions, np.where(told[:, None], rows.sizes, np.float32(0))


def check_captions(infos: Sequence[ItemInfo], text: TextEncoder, num_text: int) -> None:
    """Find out now, not at the step that draws it, whether a caption of people's objects cannot be used.

    Raises:
        InputError: the text encoder does not take it, or it has too many words.
    """
    room = num_text - min(REWORDING, num_text // 4)
    for info in infos:
        for caption in () if info.is_procedural else info.captions:
            try:
                text.encode([caption]).padded(room)
            except PromptError as error:
                raise InputError(f"caption {caption[:60]!r} of object {info.id} cannot be learnt: {error}") from None


def fresh_decoder(config: DecoderConfig) -> CubeDecoder:
    """Untrained weights."""
    torch.manual_seed(0)
    cube = CubeDecoder(config)
    nn.init.normal_(cube.transformer.wte.weight, std=0.02 * config.n_embd**0.5)
    if cube.transformer.wpe is not None:
        nn.init.zeros_(cube.transformer.wpe.weight)
    return cube


def spans_of(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Runs of steps with one range: (first step, step after the last, lowest id, id after the highest)."""
    spans: list[tuple[int, int, int, int]] = []
    for step, (low, high) in enumerate(ranges):
        if spans and spans[-1][2:] == (low, high):
            spans[-1] = (spans[-1][0], step + 1, low, high)
        else:
            spans.append((step, step + 1, low, high))
    return spans
