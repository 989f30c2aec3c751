"""One rank of a Helix pool: decoding with attention and FFN sharded differently over the same ranks.

B sequences, L new tokens of each, H hidden size, Q query heads of the TPA slice, v value size, V vocabulary. Every rank
runs this same code on the same ids; where there is one rank, all collectives are empty and it is plain decoding.
Source: Helix Parallelism (arXiv 2507.07120), section 2. Prompts go through the same step, a chunk at a time: each
chunk is cached at its final place and its queries see all earlier tokens and, causally, the chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import record_function

from helicube.models.llm import DecoderLayer
from helicube.models.llm_config import LlmConfig
from helicube.models.loading import load_part
from helicube.models.loading_sources import TensorSource
from helicube.nn.module_bytes import module_bytes
from helicube.parallel.attend import Attend, Runs, choose_attend
from helicube.parallel.collectives import Collectives
from helicube.parallel.exchange import merge_received, send_partials
from helicube.parallel.grid import RankGrid, heads_per_rank, part_of, slice_width
from helicube.parallel.kv_shard import KVShard, Sequence
from helicube.parallel.round_robin import RoundRobin
from helicube.specs.layout import HelixLayout

__all__ = ["HelixDecoder", "HelixOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelixOptions:
    """How a pool runs, the same on every rank."""

    layout: HelixLayout
    # Tokens that each KVP rank can hold, of all sequences together.
    cache_slots: int
    # Tokens dealt to a KVP rank at a time.
    block: int = 16
    # HOP-B: parts of the batch, so that the exchange of one overlaps the attention of the next. 1 is off.
    overlap_parts: int = 1
    # Of activations, cache and weights.
    dtype: torch.dtype = torch.float32
    # Format of linear layers; "auto" leaves them in `dtype`. Each rank quantises its own part.
    weights: str = "auto"
    device: torch.device | str = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some rows of a batch."""

    rows: slice
    sequences: list[Sequence]
    runs: Runs


