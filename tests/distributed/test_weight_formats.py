"""Language models with their linear layers in other formats."""

from __future__ import annotations

import pytest
import torch
from scenario import source_of
from texts import alone, prompt, requests

from helicube.cli.run import command
from helicube.engine.helix_runner import HelixRunner
from helicube.engine.text import TextEngine
from helicube.errors import InputError
from helicube.models.tiny import tiny_config
from helicube.parallel.collectives import Collectives, SoloCollectives
from helicube.parallel.collectives_threads import ThreadPool
from helicube.parallel.helix import HelixDecoder, HelixOptions
from helicube.specs.layout import HelixLayout

MODELS = ("tiny-uneven", "tiny-gqa-moe", "tiny-mla-moe")


def decoder_of(
    model: str, weights: str, collectives: Collectives | None = None, layout: HelixLayout | None = None
) -> HelixDecoder:
    options = HelixOptions(layout=layout or HelixLayout(), cache_slots=200, block=4, weights=weights)
    return HelixDecoder(tiny_config(model), source_of(model), options, collectives or SoloCollectives())


def logits_of(decoder: HelixDecoder) -> torch.Tensor:
    """(20, V) of a prompt."""
    ids = torch.tensor([prompt(20)])
    sequence = decoder.cache.allocate(20)
    assert sequence is not None
    return decoder.step([sequence], ids, every=True)[0]


@pytest.mark.parametrize("model", MODELS)
def test_float32_weights_in_the_kernels_give_the_same_ids(model: str) -> None:
    results = TextEngine(HelixRunner(decoder_of(model, "float32"), num_slots=3, chunk=8)).run(requests())
    assert [r.ids for r in results] == alone(model)


@pytest.mark.parametrize(("weights", "worst"), [("float32", 1e-5), ("bfloat16", 0.02), ("int8", 0.15), ("int4", 0.5)])
@pytest.mark.parametrize("model", MODELS)
def test_logits_differ_by_the_rounding_of_the_format_and_no_more(model: str, weights: str, worst: float) -> None:
    # Experts that are chosen otherwise account for most of it.
    plain, found = logits_of(decoder_of(model, "auto")), logits_of(decoder_of(model, weights))
    error = float((found - plain).norm() / plain.norm())
    assert error < worst
    assert (error > 1e-4) == (weights != "float32")


def test_a_pool_quantises_its_parts() -> None:
    layout = HelixLayout(kvp=3, tpf=3)
    shards = ThreadPool(3).run(lambda c: logits_of(decoder_of("tiny-uneven", "int8", c, layout)))
    plain = logits_of(decoder_of("tiny-uneven", "auto"))
    assert all(torch.equal(shard, shards[0]) for shard in shards)
    assert float((shards[0] - plain).norm() / plain.norm()) < 0.05


def test_quantised_weights_take_less_memory_and_a_step_reads_less() -> None:
    plain, quantised = decoder_of("tiny-gqa-moe", "auto"), decoder_of("tiny-gqa-moe", "int8")
    assert quantised.weight_bytes < plain.weight_bytes
    assert quantised.read_bytes([]) < plain.read_bytes([])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--weight-format", "fp8"), "weight format 'fp8' is for GPUs; choose one of float32, bfloat16, int8, int4"),
        (("--weight-format", "int3"), "weight format 'int3' is unknown"),
        (("--weight-format", "int8", "--check"), "leave one of them out"),
    ],
)
def test_formats_that_make_no_sense_are_refused(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        command.main(["--model", "nowhere", *arguments, "a prompt"], standalone_mode=False)
