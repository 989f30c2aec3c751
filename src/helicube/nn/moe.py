"""Mixture of experts: a router, routed experts and shared ones, whole or in part.

T tokens, H hidden size, E experts, k experts per token, F width of an expert. Sources: Jiang et al., "Mixtral of
Experts" (2024); DeepSeek-V2 (arXiv 2405.04434), section 2.2; DeepSeek-V3 (arXiv 2412.19437), section 2.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helicube.nn.mlp import SwiGLU
from helicube.nn.part import Cut, ModelPart

__all__ = ["MixtureOfExperts", "MoeConfig", "Router", "swiglu_cuts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeConfig:
    """Sizes and rule of one layer's routing."""

    hidden_size: int
    num_experts: int
    # Experts per token.
    top_k: int
    # Width of a routed expert.
    expert_size: int
    # Width of all shared experts together; 0 is none.
    shared_size: int = 0
    # Scores by sigmoid and chosen with a learned bias (V3), or by softmax (V2, Mixtral, Qwen3).
    sigmoid: bool = False
    # The experts stand in groups, of which the best `top_groups` are open to a token.
    num_groups: int = 1
    top_groups: int = 1
    # Weights of the chosen experts sum to 1, before scaling.
    normalise: bool = False
    scaling: float = 1.0


class Router(nn.Module):
    """Chooses experts and weighs them; held by every part, and in float32 so that all parts choose alike."""

    def __init__(self, config: MoeConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.num_experts, config.hidden_size))
        if config.sigmoid:
            self.e_score_correction_bias = nn.Parameter(torch.zeros(config.num_experts))

    def forward(self, x_TH: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (T, k) float32 and ids (T, k) of the chosen experts."""
        c = self.config
        logits = F.linear(x_TH.float(), self.weight.float())
        scores = logits.sigmoid() if c.sigmoid else logits.softmax(dim=-1)
        choice = scores + self.e_score_correction_bias.float() if c.sigmoid else scores
        if c.num_groups > 1:
            choice = self._close_groups(choice)
        ids = choice.topk(c.top_k, dim=-1).indices
        # The bias steers the choice and not the weight.
        weights = scores.gather(1, ids)
        if c.normalise:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights * c.scaling, ids

    def _close_groups(self, choice_TE: Tensor) -> Tensor:
        """Scores with those outside a token's best groups at −∞.

        V3 ranks a group by the sum of its two best scores, V2 by its best.
        """
        c = self.config
        grouped = choice_TE.view(len(choice_TE), c.num_groups, -1)
        rank = grouped.topk(2, dim=-1).values.sum(dim=-1) if c.sigmoid else grouped.amax(dim=-1)
        best = rank.topk(c.top_groups, dim=-1).indices
        closed: Tensor = torch.ones_like(rank, dtype=torch.bool).scatter_(1, best, False)
        return grouped.masked_fill(closed[..., None], -torch.inf).flatten(1)


class Experts(nn.Module):
    """Some columns of some routed experts."""

    def __init__(self, config: MoeConfig, part: ModelPart) -> None:
        super().__init__()
        self.part = part
        num, width = len(part.experts), len(part.expert_columns)
        self.gate_proj = nn.Parameter(torch.empty(num, width, config.hidden_size))
        self.up_proj = nn.Parameter(torch.empty(num, width, config.hidden_size))
        self.down_proj = nn.Parameter(torch.empty(num, config.hidden_size, width))

    def forward(self, x_TH: Tensor, weights_Tk: Tensor, ids_Tk: Tensor) -> Tensor:
        """This part's share of the weighted sum, (T, H)."""
        y = torch.zeros_like(x_TH)
        # Tokens in the order of their experts; one visit per expert that any token chose.
        flat = ids_Tk.flatten()
        order = flat.argsort(stable=True)
        ends = torch.bincount(flat, minlength=self.part.experts.stop).cumsum(0).tolist()
        for local, expert in enumerate(self.part.experts):
            chosen = order[ends[expert - 1] if expert else 0 : ends[expert]]
            if not len(chosen):
                continue
            token = chosen // ids_Tk.shape[1]
            x = x_TH[token]
            hidden = F.silu(x @ self.gate_proj[local].T) * (x @ self.up_proj[local].T)
            weighted = (hidden @ self.down_proj[local].T) * weights_Tk.flatten()[chosen, None].to(x.dtype)
            y.index_add_(0, token, weighted)
        return y

    def cuts(self) -> dict[str, tuple[Cut, ...]]:
        """Where each parameter comes from: one published tensor per expert."""
        columns = self.part.expert_columns
        found = {
            f"{n}_proj": tuple(Cut(name=f"{e}.{n}_proj.weight", rows=(columns,)) for e in self.part.experts)
            for n in ("gate", "up")
        }
        down = tuple(Cut(name=f"{e}.down_proj.weight", columns=columns) for e in self.part.experts)
        return found | {"down_proj": down}


class MixtureOfExperts(nn.Module):
    """Routed experts beside shared ones."""

    def __init__(self, config: MoeConfig, part: ModelPart) -> None:
        super().__init__()
        self.part = part
        self.gate = Router(config)
        self.experts = Experts(config, part)
        if config.shared_size:
            self.shared_experts = SwiGLU(config.hidden_size, len(part.shared_columns), bias=False)

    def forward(self, x_BLH: Tensor) -> Tensor:
        """This part's share of the output, (B, L, H)."""
        x = x_BLH.flatten(0, 1)
        y: Tensor = self.experts(x, *self.gate(x))
        if hasattr(self, "shared_experts"):
            y = y + self.shared_experts(x)
        return y.view_as(x_BLH)

    def cuts(self) -> dict[str, tuple[Cut, ...]]:
        """Where the shared experts' parameters come from."""
        if not hasattr(self, "shared_experts"):
            return {}
        return swiglu_cuts("shared_experts.", self.part.shared_columns)


def swiglu_cuts(prefix: str, columns: range, *, bias: bool = False, first: bool = True) -> dict[str, tuple[Cut, ...]]:
    """Where the parameters of some columns of a `SwiGLU` come from."""
    found: dict[str, tuple[Cut, ...]] = {}
    for n in ("gate_proj", "up_proj"):
        for kind in ("weight", "bias") if bias else ("weight",):
            found[f"{prefix}{n}.{kind}"] = (Cut(name=f"{prefix}{n}.{kind}", rows=(columns,)),)
    found[f"{prefix}down_proj.weight"] = (Cut(name=f"{prefix}down_proj.weight", columns=columns),)
    if bias:
        found[f"{prefix}down_proj.bias"] = (Cut(name=f"{prefix}down_proj.bias", zero=not first),)
    return found
