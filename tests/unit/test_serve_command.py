"""`helicube serve` as a user starts it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import torch
from tiny import tiny_weights

import helicube
from helicube.models.cube.default import save_default
from helicube.models.cube.text_static import StaticTextEncoder


def test_the_command_serves_a_model_of_ones_own(tmp_path: Path) -> None:
    """From the command line to an object: options, loading, the bundled text table, engine and meshes."""
    save_default(tiny_weights(StaticTextEncoder.load().width), tmp_path / "model", torch.float32)
    command = [sys.executable, "-m", "helicube", "serve", "--port", "0", "--weights", str(tmp_path / "model"),
               "--data-dir", str(tmp_path / "data")]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        try:
            url = next(found[0] for line in child.stderr if (found := re.search(r"http://127[\d.]+:\d+/", line)))
            client = helicube.Client(url)
            job = client.wait(client.submit("a red chair", variants=2, quality="draft", max_triangles=2000)["id"])
            assert job["status"] == "done"
            for made in job["objects"]:
                assert 4 <= made["object"]["num_triangles"] <= 2000
                assert client.file(made["id"]).startswith(b"glTF")
        finally:
            child.send_signal(signal.SIGTERM)
            said = child.stderr.read()
        assert child.wait(30) in {0, -signal.SIGTERM}
    assert f"job {job['id']}: 2 objects" in said
    assert "Traceback" not in said
