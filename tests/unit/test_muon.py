"""Muon: its updates are orthogonal, it leaves tables and vectors to AdamW, and both are saved together."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from helicube.train.muon import Muon, orthogonalized
from helicube.train.optimizers import Optimizers


@pytest.mark.parametrize("shape", [(3, 64, 64), (2, 96, 32), (1, 32, 200)])
def test_updates_are_nearly_orthogonal_and_point_where_the_gradient_does(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    # Singular values over two orders of magnitude.
    u, _, vh = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    g = u @ torch.diag(torch.logspace(0, -2, u.shape[-1])) @ vh
    singular = torch.linalg.svdvals(orthogonalized(g))
    assert singular.min() > 0.5
    assert singular.max() < 1.3
    # Every singular direction keeps its sign.
    assert torch.diagonal(u.mT @ orthogonalized(g) @ vh.mT, dim1=-2, dim2=-1).min() > 0.5


def test_matrices_of_one_shape_do_not_mix() -> None:
    torch.manual_seed(0)
    pair = [nn.Parameter(torch.randn(16, 24)) for _ in range(2)]
    alone = [nn.Parameter(p.detach().clone()) for p in pair]
    grads = [torch.randn(16, 24) for _ in range(2)]
    together = Muon(pair, lr=0.1)
    for p, g in zip(pair, grads, strict=True):
        p.grad = g.clone()
    together.step()
    for p, q, g in zip(pair, alone, grads, strict=True):
        q.grad = g.clone()
        Muon([q], lr=0.1).step()
        torch.testing.assert_close(p, q, atol=1e-6, rtol=0)


class Toy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 32)
        self.mid = nn.Linear(32, 32)
        self.narrow = nn.Linear(3, 32)
        self.lm_head = nn.Linear(32, 20)

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.lm_head(torch.relu(self.mid(self.table(ids) + self.narrow.weight.sum(1))))
        return logits


def test_only_hidden_matrices_go_to_muon() -> None:
    model = Toy()
    parts = Optimizers(model, "muon", lr=0.01, weight_decay=0.0).parts
    assert [p for g in parts[1].param_groups for p in g["params"]] == [model.mid.weight]
    assert sum(len(g["params"]) for g in parts[0].param_groups) == len(list(model.parameters())) - 1
    assert len(Optimizers(model, "adamw", lr=0.01, weight_decay=0.0).parts) == 1


def test_saved_and_loaded_state_goes_on_exactly() -> None:
    def steps(model: Toy, optimizers: Optimizers, count: int) -> None:
        for _ in range(count):
            optimizers.zero_grad()
            model(torch.arange(10)).square().mean().backward()
            optimizers.step()

    torch.manual_seed(0)
    first, second = Toy(), Toy()
    one = Optimizers(first, "muon", lr=0.01, weight_decay=0.1)
    steps(first, one, 3)
    second.load_state_dict(first.state_dict())
    two = Optimizers(second, "muon", lr=0.01, weight_decay=0.1)
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    steps(first, one, 2)
    steps(second, two, 2)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
