"""Each Triton kernel beside PyTorch's own operators, at the sizes of a model's step.

R rows, N outputs, K inputs. Before anything is timed it is compared with float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from gpu_timing import Call, Clock, clock_captured, copies_beyond_cache
from torch import Tensor

from helicube.kernels.sampling_state import SamplingState
from helicube.kernels.triton.attention import CachedKeys, attend
from helicube.kernels.triton.linear import linear
from helicube.kernels.triton.query_key import rotate_and_store
from helicube.kernels.triton.sampling import sample_ids
from helicube.kernels.triton.swiglu import swiglu
from helicube.kernels.triton.tiles import Tile, tile_for
from helicube.kernels.triton.weight import KernelWeight, kernel_weight
from helicube.models.cube.decoder import DecoderConfig
from helicube.nn.quantize import WeightFormat, quantize

DEVICE, DTYPE, EPS = "cuda", torch.bfloat16, 1e-6
FORMATS = ("bfloat16", "int8", "int4", "fp8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    kernel: str
    weights: str
    rows: int
    num_bytes: int
    clock: Clock
    # PyTorch's operators in a graph of their own; dense bfloat16 weights for every format.
    torch_s: float | None = None
    # ‖kernel − float64‖ / ‖float64‖.
    error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A few-row product of a step."""

    name: str
    n: int
    k: int
    norm: bool = False
    residual: bool = False
    gated: bool = False


def products(c: DecoderConfig) -> tuple[Product, ...]:
    d = c.n_embd
    return (
        Product(name="norm + qkv", n=3 * d, k=d, norm=True),
        Product(name="projection + residual", n=d, k=d, residual=True),
        Product(name="norm + gate/up + swiglu", n=8 * d, k=d, norm=True, gated=True),
        Product(name="down + residual", n=d, k=4 * d, residual=True),
        Product(name="norm + head", n=c.vocab_size, k=d, norm=True),
    )


def to_format(dense_NK: Tensor, name: str) -> KernelWeight:
    """A dense matrix in a format's kernel order."""
    if name == "bfloat16":
        return kernel_weight(dense_NK.to(DTYPE))
    return kernel_weight(*quantize(dense_NK, WeightFormat(name=name, group=64 if name == "int4" else 0)))


class ProductCase:
    """Inputs of one product, and what computes it."""

    def __init__(self, product: Product, form: str, rows: int) -> None:
        p = self.product = product
        weight = to_format(torch.randn(p.n, p.k, device=DEVICE, dtype=DTYPE) / math.sqrt(p.k), form)
        # Copies: the time of a product does not depend on the numbers, and quantising takes long.
        count = copies_beyond_cache(weight.num_bytes)
        self.weights = [replace(weight, data=weight.data.clone()) for _ in range(count)]
        self.x = torch.randn(rows, p.k, device=DEVICE, dtype=DTYPE)
        self.bias = torch.randn(p.n, device=DEVICE, dtype=DTYPE)
        width = p.n // 2 if p.gated else p.n
        self.residual = torch.randn(rows, width, device=DEVICE, dtype=DTYPE) if p.residual else None
        self.out = torch.full((rows, width), torch.nan, device=DEVICE, dtype=DTYPE)

    def kernel(self, weight: KernelWeight, tile: Tile | None = None) -> Call:
        norm_eps = EPS if self.product.norm else None
        if self.product.gated:
            return lambda: swiglu(self.x, weight, bias=self.bias, norm_eps=norm_eps, out=self.out, tile=tile)
        return lambda: linear(
            self.x, weight, bias_N=self.bias, residual_RN=self.residual, norm_eps=norm_eps, out=self.out, tile=tile
        )

    def plain(self, dense_NK: Tensor) -> Call:
        return lambda: self._compute(self.x, dense_NK)

    def _compute(self, x: Tensor, dense_NK: Tensor) -> Tensor:
        if self.product.norm:
            # In float32 and back, as the published model does, whatever the precision of the rest.
            x = F.layer_norm(x.float(), x.shape[1:], eps=EPS).to(DTYPE).to(x.dtype)
        y = F.linear(x, dense_NK, self.bias.to(x.dtype))
        if self.product.gated:
            gate, up = y.chunk(2, dim=1)
            y = F.silu(gate) * up
        return y if self.residual is None else y + self.residual.to(x.dtype)

    def error(self) -> float:
        self.out.fill_(torch.nan)
        self.kernel(self.weights[0])()
        return relative_error(self.out, self._compute(self.x.double(), self.weights[0].dequantize().double()))


def relative_error(got: Tensor, wanted: Tensor) -> float:
    return float((got.double() - wanted.double()).norm() / wanted.double().norm())


def time_products(c: DecoderConfig, all_rows: tuple[int, ...]) -> Iterator[Row]:
    for product in products(c):
        for rows in all_rows:
            torch_s = None
            for form in FORMATS:
                case = ProductCase(product, form, rows)
                if torch_s is None:
                    torch_s = clock_captured([case.plain(w.data) for w in case.weights]).median_s
                yield Row(
                    kernel=product.name,
                    weights=form,
                    rows=rows,
                    num_bytes=case.weights[0].num_bytes,
                    clock=clock_captured([case.kernel(w) for w in case.weights]),
                    torch_s=torch_s,
                    error=case.error(),
                )


