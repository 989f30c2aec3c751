"""OpenMP's threads sleep between regions from the first use on, and whoever decides otherwise is heard."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASK = "import os; {}; print(os.environ.get('OMP_WAIT_POLICY'))"


def policy(code: str, **environment: str) -> str:
    """OMP_WAIT_POLICY after some Python."""
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | environment
    command = [sys.executable, "-c", ASK.format(code)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()[-1]


@pytest.mark.parametrize(
    "code",
    [
        "import helicube; helicube.load",
        "import sys; sys.argv[1:] = ['--version']; from helicube.cli.main import main; main()",
    ],
)
def test_threads_sleep_before_pytorch_is_loaded(code: str) -> None:
    assert policy(code) == "passive"


def test_what_the_environment_says_stays() -> None:
    assert policy("import helicube; helicube.load", OMP_WAIT_POLICY="active") == "active"


def test_a_pytorch_that_is_loaded_stays_as_it_is() -> None:
    assert policy("import torch, helicube; helicube.load") == "None"


def test_importing_alone_changes_nothing() -> None:
    assert policy("import helicube; helicube.__version__") == "None"
