"""Training what tells which of several objects fits a prompt."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from helicube.models.cube.lattice_code import LatticeCode
from helicube.models.cube.match import MatchConfig, ShapeTextMatch
from helicube.models.cube.text import TextEncoder
from helicube.train.color_names import COLOR_NAMES
from helicube.train.color_words import COLOR_SYNONYMS
from helicube.train.token_rows import Captioner, TokenRows, class_weights, token_rows
from helicube.train.token_set import TokenSet
from helicube.train.words import with_article

__all__ = ["MatchTask", "MatchTaskConfig", "match_config"]

# Name of the command that trains it.
KIND = "match"

_WORDS = {*COLOR_NAMES, *(word for words in COLOR_SYNONYMS.values() for word in words)}
_COLORED = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(_WORDS)))})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTaskConfig:
    """What a step sees."""

    # Objects a step, each with one caption: each caption is told from those of all the others.
    batch: int = 192
    mirror_share: float = 0.5
    # Share of the cells of an object that are hidden.
    drop: float = 0.15
    # Items of the evaluation.
    eval_items: int = 512


class MatchTask:
    """Cross-entropy of each caption's own object in the batch, and of each object's own caption.

    Two objects of one class are told apart only by captions that name a colour: "a chair" is true of both.
    """

    model: ShapeTextMatch

    def __init__(
        self,
        model: MatchConfig,
        config: MatchTaskConfig,
        code: LatticeCode,
        *,
        text: TextEncoder,
        captioner: Captioner,
        train: TokenSet,
        unseen: TokenSet,
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(0)
        self.model = ShapeTextMatch(model).to(device)
        self.config, self.code, self.text, self.captioner = config, code, text, captioner
        self.train, self.unseen, self.device = train, unseen, device
        self.weights = class_weights(train.infos)
        self.classes = np.unique([info.class_name for info in train.infos])

    def describe(self) -> dict[str, Any]:
        return {"kind": KIND, "model": asdict(self.model.config), "task": asdict(self.config)}

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:  # noqa: ARG002 - Task's
        chosen = rng.choice(len(self.train), self.config.batch, p=self.weights)
        rows = self._rows(self.train, chosen, rng)
        objects = self._objects(self.model, rows.ids, self.config.drop)
        prompts = self.model.prompts(self._pooled(rows.captions))
        names = np.array([self.train.infos[i].class_name for i in chosen])
        scores = prompts @ objects.T * self.model.log_scale.exp().clamp(max=100)
        scores = scores.masked_fill(torch.from_numpy(equally_true(names, rows.captions)).to(self.device), -torch.inf)
        own = torch.arange(len(chosen), device=self.device)
        loss = (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2
        return loss, {"own_first": float((scores.argmax(dim=1) == own).float().mean())}

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Share of unseen objects that "a CLASS" of their own class fits best among all classes."""
        assert isinstance(model, ShapeTextMatch)
        rng = np.random.default_rng(0)
        count = min(self.config.eval_items, len(self.unseen))
        chosen = rng.choice(len(self.unseen), count, replace=False)
        rows = self._rows(self.unseen, chosen, rng)
        prompts = model.prompts(self._pooled([with_article(name) for name in self.classes]))
        best = (self._objects(model, rows.ids) @ prompts.T).argmax(dim=1).cpu().numpy()
        infos = [self.unseen.infos[i] for i in chosen]
        right = self.classes[best] == np.array([info.class_name for info in infos])
        made = np.array([info.is_procedural for info in infos])
        by_kind = {"procedural": right[made], "found": right[~made]}
        return {f"unseen_{kind}_right": float(hits.mean()) for kind, hits in by_kind.items() if len(hits)}

    def _rows(self, tokens: TokenSet, chosen: NDArray[np.int64], rng: np.random.Generator) -> TokenRows:
        share = self.config.mirror_share
        return token_rows(self.code, tokens, chosen.tolist(), self.captioner, rng, mirror_share=share)

    def _objects(self, model: ShapeTextMatch, ids: NDArray[np.int64], drop: float = 0.0) -> Tensor:
        box, shape, palette, _ = (torch.from_numpy(part).to(self.device) for part in self.code.split(ids))
        return model.objects(box, shape, palette, drop)

    def _pooled(self, captions: list[str]) -> Tensor:
        return self.text.encode(captions).states[:, 0].to(self.device)


def match_config(code: LatticeCode, text_width: int) -> MatchConfig:
    """Sizes for objects of a tokenizer and a text encoder."""
    c = code.shape.config
    return MatchConfig(grid=c.grid, levels=c.levels, palette_size=code.palette_size, text_width=text_width)


def equally_true(names: NDArray[np.str_], captions: list[str]) -> NDArray[np.bool_]:
    """Which captions (rows) may be as true of which other objects (columns) of a batch as of their own; (B, B)."""
    colored = np.array([_COLORED.search(caption) is not None for caption in captions])
    same: NDArray[np.bool_] = (names[:, None] == names[None]) & ~colored[:, None]
    same |= np.array(captions)[:, None] == np.array(captions)[None]
    np.fill_diagonal(same, val=False)
    return same