class HelixDecoder:
    """A rank's weights, its share of the cache, and the step.

    Args:
        config: the whole model.
        source: its published tensors, of which this rank reads its part.
        attend: attention over cached keys; None is the fastest for the device.

    Raises:
        CheckpointError: see `load_part`.
    """

    def __init__(
        self,
        config: LlmConfig,
        source: TensorSource,
        options: HelixOptions,
        collectives: Collectives,
        attend: Attend | None = None,
    ) -> None:
        self.config, self.options, self.collectives = config, options, collectives
        self.attend = attend or choose_attend(options.device)
        self.grid = RankGrid(layout=options.layout, rank=collectives.rank)
        part = part_of(config, options.layout, collectives.rank)
        self.model = load_part(config, source, part, dtype=options.dtype, device=options.device)
        if options.weights != "auto":
            self.model.convert_weights(options.weights)
        self.layers = self.model.layers
        placement = RoundRobin(num_shards=options.layout.kvp, block=options.block)
        self.cache = KVShard(
            [layer.self_attn for layer in self.layers],
            options.cache_slots,
            placement,
            self.grid.kvp,
            dtype=options.dtype,
            device=options.device,
        )
        # Bytes of this rank's weights, and of its routed experts among them.
        self.weight_bytes = module_bytes([self.model])
        self._routed_bytes = sum(
            p.nbytes for layer in self.layers for n, p in layer.named_parameters() if ".experts." in n
        )

    def read_bytes(self, sequences: list[Sequence]) -> float:
        """Bytes that this rank reads to decode one token of each sequence: weights, and keys and values.

        Of the routed experts, those that as many tokens choose at least, if they choose differently: at most all.
        """
        moe, config = self.config.moe, self.config
        hit = min(1.0, len(sequences) * moe.top_k / moe.num_experts) if moe else 0.0
        # Of an input embedding that is not the output head too, a row per token, which is nothing.
        shared = config.tied_embeddings and self.model.tied_head is None
        idle = 0 if shared else self.model.model.embed_tokens.weight.nbytes
        held = sum(self.cache.held(s.length) for s in sequences)
        return (
            self.weight_bytes - self._routed_bytes * (1 - hit) - idle + held * self.cache.num_bytes / self.cache.slots
        )

    @torch.inference_mode()
    def step(self, sequences: list[Sequence], ids_BL: Tensor, *, every: bool = False) -> Tensor:
        """Cache L new tokens of each sequence and return what follows them.

        Args:
            ids_BL: on the device, the same on every rank.
            every: logits after each token and not only after the last.

        Returns:
            (B, V) float32, with `every` (B, L, V); the same bits on every rank.
        """
        x = self._hidden(sequences, ids_BL)
        return self._logits(x if every else x[:, -1])

    @torch.inference_mode()
    def take_in(self, sequences: list[Sequence], ids_BL: Tensor) -> None:
        """Cache L new tokens of each sequence, as `step` does, where nobody asks what follows them."""
        self._hidden(sequences, ids_BL)

    def _hidden(self, sequences: list[Sequence], ids_BL: Tensor) -> Tensor:
        """Hidden states (B, L, H) after the last layer."""
        rotary = self._rotary(sequences, ids_BL.shape[1])
        x = self.collectives.all_reduce(self.model.embed(ids_BL), self.grid.pool)
        parts = self._parts(sequences, ids_BL.shape[1])
        for index, layer in enumerate(self.layers):
            x = x + self._attention(index, layer.input_layernorm(x), rotary, parts)
            x = x + self._ffn(layer, layer.post_attention_layernorm(x))
        for sequence in sequences:
            sequence.length += ids_BL.shape[1]
        return x

    def _rotary(self, sequences: list[Sequence], count: int) -> Tensor:
        """Rotary rows of the new tokens, (B, L, f, 2)."""
        device = self.options.device
        positions = torch.tensor([[s.length + i for i in range(count)] for s in sequences], device=device)
        if self.config.rotary.kind != "dynamic":
            return self.model.rotary(positions)
        # Angles that depend on how long the text may become.
        return torch.stack([self.model.rotary(p, s.capacity) for p, s in zip(positions, sequences, strict=True)])

    def _parts(self, sequences: list[Sequence], count: int) -> list[_Part]:
        """The batch in the parts that are exchanged one by one, with `count` new tokens of each sequence."""
        each = -(-len(sequences) // self.options.overlap_parts)
        parts = []
        for first in range(0, len(sequences), each):
            some = sequences[first : first + each]
            limits = [[self.cache.held(s.length + i + 1) for i in range(count)] for s in some]
            runs = Runs(starts=[s.start for s in some], limits=limits)
            parts.append(_Part(rows=slice(first, first + len(some)), sequences=some, runs=runs))
        return parts

    def _attention(self, index: int, x_BLH: Tensor, rotary: Tensor, parts: list[_Part]) -> Tensor:
        """Attention phase: the TPA slice over this rank's tokens, exchange, merge, W_O over the pool."""
        attention = self.layers[index].self_attn
        q, k, v = attention.project(x_BLH, rotary)
        keys, values = self.cache.keys[index], self.cache.values[index]
        waiting = []
        for part in parts:
            with record_function("helix.attend"):
                for row, sequence in enumerate(part.sequences, part.rows.start):
                    self.cache.store(index, sequence, k[row], v[row])
                o, lse = self.attend(q[part.rows], keys, values, part.runs, attention.scale)
            waiting.append(self._exchange(o, lse))
        with record_function("helix.merge"):
            merged = torch.cat([finish() for finish in waiting])
        own = len(self.model.part.output_heads)
        return self.collectives.all_reduce(attention.output(merged[:, :, :own]), self.grid.pool)

    def _exchange(self, o: Tensor, lse: Tensor) -> Callable[[], Tensor]:
        """Start the all-to-all of a part of the batch; the function returned waits for it and merges."""
        layout, dtype = self.options.layout, self.options.dtype
        if layout.kvp == 1:
            return lambda: o.to(dtype)
        with record_function("helix.send"):
            pending = send_partials(
                o,
                lse,
                heads=heads_per_rank(self.config, layout),
                dtype=dtype,
                collectives=self.collectives,
                group=self.grid.kvp_group,
            )
        return lambda: merge_received(pending.wait(), dtype)

    def _ffn(self, layer: DecoderLayer, x_BLH: Tensor) -> Tensor:
        """FFN phase. Shared experts are cut over the whole pool; their share rides with the routed ones'."""
        y: Tensor = layer.mlp(x_BLH)
        if not layer.routes:
            return self.collectives.all_reduce(y, self.grid.pool)
        y = self.collectives.all_reduce(y, self.grid.tpf_group)
        if self.options.layout.ep == 1:
            return y
        return self.collectives.all_gather(y, self.grid.ep_group).sum(dim=0)

    def _logits(self, x: Tensor) -> Tensor:
        logits = self.model.head(x)
        if self.grid.layout.num_ranks == 1:
            return logits
        each = slice_width(self.grid.layout.num_ranks, self.config.vocab_size)
        parts = self.collectives.all_gather(F.pad(logits, (0, each - logits.shape[-1])), self.grid.pool)
        return parts.movedim(0, -2).flatten(-2)[..., : self.config.vocab_size]
