"""The optimisers of a run: AdamW for all weights, or Muon for the hidden matrices and AdamW for the rest."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn

from helicube.errors import InputError
from helicube.train.muon import Muon

__all__ = ["OptimizerKind", "Optimizers"]

OptimizerKind = Literal["adamw", "muon"]

# Below this many rows or columns a matrix is a table of few directions, better left to AdamW.
NARROW = 16


class Optimizers:
    """One or two optimisers that are stepped, saved and loaded together.

    Args:
        lr: peak learning rate of both.
        weight_decay: of matrices; vectors have none.
    """

    def __init__(self, model: nn.Module, kind: OptimizerKind, *, lr: float, weight_decay: float) -> None:
        self.kind = kind
        tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
        tables |= {id(m.weight) for name, m in model.named_modules() if name.endswith("head") and hasattr(m, "weight")}
        matrices = [p for p in model.parameters() if p.dim() >= 2]
        hidden = [p for p in matrices if p.dim() == 2 and min(p.shape) >= NARROW and id(p) not in tables]
        hidden = hidden if kind == "muon" else []
        taken = {id(p) for p in hidden}
        groups = [
            {"params": [p for p in matrices if id(p) not in taken], "weight_decay": weight_decay},
            {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
        ]
        self.parts: list[torch.optim.Optimizer] = [torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98), fused=True)]
        if hidden:
            self.parts.append(Muon(hidden, lr=lr, weight_decay=weight_decay))

    def set_lr(self, lr: float) -> None:
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = lr

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def state_dict(self) -> list[dict[str, Any]]:
        return [part.state_dict() for part in self.parts]

    def load_state_dict(self, states: list[dict[str, Any]] | dict[str, Any]) -> None:
        """Take what `state_dict` gave.

        Raises:
            InputError: it is of another optimiser, or of one for other weights.
        """
        # Checkpoints of before there were two hold a single state.
        states = [states] if isinstance(states, dict) else states
        try:
            for part, state in zip(self.parts, states, strict=True):
                part.load_state_dict(state)
        except ValueError:
            raise InputError(
                f"the saved state is not one of --optimizer {self.kind}; give the one that the run began with, "
                "or another --out"
            ) from None
