"""The service with a tiny model, as a process of its own: `python studio_server.py PORT DATA_DIR STEP_S`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from tiny import Words, tiny_weights

from helicube.engine.engine import Engine
from helicube.engine.request import Result
from helicube.pipelines.shape_model import DefaultModel
from helicube.pipelines.text_to_shape import TextToShape
from helicube.serve.config import ServeConfig
from helicube.serve.server import bind, serve


class SlowPipeline(TextToShape):
    """Waits before each step of the engine, so that a job lasts long enough to be watched, stopped or cut off."""

    step_s = 0.0

    def engine(self, num_slots: int, guided: bool) -> Engine:
        engine = super().engine(num_slots, guided)
        step = engine.step

        def slow_step() -> dict[int, Result]:
            time.sleep(self.step_s)
            return step()

        engine.step = slow_step  # type: ignore[method-assign]
        return engine


def main() -> None:
    torch.set_num_threads(1)
    port, folder, step_s = sys.argv[1:]
    pipeline = SlowPipeline(DefaultModel(tiny_weights(), Words()))
    pipeline.step_s = float(step_s)
    serve(ServeConfig(data_dir=Path(folder), port=int(port)), pipeline, bind("127.0.0.1", int(port)))


if __name__ == "__main__":
    main()
