"""Steps of every task: they learn, and keep to their device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helicube.errors import InputError
from train_cases import boxes, make_decoder_task, make_task

KINDS = ("shape", "colors", "cube", "decoder")


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_learnt_by_heart(kind: str) -> None:
    task = make_task(kind, "cpu")
    optimizer = torch.optim.Adam(task.model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        torch.manual_seed(0)
        # Late enough that codes are quantised.
        loss, _ = task.loss(10_000, np.random.default_rng(0))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    # The published tokenizer's points come one at a time, and take longer.
    assert losses[-1] < losses[0] * (0.65 if kind == "cube" else 0.5)


class Elsewhere(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets numbers be read off tensors without values: each is one half."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return 0.5 if func is torch.ops.aten._local_scalar_dense.default else func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_keeps_to_its_device(kind: str) -> None:
    """The meta device stands in for a GPU: it mixes as little with the CPU."""
    task = make_task(kind, "meta")
    with Elsewhere():  # type: ignore[no-untyped-call]
        loss, logged = task.loss(0, np.random.default_rng(0))
        assert loss.device.type == "meta"
        assert all(value == 0.5 for value in logged.values())
        loss.backward()  # type: ignore[no-untyped-call]
    grads = [p.grad for p in task.model.parameters() if p.grad is not None]
    assert grads
    assert all(grad.device.type == "meta" for grad in grads)


@pytest.mark.parametrize("kind", ["shape", "colors", "cube"])
def test_a_batch_larger_than_the_items_is_all_of_them(kind: str) -> None:
    task: Any = make_task(kind, "meta")
    task.config = replace(task.config, batch=99)
    with Elsewhere():  # type: ignore[no-untyped-call]
        loss, _ = task.loss(0, np.random.default_rng(0))
    assert loss.shape == ()


def test_the_meta_device_does_not_mix_with_the_cpu() -> None:
    with pytest.raises(RuntimeError, match="device"), Elsewhere():  # type: ignore[no-untyped-call]
        torch.ones(4, device="meta") * torch.ones(4)


@pytest.mark.parametrize(
    ("caption", "told"),
    [
        ("椅子", "has no word that the text encoder knows"),
        ("chair " * 20, "gives 21 text states; the model takes 12"),
        ("a\x00chair", "a control character"),
    ],
)
def test_a_caption_that_cannot_be_learnt_is_told_before_the_first_step(caption: str, told: str) -> None:
    odd = replace(boxes().infos[1], captions=("a box", caption))
    with pytest.raises(InputError, match=told) as error:
        make_decoder_task((boxes().infos[0], odd), "cpu")
    assert "of object box-1 cannot be learnt" in str(error.value)
