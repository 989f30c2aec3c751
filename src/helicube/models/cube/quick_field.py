"""The published tokenizer's field for many points: exact, or with int8 products, several times faster and near it.

Weights beyond the first layer, keys and values are rounded once, points' activations and attention weights in groups of
64 as they come (kernels/cpu). `QuickField.reference` is the same in plain PyTorch.

M latents, D width, H heads, d head size, P points.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from helicube.kernels.cpu import twins
from helicube.kernels.cpu.field import FieldLayers, Latents, field_logits
from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import ACTIVATION_GROUP, pack
from helicube.models.cube.tokenizer import OccupancyDecoder
from helicube.nn.linear import make_linear
from helicube.nn.quantize import parse_format, quantize

__all__ = ["QuickField", "point_field"]

# Points at once in plain PyTorch: what lies between the layers stays near the processor.
POINTS = 1024

INT8 = parse_format("int8")
LOG2_E = 1 / math.log(2)


Points = NDArray[np.float32]


def point_field(
    head: OccupancyDecoder, latents_1MD: Tensor, quick: QuickField | None = None
) -> Callable[[Points], Points]:
    """The field of one object, (P, 3) points of the cube [−1.05, 1.05]³ to (P,) logits.

    Args:
        quick: made of the same layers, to answer in their place.
    """
    with torch.inference_mode():
        keys_values = head.attn_out.keys_values(latents_1MD)
        rounded = None if quick is None else quick.latents(keys_values)

    @torch.inference_mode()
    def field(points: Points) -> Points:
        asked = torch.from_numpy(points).to(latents_1MD.device)
        if quick is not None and rounded is not None:
            return np.asarray(quick(rounded, asked).numpy())
        parts = [head(part[None], keys_values)[0, :, 0].float() for part in torch.split(asked, POINTS)]
        return np.asarray(torch.cat(parts).cpu().numpy())

    return field


class QuickField:
    """The layers of a field in int8, for any number of objects.

    Args:
        head: float32 or bfloat16, on the CPU; copied.
    """

    def __init__(self, library: Library, head: OccupancyDecoder) -> None:
        self.library, block = library, head.attn_out
        modules = (
            head.query_in.out_layer, block.attn.c_q, block.attn.c_proj, block.mlp.up_proj, block.mlp.down_proj
        )  # fmt: skip
        # Not the first layer: rounded, it alone errs by more than all that follow, at a twelfth of the products.
        first = make_linear(head.query_in.in_layer.weight.float(), head.query_in.in_layer.bias, "float32")
        self.linears = [first, *(make_linear(m.weight.float(), m.bias, INT8) for m in modules)]
        self.embedder, self.eps = head.embedder, block.ln_1.eps
        names = ("in_layer", "out_layer", "query", "proj", "up", "down")
        weight, bias = head.c_head.weight.detach()[0].float(), float(head.c_head.bias[0])
        self.layers = FieldLayers(
            num_heads=block.attn.num_heads,
            eps=self.eps,
            frequencies=head.embedder.weight.detach().float().contiguous(),
            carrier=head.embedder.carrier(),
            head_weight=weight * head.ln_f.weight.detach().float(),
            head_bias=float(weight @ head.ln_f.bias.detach().float()) + bias,
            **{name: linear.packed(library) for name, linear in zip(names, self.linears, strict=True)},
        )

    def latents(self, keys_values: tuple[Tensor, Tensor]) -> Latents:
        """What the points of one object attend to.

        Args:
            keys_values: (1, H, M, d) each; see `CrossBlock.keys_values`.
        """
        heads = [_round_head(k, v) for k, v in zip(keys_values[0][0], keys_values[1][0], strict=True)]
        keys, values = (
            tuple(pack(self.library, w, format="int8", num_inputs=w.shape[1], scale=scale) for w, scale in side)
            for side in zip(*heads, strict=True)
        )
        return Latents(keys=keys, values=values)

    def __call__(self, latents: Latents, points_P3: Tensor) -> Tensor:
        """Occupancy logits, (P,) float32."""
        return field_logits(self.library, self.layers, latents, points_P3.float().contiguous())

    def reference(self, keys_values: tuple[Tensor, Tensor], points_P3: Tensor) -> Tensor:
        """What the kernel computes, in plain PyTorch; slow."""
        x = self.embedder(points_P3[None])[0].float()
        in_layer, out_layer, query, proj, up, down = (linear.reference for linear in self.linears)
        x = out_layer(F.silu(in_layer(x)))
        queries = query(F.layer_norm(x, x.shape[-1:], eps=self.eps)).chunk(self.layers.num_heads, dim=1)
        heads = zip(queries, keys_values[0][0], keys_values[1][0], strict=True)
        x = x + proj(torch.cat([_attend(q, *_round_head(k, v)) for q, k, v in heads], dim=1))
        x = x + down(F.gelu(up(F.layer_norm(x, x.shape[-1:], eps=self.eps))))
        return F.layer_norm(x, x.shape[-1:], eps=self.eps) @ self.layers.head_weight + self.layers.head_bias


def _round_head(k_Md: Tensor, v_Md: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Keys over √d · ln 2 (M, d) with a scale per latent, values (d, M) with a scale per channel."""
    (keys, k_scale), (values, v_scale) = quantize(k_Md.float(), INT8), quantize(v_Md.float().T, INT8)
    assert k_scale is not None, "int8 has scales"
    assert v_scale is not None, "int8 has scales"
    return (keys, k_scale * (k_Md.shape[1] ** -0.5 * LOG2_E)), (values, v_scale)


def _attend(q_Pd: Tensor, keys: tuple[Tensor, Tensor], values: tuple[Tensor, Tensor]) -> Tensor:
    """Attention with rounded weights, (P, d)."""
    # Scores in units of ln 2. Each group of weights is rounded against its own largest one.
    scores_PM = twins.linear_quantised(q_Pd, *keys, ACTIVATION_GROUP)
    padded = F.pad(scores_PM, (0, -scores_PM.shape[1] % ACTIVATION_GROUP), value=-torch.inf)
    scores_PGg = padded.view(len(padded), -1, ACTIVATION_GROUP)
    highest_PG1 = scores_PGg.amax(dim=2, keepdim=True)
    rounded_PGg = ((scores_PGg - highest_PG1).exp2() * 127).round()
    shares_PG1 = (highest_PG1 - highest_PG1.amax(dim=1, keepdim=True)).exp2()
    weights_PM = (rounded_PGg * shares_PG1).flatten(1)[:, : scores_PM.shape[1]]
    numbers, scale = values
    attended: Tensor = F.linear(weights_PM, numbers.float()) * scale / weights_PM.sum(dim=1, keepdim=True)
    return attended
