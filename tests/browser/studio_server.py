"""The service with a small model of random weights: `python studio_server.py PORT DATA_DIR STEP_S [KEY]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studio"))

from small import small_pipeline

from helicube.serve.config import ServeConfig
from helicube.serve.server import bind, serve

if __name__ == "__main__":
    torch.set_num_threads(1)
    port, folder, step_s, *key = sys.argv[1:]
    config = ServeConfig(data_dir=Path(folder), port=int(port), api_key=key[0] if key else None)
    serve(config, small_pipeline(float(step_s)), bind(config.host, config.port))
