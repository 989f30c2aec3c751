"""The command line: quick help, lazy imports, one line for a user's mistake, a non-zero exit."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from helicube.cli.main import COMMANDS

HEAVY = ("torch", "numpy", "scipy", "skimage", "trimesh", "igl", "matplotlib", "transformers", "pandas")


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "helicube", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_imports_nothing_heavy(name: str) -> None:
    code = f"import sys, helicube.cli.{name}; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
    command = importlib.import_module(f"helicube.cli.{name}").command
    assert isinstance(command, click.Command)
    assert command.help


def test_package_import_is_light_and_its_names_resolve() -> None:
    code = f"import sys, helicube; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
    import helicube

    assert sorted(helicube.__all__) == helicube.__all__
    for name in helicube.__all__:
        assert getattr(helicube, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = helicube.nonsense


def test_generating_imports_no_training_and_no_optional_package() -> None:
    unwanted = ("helicube.train", "helicube.planner", "helicube.serve", "transformers", "matplotlib", "trimesh", "igl")
    code = f"import sys, helicube; helicube.load; print([m for m in {unwanted} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_help_lists_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name, text in COMMANDS.items():
        assert name in done.stdout
        assert text.split()[0] in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", ""], ["prompt"]),
        (["generate", "x" * 2000], ["2000 characters"]),
        (["generate", "a chair", "--box", "1", "0", "1"], ["box", "above zero"]),
        (["generate", "a chair", "--weights", "no/such/folder/here"], ["is not a folder"]),
        (["generate", "a chair", "a table", "-o", "one.glb"], ["one.glb", "folder"]),
        (["generate", "a chair", "--variants", "0"], ["variants=0"]),
        (["generate", "a chair", "--temperature", "-1"], ["temperature"]),
        (["generate", "a chair", "--max-triangles", "2"], ["max_triangles=2"]),
        (["generate", "a chair", "--cells", "1000"], ["cells is 1000", "128 is quick"]),
        (["generate", "a chair", "--size-m", "-1"], ["size_m is -1"]),
        (["detokenize", "missing.json", "--cells", "2"], ["cells is 2"]),
        (["generate"], ["PROMPTS"]),
        (["render", "missing.glb", "-o", "x.png"], ["missing.glb"]),
        (["detokenize", "missing.json"], ["missing.json"]),
        (["train", "tokenizer", "--data", "nowhere", "--out", "run"], ["helicube train prepare"]),
        (["nonsense"], ["nonsense"]),
    ],
    ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else None,
)
def test_mistakes_end_in_one_line(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode not in {0, -11}
    assert "Traceback" not in done.stderr
    message = [line for line in done.stderr.splitlines() if "rror" in line]
    assert len(message) == 1
    for word in words:
        assert word in done.stderr
    assert not list(tmp_path.iterdir())


def test_output_that_cannot_be_shown_or_written() -> None:
    code = "import sys, click, rich; sys.argv = ['helicube', 'probe']; from helicube.cli import main; {}; main.main()"
    probe = "main.cli.add_command(click.Command('probe', callback=lambda: rich.print('4 × 5 ' * 4000)))"
    probe += "; main.LazyGroup.get_command = click.Group.get_command"
    command = [sys.executable, "-c", code.format(probe)]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ascii_only)
    assert done.stdout.startswith("4 ? 5")
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            failed = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[0].startswith("error: the output cannot be written")
        assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("generate", "a chair", "--box", "q", "2", "1"),
            "error: Invalid value for '--box': 'q' is not a valid float; --box takes 3 numbers, such as --box 1 2 1",
        ),
        (
            ("generate", "a chair", "--box", "1", "2"),
            "error: Option '--box' requires 3 arguments; write it as --box 1 2 1",
        ),
        (
            ("generate", "a chair", "--seed", "x"),
            "error: Invalid value for '--seed': 'x' is not a valid integer; --seed takes a whole number",
        ),
        (
            ("generate", "a chair", "--up", "q"),
            "error: Invalid value for '--up': 'q' is not one of 'y', 'z'",
        ),
        (("genrate",), "error: No such command 'genrate'"),
        (("generate",), "error: Missing argument 'PROMPTS...'"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line_with_a_remedy(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    # The parser does not know whose option it is.
    command = {"genrate": "helicube "}.get(arguments[0], "" if arguments[-1] == "2" else "helicube generate ")
    assert done.stderr == f"{line}; see `{command}--help`\n"
    assert done.stdout == ""


def test_starting_ranks_imports_no_torch_for_the_options() -> None:
    code = "import sys, helicube.pipelines.run_text; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
