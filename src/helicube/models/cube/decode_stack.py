"""A Cube decoder's shape stream as the native kernels take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from torch import nn

from helicube.kernels.cpu.library import Library
from helicube.kernels.cpu.matrix import PackedMatrix
from helicube.kernels.cpu.stack import DecodeStack, StackConfig, StackLayer
from helicube.models.cube.decoder import QK_EPS, CubeDecoder, DualBlock, QueryKeyValue, SingleBlock
from helicube.nn.linear import packed_matrix
from helicube.nn.mlp import SwiGLU

__all__ = ["decode_stack"]


def decode_stack(library: Library, decoder: CubeDecoder, max_tokens: int) -> DecodeStack:
    """All layers, token table and head. Quantized layers are shared, others are copied.

    Args:
        max_tokens: positions of the rotary table.
    """
    c = decoder.config

    def packed(module: nn.Module) -> PackedMatrix:
        return packed_matrix(module, library)

    def layer(attn: QueryKeyValue, proj: nn.Module, mlp: SwiGLU) -> StackLayer:
        return StackLayer(
            qkv=(packed(attn.c_qk), packed(attn.c_v)),
            proj=packed(proj),
            gate=packed(mlp.gate_proj),
            up=packed(mlp.up_proj),
            down=packed(mlp.down_proj),
            q_norm=attn.q_norm.weight.detach().float(),
            k_norm=attn.k_norm.weight.detach().float(),
        )

    dual = cast("Iterable[DualBlock]", decoder.transformer.dual_blocks)
    single = cast("Iterable[SingleBlock]", decoder.transformer.single_blocks)
    layers = [layer(b.attn.pre_x, b.post_1.c_proj, b.post_1.mlp) for b in dual]
    layers += [layer(b.attn, b.attn.c_proj, b.mlp) for b in single]
    config = StackConfig(
        width=c.n_embd,
        num_heads=c.n_head,
        num_kv_heads=c.n_head,
        head_dim=c.head_dim,
        hidden=4 * c.n_embd,
        norm_eps=c.eps,
        qk_eps=QK_EPS,
    )
    places = decoder.places(max_tokens)
    return DecodeStack(
        library,
        config,
        layers,
        embedding_VD=decoder.transformer.wte.weight.detach(),
        head=packed(decoder.lm_head),
        table=places.rotary,
        added_PD=None if places.added is None else places.added.detach(),
    )
