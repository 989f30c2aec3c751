"""`helicube run`, from the command line, on a tiny model with a tokenizer of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors.torch import save_file
from scenario import source_of
from tokenizers import Tokenizer, models, pre_tokenizers

from helicube.cli.run import command
from helicube.errors import HelicubeError, InputError, LayoutError, PromptError
from helicube.models.tiny import TINY

MODEL = "tiny-uneven"
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
CHECKED = re.compile(r"check: ids identical over (\d+) tokens, largest difference of logits (\S+) \(bound 1e-04\)\n")


STARTING = "starting 2 ranks: kvp=2,tpa=1,tpf=2,ep=1\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 61 words, w0 … w60, in Hugging Face format."""
    path = tmp_path_factory.mktemp("tiny")
    (path / "config.json").write_text(json.dumps(dict(TINY[MODEL])))
    save_file({n: t.contiguous() for n, t in source_of(MODEL).tensors.items()}, path / "model.safetensors")
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def text(*ids: int) -> str:
    return " ".join(f"w{i}" for i in ids)


def helicube(*arguments: str, python: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *python, "-m", "helicube", "run", *arguments],
        capture_output=True, text=True, env=ENV, check=False, timeout=600,
    )  # fmt: skip


def alone(folder: Path, *arguments: str) -> str:
    """The same on one device and in this process."""
    found = CliRunner().invoke(command, ["--model", str(folder), *arguments], catch_exceptions=False)
    return found.stdout


def test_a_pool_says_what_one_device_says(folder: Path) -> None:
    arguments = ["--max-tokens", "9", text(*range(5, 40))]
    found = helicube("--model", str(folder), *arguments, "--nproc", "3", "--kvp", "3", "--block", "4", "--check")
    assert found.returncode == 0, found.stderr
    [(count, worst)] = CHECKED.findall(found.stderr)
    assert (count, float(worst) < 1e-4) == ("9", True)
    assert found.stdout == alone(folder, *arguments)
    assert found.stderr.startswith("starting 3 ranks: kvp=3,tpa=1,tpf=3,ep=1\n")
    assert re.search(r"TTFT \d+\.\d+ s   TPOT \d+\.\d ms   \d+\.\d tokens/s   \d+\.\d+ GB/s read", found.stderr)
    assert re.search(
        r"MB of weights\+cache per rank: (\d\.\d\+\d\.\d, ){2}.*"
        r"\(room for 16 tokens a rank, dealt 16/15/12\); .* kB sent per token",
        found.stderr,
    )


