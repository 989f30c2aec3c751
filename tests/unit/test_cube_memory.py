"""Loading float32 weights as bfloat16 holds little more than the bfloat16 weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from helicube.models.cube.decoder import CubeDecoder, DecoderConfig

SIZES = "n_layer={}, n_single_layer=1, n_embd={}, n_head=4, shape_model_vocab_size=512, text_model_embed_dim=16"

# Peak resident memory while loading the large file, over what was resident after a small one had been loaded the same
# way, so that the interpreter, torch and its threads are not counted.
PROBE = """
import sys, torch
from pathlib import Path
from helicube.models.cube.checkpoint import load_tensors
from helicube.models.cube.decoder import CubeDecoder, DecoderConfig

def load(name, config):
    return load_tensors(CubeDecoder, config, Path(sys.argv[1]) / name, torch.bfloat16, "cpu")

load("small.safetensors", DecoderConfig({small}))
def kilobytes(name):
    return next(int(l.split()[1]) for l in Path("/proc/self/status").read_text().splitlines() if l.startswith(name))

Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew: it outlives fork and exec
before = kilobytes("VmRSS")
model = load("large.safetensors", DecoderConfig({large}))
grown = (kilobytes("VmHWM") - before) * 1024
print(grown / sum(p.numel() * 2 for p in model.parameters()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_peak_memory_is_below_1_3_times_the_bfloat16_size(tmp_path: Path) -> None:
    sizes = {"small": SIZES.format(1, 64), "large": SIZES.format(8, 512)}
    for name, config in sizes.items():
        torch.manual_seed(0)
        model = CubeDecoder(eval(f"DecoderConfig({config})", {"DecoderConfig": DecoderConfig}))
        save_file(dict(model.state_dict()), tmp_path / f"{name}.safetensors")
        del model
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(**sizes), str(tmp_path)], capture_output=True, text=True, check=True
    )
    ratio = float(run.stdout)
    # Below one would mean that the probe measures nothing.
    assert 0.9 < ratio < 1.3
