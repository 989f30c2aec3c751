"""The published field with int8 products: the kernel, its twin, and how far both are from the exact field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cpu_libraries import TARGETS, library
from torch import Tensor

from helicube.kernels.cpu.library import Library
from helicube.models.cube.quick_field import QuickField, point_field
from helicube.models.cube.tokenizer import CubeTokenizer, OccupancyDecoder, TokenizerConfig
from helicube.pipelines.shape_model import quick_field

# Whole blocks, groups and vectors; and neither: 3 heads of 24, 70 latents.
EVEN = TokenizerConfig(num_encoder_latents=128, width=128, num_heads=2, num_freqs=32, num_encoder_layers=1,
                       num_decoder_layers=1, encoder_cross_attention_levels=(0,))  # fmt: skip
ODD = replace(EVEN, num_encoder_latents=70, width=72, num_heads=3, num_freqs=21)


def tokenizer(config: TokenizerConfig) -> CubeTokenizer:
    torch.manual_seed(0)
    model = CubeTokenizer(config).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        # Norms that do something.
        if name.startswith("occupancy_decoder.ln_f"):
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def rand(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def points(count: int) -> Tensor:
    return torch.rand((count, 3), generator=torch.Generator().manual_seed(7)) * 2.1 - 1.05


def parts(config: TokenizerConfig, lib: Library) -> tuple[OccupancyDecoder, Tensor, QuickField]:
    head = tokenizer(config).occupancy_decoder
    return head, rand(1, config.num_latents, config.width, seed=1), QuickField(lib, head)


def rms(x: Tensor) -> float:
    return float(x.square().mean().sqrt())


@pytest.mark.parametrize("config", [EVEN, ODD], ids=["even", "odd"])
@pytest.mark.parametrize("target", TARGETS)
def test_kernel_equals_its_twin_and_is_near_the_exact_field(target: str, config: TokenizerConfig) -> None:
    head, latents, quick = parts(config, library(target))
    keys_values = head.attn_out.keys_values(latents)
    asked = points(200)
    exact = head(asked[None], keys_values)[0, :, 0]
    got, twin = quick(quick.latents(keys_values), asked), quick.reference(keys_values, asked)
    error = rms(got - exact) / float(exact.std())
    # Where a value lies between two whole numbers a last bit decides, and what follows is rounded differently too: most
    # points meet no such value, and the others stay well within what rounding costs.
    difference = (got - twin).abs() / float(exact.std())
    assert float(difference.median()) < 1e-4
    assert rms(difference) < error / 3
    assert error < 0.04


def test_a_point_does_not_depend_on_its_neighbours_or_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    head, latents, quick = parts(ODD, library())
    bound = quick.latents(head.attn_out.keys_values(latents))
    asked = points(205)
    together = quick(bound, asked)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert torch.equal(quick(bound, asked), together)
    for i in (0, 95, 96, 204):
        assert torch.equal(quick(bound, asked[i : i + 1]), together[i : i + 1])
    assert quick(bound, asked[:0]).shape == (0,)


def test_the_first_layer_is_not_rounded() -> None:
    """It takes differences of phases, where rounding would cost more than in all that follows."""
    _, _, quick = parts(EVEN, library())
    formats = [m.format for m in quick.layers.matrices]
    assert formats == ["float32", *["int8"] * 5]


def test_large_phases_are_turned_exactly() -> None:
    """Frequencies of a trained embedder are not small, and a whole turn must not be lost in rounding."""
    head, latents, quick = parts(EVEN, library())
    with torch.no_grad():
        head.embedder.weight.mul_(300)
    keys_values = head.attn_out.keys_values(latents)
    quick = QuickField(library(), head)
    asked = points(200)
    exact = head(asked[None], keys_values)[0, :, 0]
    assert rms(quick(quick.latents(keys_values), asked) - exact) < 0.04 * float(exact.std())


def test_a_point_that_is_no_number_says_so() -> None:
    head, latents, quick = parts(EVEN, library())
    asked = points(3)
    asked[1, 2] = torch.nan
    told = quick(quick.latents(head.attn_out.keys_values(latents)), asked)
    assert told.isnan().tolist() == [False, True, False]


def test_the_field_of_an_object_is_exact_unless_asked_otherwise() -> None:
    model = tokenizer(EVEN)
    latents = rand(1, EVEN.num_latents, EVEN.width, seed=1)
    asked = points(2100)
    exact = model.field(latents, asked[None])[0].numpy()
    plain = point_field(model.occupancy_decoder, latents)(asked.numpy())
    # Points are taken in parts, whose products sum in another order.
    np.testing.assert_allclose(plain, exact, atol=1e-5 * float(exact.std()), rtol=0)
    quick = QuickField(library(), model.occupancy_decoder)
    rounded = point_field(model.occupancy_decoder, latents, quick)(asked.numpy())
    assert not np.array_equal(rounded, plain)
    np.testing.assert_allclose(rounded, exact, atol=0.2 * float(exact.std()), rtol=0)


@pytest.mark.parametrize(
    ("form", "kernels", "wanted"),
    [("int8", "auto", True), ("int4-g32", "native", True), ("int8", "plain", False), ("bfloat16", "auto", False)],
)
def test_int8_is_for_those_who_chose_weights_as_short(form: str, kernels: str, wanted: bool) -> None:
    library()
    assert (quick_field(tokenizer(EVEN), form, kernels) is not None) == wanted
