"""Loading float32 weights as bfloat16 holds little more than the bfloat16 weights."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from helicube.models.cube.decoder import CubeDecoder, DecoderConfig
from helicube.models.cube.tokenizer import CubeTokenizer, TokenizerConfig

# Peak resident memory while loading the large checkpoint, over what was resident after a small one had been loaded the
# same way, so that the interpreter, torch and its threads are not counted.
PROBE = """
import sys, torch
from pathlib import Path
from helicube.models.cube.checkpoint import load_cube

def kilobytes(name):
    return next(int(l.split()[1]) for l in Path("/proc/self/status").read_text().splitlines() if l.startswith(name))

load_cube(Path(sys.argv[1]) / "small")
Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew: it outlives fork and exec
before = kilobytes("VmRSS")
weights = load_cube(Path(sys.argv[1]) / "large")
grown = (kilobytes("VmHWM") - before) * 1024
parameters = [p for part in (weights.decoder, weights.tokenizer) for p in part.parameters()]
assert all(p.dtype == torch.bfloat16 for p in parameters)
print(grown / sum(p.numel() * 2 for p in parameters))
"""


def write_checkpoint(folder: Path, num_layers: int, width: int) -> None:
    decoder = DecoderConfig(n_layer=num_layers, n_single_layer=1, n_embd=width, n_head=4, shape_model_vocab_size=512,
                            text_model_embed_dim=16)  # fmt: skip
    tokenizer = TokenizerConfig(num_encoder_layers=num_layers, num_decoder_layers=num_layers, width=width, num_heads=4,
                                num_encoder_latents=16, num_codes=512, num_freqs=8)  # fmt: skip
    folder.mkdir()
    config = {"gpt_model": asdict(decoder), "shape_model": asdict(tokenizer)}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(dict(CubeDecoder(decoder).state_dict()), folder / "shape_gpt.safetensors")
    stored = CubeTokenizer(tokenizer).state_dict()
    shared = ("encoder.embedder.weight", "occupancy_decoder.embedder.weight")
    save_file({n: t for n, t in stored.items() if n not in shared}, folder / "shape_tokenizer.safetensors")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_peak_memory_of_both_parts_is_below_1_3_times_the_bfloat16_size(tmp_path: Path) -> None:
    torch.manual_seed(0)
    write_checkpoint(tmp_path / "small", 1, 64)
    write_checkpoint(tmp_path / "large", 6, 384)
    run = subprocess.run([sys.executable, "-c", PROBE, str(tmp_path)], capture_output=True, text=True, check=True)
    ratio = float(run.stdout)
    # Below one would mean that the probe measures nothing.
    assert 0.9 < ratio < 1.3
