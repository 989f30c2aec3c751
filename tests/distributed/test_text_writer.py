"""Output beside the decode loop, and the verdict of a check."""

from __future__ import annotations

import os
import sys
import time

import pytest
import torch

from helicube.errors import DecodeError
from helicube.pipelines.text_check import Decoded, compare
from helicube.pipelines.text_writer import TextWriter


def test_a_reader_that_stops_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        writer = TextWriter()
        started = time.monotonic()
        # A pipe holds 64 kB.
        for _ in range(100):
            writer.write("×" * 10_000)
        assert time.monotonic() - started < 5
        found = bytearray()
        while len(found) < 2_000_000:
            found += os.read(read, 1 << 20)
        writer.close()
    assert found.decode() == "×" * 1_000_000
    os.close(read)


def test_a_reader_that_went_away_ends_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="ascii") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        writer = TextWriter()
        writer.write("a")
        deadline = time.monotonic() + 30
        with pytest.raises(BrokenPipeError):  # noqa: PT012 - the error comes with one of the next writes
            while time.monotonic() < deadline:
                writer.write("b")
                time.sleep(0.01)
        with pytest.raises(BrokenPipeError) as caught:
            writer.close()
        assert caught.value.errno is None, "click takes EPIPE for itself"


def logits(*best: float) -> list[torch.Tensor]:
    """Two ids; the first has the logit given, the second 1."""
    return [torch.tensor([[value, 1.0]]) for value in best]


def decoded(ids: tuple[int, ...], *best: float) -> Decoded:
    return Decoded(ids=ids, logits=logits(*best))


def test_a_check_that_agrees() -> None:
    said = compare(decoded((0, 1), 2.0, 0.5), decoded((0, 1), 2.00001, 0.5), greedy=True)
    assert "ids identical over 2 tokens, largest difference of logits 1" in said
    assert said.endswith("e-05 (bound 1e-04)")
    # The bound grows with the logits.
    assert compare(decoded((0,), 90.0), decoded((0,), 90.0005), greedy=True).endswith("(bound 9e-04)")


@pytest.mark.parametrize(
    ("pool", "alone", "words"),
    [
        (decoded((0,), 2.0), decoded((0,), 2.001), "identical over 1 tokens, largest difference of logits 1.00e-03"),
        (decoded((0,), float("nan")), decoded((0,), 2.0), "difference of logits inf"),
        (decoded((1, 0), 2.0, 2.0), decoded((0, 0), 2.0, 2.0), "different from token 0 on over 2 tokens, largest"),
        (decoded((0,), 2.0), decoded((0, 1), 2.0, 0.5), "different from token 1 on"),
    ],
)
def test_a_check_that_fails(pool: Decoded, alone: Decoded, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        compare(pool, alone, greedy=True)


def test_a_tie_is_no_error_where_the_likeliest_are_taken() -> None:
    pool, alone = decoded((1, 0), 1.00001, 2.0), decoded((0, 1), 1.00005, 0.0)
    assert "different from token 0 on over 2 tokens, a tie" in compare(pool, alone, greedy=True)
    with pytest.raises(DecodeError):
        compare(pool, alone, greedy=False)
