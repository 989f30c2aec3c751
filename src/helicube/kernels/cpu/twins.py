"""The native kernels' mathematics in plain PyTorch: what they must equal, and slow.

R rows, K inputs, N outputs, G inputs per group.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from helicube.kernels.cpu.attention import NewToken, Projections, channels, widen_slots

__all__ = ["attend_one", "linear_float", "linear_quantised", "round_activations", "round_slots", "store_token"]

# A query is rounded to int8, like the keys of an int8 cache, where its size is a multiple of this.
QUERY_STEP = 64


def linear_float(x_RK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """x Wᵀ + bias in float32, (R, N)."""
    return F.linear(x_RK.float(), weight_NK.float(), None if bias_N is None else bias_N.float())


def round_activations(x_RK: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """Rounded rows (R, ⌈K/G⌉, G), whole numbers from −127 to 127 in float32, and scales (R, ⌈K/G⌉): x ≈ scale · q.

    A group that holds a NaN or an infinity gets the scale NaN, so that it reaches every output.
    """
    padded = F.pad(x_RK.float(), (0, -x_RK.shape[1] % group))
    grouped = padded.view(len(x_RK), -1, group)
    amax = grouped.abs().amax(dim=-1)
    finite = grouped.isfinite().all(dim=-1)
    # 127/amax overflows for denormals: such a group is 0. A number divided by a tensor would be its reciprocal times
    # the number, which rounds twice.
    inverse = torch.where(finite & (amax > 1e-30), torch.full_like(amax, 127.0) / amax, 0.0)
    q = (torch.where(finite[..., None], grouped, 0.0) * inverse[..., None]).round()
    return q, torch.where(finite, amax / 127.0, torch.nan)


def round_slots(x: Tensor) -> Tensor:
    """Keys or values (…, d) as an int8 cache holds them, (…, d + 4): numbers, then the bytes of their scale."""
    q_R1d, scale_R1 = round_activations(x.reshape(-1, x.shape[-1]), x.shape[-1])
    slots = torch.cat([q_R1d[:, 0].to(torch.int8), scale_R1.contiguous().view(torch.int8)], dim=1)
    return slots.view(*x.shape[:-1], slots.shape[1])


def linear_quantised(
    x_RK: Tensor, weight_NK: Tensor, scale: Tensor, group: int, bias_N: Tensor | None = None
) -> Tensor:
    """x Wᵀ + bias with x rounded to int8 in groups, (R, N) float32.

    Args:
        weight_NK: whole numbers (int8).
        scale: (N,) or, for scales per group of weights, (N, ⌈K/G⌉).
    """
    q_RGg, x_scale_RG = round_activations(x_RK, group)
    padded = F.pad(weight_NK.float(), (0, -weight_NK.shape[1] % group))
    w_NGg = padded.view(len(weight_NK), -1, group)
    # Whole numbers below 2²⁴: exact in float32, whatever the order.
    dots_GRN = q_RGg.transpose(0, 1) @ w_NGg.permute(1, 2, 0)
    scaled_GRN = dots_GRN * x_scale_RG.T[..., None]
    if scale.dim() == 2:
        scaled_GRN = scaled_GRN * scale.float().T[:, None]
    y = scaled_GRN.sum(dim=0)
    if scale.dim() == 1:
        y = y * scale.float()
    return y if bias_N is None else y + bias_N.float()


def attend_one(
    q_BHd: Tensor, k_BKMd: Tensor, v_BKMv: Tensor, lengths_B: Tensor | None = None, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Output (B, H, v) and natural-log LSE (B, H) of one query per row, float32; (0, −∞) for a row without keys."""
    groups = q_BHd.shape[1] // k_BKMd.shape[1]
    k, v = (widen_slots(t).repeat_interleave(groups, dim=1) for t in (k_BKMd, v_BKMv))
    scale = q_BHd.shape[-1] ** -0.5 if scale is None else scale
    q = q_BHd.float() * scale
    if k_BKMd.dtype == torch.int8 and q.shape[2] % QUERY_STEP == 0:
        numbers, steps = round_activations(q.flatten(0, 1), q.shape[2])
        q = (numbers * steps[..., None]).view(q.shape)
    scores = torch.einsum("bhd,bhmd->bhm", q, k)
    if lengths_B is not None:
        hidden = torch.arange(k.shape[2]) >= lengths_B[:, None]
        scores = scores.masked_fill(hidden[:, None], -torch.inf)
        # Slots beyond the length may hold anything.
        v = v.masked_fill(hidden[:, None, :, None], 0.0)
    lse = scores.logsumexp(dim=-1)
    weight = (scores - torch.where(lse == -torch.inf, 0.0, lse)[..., None]).exp()
    return torch.einsum("bhm,bhmv->bhv", weight, v), lse


def store_token(projections: Projections, token: NewToken, cache: tuple[Tensor, Tensor]) -> Tensor:
    """Rotated queries (B, H, d); keys and values of the new token go to the cache."""
    (q, k, v), (keys, values) = projections, cache
    size = channels(keys)
    rows = torch.arange(len(q)) if token.cache_rows is None else token.cache_rows
    table = token.table[token.positions][:, None]
    q = _rotate(_rms(_heads(q, size), token.q_norm, token.norm_eps), table, token.rotary)
    k = _rotate(_rms(_heads(k, size), token.k_norm, token.norm_eps), table, token.rotary)
    slots = token.prefix + token.positions
    v = _heads(v, channels(values))
    keys[rows, :, slots] = round_slots(k) if keys.dtype == torch.int8 else k.to(keys.dtype)
    values[rows, :, slots] = round_slots(v) if values.dtype == torch.int8 else v.to(values.dtype)
    return q


def _heads(x_BD: Tensor, size: int) -> Tensor:
    return x_BD.reshape(len(x_BD), -1, size)


def _rms(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return x if weight is None else F.rms_norm(x, weight.shape, weight, eps)


def _rotate(x_BHd: Tensor, table_B1f2: Tensor, kind: str) -> Tensor:
    if kind == "none":
        return x_BHd
    cos, sin = table_B1f2.unbind(-1)
    if kind == "pairs":
        a, b = x_BHd.reshape(*x_BHd.shape[:-1], -1, 2).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    a, b = x_BHd.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
