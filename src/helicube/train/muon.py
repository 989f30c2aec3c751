"""Muon: momentum whose every matrix is orthogonalised before it is applied.

Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); the scale that lets learning
rates of AdamW be used, from Liu et al., "Muon is Scalable for LLM Training" (arXiv 2502.16982), §2.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Muon", "orthogonalized"]

# Coefficients of the quintic iteration, chosen by its authors for the steepest rise of small singular values.
A, B, C = 3.4445, -4.7750, 2.0315
ITERATIONS = 5
# Root mean square of AdamW's updates, to which those of an orthogonal matrix are scaled.
ADAMW_RMS = 0.2


class Muon(torch.optim.Optimizer):
    """Muon for matrices, all of one shape at once.

    PyTorch's own takes one matrix at a time and rounds to bfloat16: three times slower on CPUs that lack it.

    Args:
        params: matrices (rows, columns).
        lr: as for AdamW.
        weight_decay: decoupled, times lr.
    """

    def __init__(
        self, params: Iterable[nn.Parameter], *, lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # no closure is ever called
        """One update from the gradients that are there."""
        assert closure is None, "Muon calls no closure"
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    by_shape[p.shape].append(p)
            for (rows, columns), matrices in by_shape.items():
                updates = orthogonalized(torch.stack([self._nesterov(p, group["momentum"]) for p in matrices]))
                scale = group["lr"] * ADAMW_RMS * max(rows, columns) ** 0.5
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, list(updates.unbind()), alpha=-scale)

    def _nesterov(self, p: Tensor, momentum: float) -> Tensor:
        state = self.state[p]
        if "average" not in state:
            state["average"] = torch.zeros_like(p)
        assert p.grad is not None
        average: Tensor = state["average"].lerp_(p.grad, 1 - momentum)
        return p.grad.lerp(average, momentum)


def orthogonalized(matrices_NRC: Tensor) -> Tensor:
    """U·V' of each matrix's singular value decomposition, its singular values between about 0.7 and 1.2; (N, R, C)."""
    x = matrices_NRC.float()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return (x.mT if tall else x).to(matrices_NRC.dtype)
