"""Training what tells which of several objects fits a prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from helicube.train.class_words import CLASS_WORDS
from helicube.train.color_words import named_colors
from helicube.train.shards import ItemInfo
from helicube.train.token_rows import Captioner, TokenRows, class_weights, token_rows
from helicube.train.token_set import TokenSet
from helicube.train.words import with_article

__all__ = ["MatchTask", "MatchTaskConfig", "match_config"]

# Name of the command that trains it.
KIND = "match"
# The softmax's inverse temperature may not grow beyond this (Radford et al., 2021).
MOST_SCALE = 100.0


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
    """Cross-entropy of each caption's own object in the batch, and of each object's own caption; see `equally_true`.

    Args:
        text_digest: of the table behind `text`.
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
        text_digest: str | None = None,
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(0)
        self.model = ShapeTextMatch(model).to(device)
        self.config, self.code, self.text, self.captioner = config, code, text, captioner
        self.text_digest = text_digest
        self.train, self.unseen, self.device = train, unseen, device
        self.weights = class_weights(train.infos)
        self.classes = np.unique([info.class_name for info in train.infos])

    def describe(self) -> dict[str, Any]:
        known = {"text": self.text_digest, "code": self.code.encoder_digest()}
        return {"kind": KIND, "model": asdict(self.model.config), "task": asdict(self.config), **known}

    def loss(self, step: int, rng: np.random.Generator) -> tuple[Tensor, dict[str, float]]:  # noqa: ARG002 - Task's
        # No item twice: it would count against itself.
        chosen = rng.choice(len(self.train), min(self.config.batch, len(self.train)), replace=False, p=self.weights)
        rows = self._rows(self.train, chosen, rng)
        objects = self._objects(self.model, rows.ids, self.config.drop)
        prompts = self.model.prompts(self._pooled(rows.captions))
        scores = prompts @ objects.T * self.model.log_scale.exp().clamp(max=MOST_SCALE)
        others = torch.from_numpy(equally_true([self.train.infos[i] for i in chosen], rows.captions))
        scores = scores.masked_fill(others.to(self.device), -torch.inf)
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


def equally_true(infos: Sequence[ItemInfo], captions: Sequence[str]) -> NDArray[np.bool_]:
    """Which captions (rows) may be as true of which other objects (columns) of a batch as of their own; (B, B).

    A caption that names only a class may be true of every object of that class, one that names a subclass of every one
    of that; unless it names colours, and the other's caption does too, and they have none in common.
    """
    classes, kinds = (np.array([getattr(info, key) for info in infos]) for key in ("class_name", "subclass"))
    named = [_names_subclass(info, caption) for info, caption in zip(infos, captions, strict=True)]
    same = (classes[:, None] == classes[None]) & (~np.array(named)[:, None] | (kinds[:, None] == kinds[None]))
    colors = [named_colors(caption) for caption in captions]
    # Only those that share a noun are looked at.
    for i, j in np.argwhere(same):
        same[i, j] = i != j and not (colors[i] and colors[j] and colors[i].isdisjoint(colors[j]))
    same |= np.array(captions)[:, None] == np.array(captions)[None]
    np.fill_diagonal(same, val=False)
    found: NDArray[np.bool_] = same
    return found


def _names_subclass(info: ItemInfo, caption: str) -> bool:
    """Whether a caption says more than the class: "an apple", not "a fruit"."""
    words = (info.subclass, *CLASS_WORDS.get(info.subclass, ()))
    return info.subclass not in {"", info.class_name} and any(re.search(rf"\b{re.escape(w)}", caption) for w in words)