def test_under_torchrun_it_takes_the_ranks_that_it_finds(folder: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text(text(*range(30)))
    arguments = ["--max-tokens", "5", "--prompt-file", str(prompt)]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    found = helicube("--model", str(folder), *arguments, "--layout", "kvp=2", "--check", python=torchrun)
    assert found.returncode == 0, found.stderr
    assert CHECKED.search(found.stderr)
    assert found.stdout == alone(folder, *arguments)


def test_a_prompt_that_can_be_read_once_reaches_all_ranks(folder: Path) -> None:
    """And the ranks that had nothing to attend to are told."""
    found = subprocess.run(
        [sys.executable, "-m", "helicube", "run", "--model", str(folder), "--prompt-file", "/dev/stdin",
         "--max-tokens", "3", "--layout", "kvp=2"],
        input=text(5, 6, 7), capture_output=True, text=True, env=ENV, check=True, timeout=600,
    )  # fmt: skip
    assert found.stdout == alone(folder, "--max-tokens", "3", text(5, 6, 7))
    assert "KVP rank 1 of 2 held no token" in found.stderr


def test_several_prompts_and_sampling(folder: Path) -> None:
    prompts = [text(7, 8, 9), text(*range(20, 40))]
    hot = ["--max-tokens", "6", "--temperature", "1", "--top-p", "0.9"]
    together = alone(folder, *hot, "--seed", "3", *prompts).splitlines()
    assert together[0] == "[1] " + alone(folder, *hot, "--seed", "3", prompts[0]).strip()
    assert together[1] == "[2] " + alone(folder, *hot, "--seed", "4", prompts[1]).strip()
    assert together[0] != "[1] " + alone(folder, *hot, "--seed", "5", prompts[0]).strip()


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ([], PromptError, "there is no prompt"),
        (["  "], PromptError, "the prompt is empty"),
        (
            ["--prompt-file", "/nowhere/prompt.txt"],
            PromptError,
            r"\(No such file or directory\); name a text file",
        ),
        (["--prompt-file", "/"], PromptError, r"\(Is a directory\); name a text file"),
        (["--prompt-file", sys.executable], PromptError, r"\(it is not UTF-8\); name a text file"),
        (["--prompt-file", "/dev/zero"], PromptError, "holds more than 1,073,741,824 bytes"),
        (["w1", "--cache-tokens", "1" + "0" * 15], InputError, "a cache of 1,000,000,000,000,000 tokens a rank takes"),
        (["w1", "--check", "--dtype", "bfloat16"], InputError, "--check compares in float32"),
        (
            ["w1", "--nproc", "4", "--layout", "kvp=3,tpa=2"],
            LayoutError,
            "differs from the 4 ranks asked for; choose 6",
        ),
        (["w1", "--layout", "kvp:2"], LayoutError, "'kvp:2' is not understood; write it as key=value"),
        (["w1", "--layout", ""], LayoutError, "names no width; write it as kvp=2,tpa=1"),
        (["w1", "--max-tokens", "0"], InputError, "max_tokens=0 is too small"),
        (["w1", "--timeout", "0"], InputError, "timeout=0"),
        (["w1", "--timeout", "1e-9"], InputError, "timeout=1e-09 is out of range; choose 1 to 86400 seconds"),
        (["w1", "--timeout", "inf"], InputError, "timeout=inf is out of range"),
        (["w1", "--model", ""], InputError, "model '' is neither"),
        (["w1", "--nproc", "100000", "--kvp", "100000"], LayoutError, "kvp=100000 exceeds the 9 query heads"),
        (["w1", "--layout", "kvp=2", "--tpa", "1"], InputError, "say the same thing twice"),
        (["w1", "--kvp", "2", "--nproc", "3"], LayoutError, "kvp=2 does not divide the 3 ranks; choose kvp in 1, 3"),
        (["w1", "w2", "--check"], PromptError, "takes one prompt, not 2"),
        ([text(*range(60))], HelicubeError, "60 prompt tokens and 256 more exceed the context of 64 tokens"),
        (["w1 w2 w3", "--max-tokens", "9", "--cache-tokens", "10"], HelicubeError, "11 tokens do not fit the cache"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], kind: type[Exception], words: str, folder: Path) -> None:
    with pytest.raises(kind, match=words):
        CliRunner().invoke(command, ["--model", str(folder), *arguments], catch_exceptions=False)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for the ranks in /proc")
@pytest.mark.parametrize("end", ["killed rank", "interrupt"])
def test_a_run_that_is_cut_short_leaves_nothing(end: str, folder: Path, tmp_path: Path) -> None:
    """A rank is killed, or Ctrl-C pressed, in the middle of a long answer."""
    content = dict(TINY[MODEL]) | {"max_position_embeddings": 1 << 20}
    (tmp_path / "config.json").write_text(json.dumps(content))
    for file in ("model.safetensors", "tokenizer.json"):
        (tmp_path / file).symlink_to(folder / file)
    arguments = ["--model", str(tmp_path), "w1 w2", "--max-tokens", "100000", "--nproc", "2", "--kvp", "2"]
    run = subprocess.Popen(
        [sys.executable, "-m", "helicube", "run", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV,
    )  # fmt: skip
    assert run.stdout is not None
    assert run.stdout.read(1) == "w", "the first token"
    # In the order in which they were started.
    ranks = children(run.pid)
    assert len(ranks) == 2
    if end == "interrupt":
        run.send_signal(signal.SIGINT)
    else:
        os.kill(ranks[1], signal.SIGKILL)
    started = time.monotonic()
    _, stderr = run.communicate(timeout=120)
    assert time.monotonic() - started < 30, "1 s is promised; the rest is for a machine that does other things"
    if end == "interrupt":
        assert (run.returncode, stderr) == (130, STARTING + "\ninterrupted\n")
    else:
        assert run.returncode == 1
        said = "error: rank 1 of 2 died (killed by SIGKILL); the run is over, and its other ranks were ended\n"
        assert stderr == STARTING + said
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)


def test_a_mistake_on_a_pool_is_one_line_too(folder: Path) -> None:
    found = helicube("--model", str(folder), "w1", "--nproc", "2", "--tpa", "2")
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == f"error: tpa=2 does not divide the 3 KV heads of {folder.name}; choose tpa in 1, 3\n"
