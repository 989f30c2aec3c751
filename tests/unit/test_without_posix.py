"""Objects are made where Python lacks what only POSIX has: on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GENERATE = """
import os, sys
path = sys.argv[1]
for name in ("resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
del os.sysconf
from helicube.cli.main import main
sys.argv = ["helicube", "generate", "a table", "--best-of", "1", "-o", path]
main()
"""


def test_a_prompt_becomes_an_object(tmp_path: Path) -> None:
    path = tmp_path / "table.glb"
    done = subprocess.run([sys.executable, "-c", GENERATE, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes()[:4] == b"glTF"


def test_memory_that_is_not_told_is_none() -> None:
    lacking = 'import sys; sys.modules["resource"] = None; '
    ask = f"{lacking}from helicube.engine.metrics import peak_bytes; print(peak_bytes())"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout == "0\n"