class AttentionCase:
    """Caches of which no two calls see the same, half or wholly filled."""

    def __init__(self, c: DecoderConfig, rows: int, prefix: int, tokens: int) -> None:
        self.rows, self.prefix, self.slots = rows, prefix, prefix + tokens
        shape = (rows, c.n_head, self.slots, c.head_dim)
        self.q = torch.randn(rows, c.n_head, c.head_dim, device=DEVICE, dtype=DTYPE)
        self.num_bytes = 2 * math.prod(shape) * DTYPE.itemsize
        count = copies_beyond_cache(self.num_bytes)
        self.caches = [(_normal(shape), _normal(shape)) for _ in range(count)]

    def row(self, length: int) -> Row:
        at, end = torch.full((self.rows,), length, device=DEVICE, dtype=torch.int32), self.prefix + length

        def ours(k: Tensor, v: Tensor) -> Tensor:
            return attend(self.q, CachedKeys(keys=k, values=v, lengths=at, prefix_slots=self.prefix))[0]

        def theirs(k: Tensor, v: Tensor) -> Tensor:
            q = self.q[:, :, None].to(k.dtype)
            return F.scaled_dot_product_attention(q, k[:, :, :end], v[:, :, :end])[:, :, 0]

        k, v = self.caches[0]
        return Row(
            kernel=f"attention, {end} keys",
            weights="bfloat16",
            rows=self.rows,
            num_bytes=self.num_bytes * end // self.slots,
            clock=clock_captured([partial(ours, *cache) for cache in self.caches]),
            torch_s=clock_captured([partial(theirs, *cache) for cache in self.caches]).median_s,
            error=relative_error(ours(k, v), theirs(k.double(), v.double())),
        )


def _normal(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, device=DEVICE, dtype=DTYPE)


def time_attention(c: DecoderConfig, all_rows: tuple[int, ...], prefix: int, tokens: int) -> Iterator[Row]:
    """Split attention and merge, and what precedes them."""
    for rows in all_rows:
        case = AttentionCase(c, rows, prefix, tokens)
        yield from (case.row(length) for length in (tokens // 2, tokens))
        yield _time_rotation(c, rows, case.caches[0], prefix, tokens)


def _time_rotation(c: DecoderConfig, rows: int, cache: tuple[Tensor, Tensor], prefix: int, tokens: int) -> Row:
    qkv = _normal((rows, 3 * c.n_embd))
    table = torch.randn(tokens, c.head_dim // 2, 2, device=DEVICE)
    weight = torch.ones(c.head_dim, device=DEVICE, dtype=DTYPE)
    at = torch.arange(rows, device=DEVICE, dtype=torch.int32)

    def call() -> Tensor:
        return rotate_and_store(qkv, table, at, *cache, num_heads=c.n_head, norm=(weight, weight), prefix_slots=prefix)

    return Row(
        kernel="qk-norm + rotary + cache write",
        weights="bfloat16",
        rows=rows,
        num_bytes=2 * qkv.nbytes,
        clock=clock_captured([call] * 20),
    )


def time_sampling(c: DecoderConfig, all_requests: tuple[int, ...]) -> Iterator[Row]:
    width, endless = c.shape_model_vocab_size, 1 << 20
    for requests in all_requests:
        logits = torch.randn(2 * requests, c.vocab_size, device=DEVICE)
        for name, temperature, top_p in (("greedy", 0.0, 1.0), ("temperature", 1.0, 1.0), ("top-p", 1.0, 0.9)):
            state = SamplingState.empty(requests, 2, endless, [(0, width)], DEVICE)
            for slot in range(requests):
                state.start(slot, 0, endless, guidance=3.0, temperature=temperature, top_p=top_p, key=slot)
            yield Row(
                kernel=f"guidance + sampling, {name}",
                weights="-",
                rows=2 * requests,
                num_bytes=logits.nbytes,
                clock=clock_captured([partial(sample_ids, logits, state, max_width=width)] * 20),
            )


def sweep(c: DecoderConfig, forms: tuple[str, ...] = ("bfloat16", "fp8")) -> Iterator[dict[str, Any]]:
    """Times of other tiles for each product with two rows, the best first; the table's own choice is marked."""
    for product in products(c):
        for form in forms:
            case = ProductCase(product, form, 2)
            chosen = tile_for(case.weights[0])
            tried = {chosen} | {
                Tile(block_n=n, block_k=k, num_stages=stages)
                for n in (8, 16, 32, 64)
                for k in (128, 256, 512)
                for stages in (3, 5)
                # Beside the rows' tile, what shared memory holds twice on a multiprocessor.
                if stages * k * (16 + n) * 2 <= 110 << 10
            }
            found = [(clock_captured([case.kernel(w, tile) for w in case.weights]).median_s, tile) for tile in tried]
            for seconds, tile in sorted(found, key=lambda pair: pair[0]):
                yield {
                    "kernel": product.name,
                    "weights": form,
                    "median_s": seconds,
                    "is_chosen": tile == chosen,
                    **asdict(tile),
                }
