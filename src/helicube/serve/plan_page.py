"""The planner's interactive frontier as a page."""

from __future__ import annotations

import tempfile
from pathlib import Path

from helicube.errors import InputError
from helicube.planner.request import PlanOptions, run_plan
from helicube.planner.shipped import list_engines
from helicube.serve.byte_cache import ByteCache
from helicube.serve.problem import ApiError
from helicube.specs.catalog import list_models
from helicube.specs.hardware import list_hardware
from helicube.specs.names import nearest_names

__all__ = ["Plans", "plan_names"]


def plan_names() -> dict[str, list[str]]:
    """What can be planned for by name."""
    return {
        "models": [model.name for model in list_models()],
        "gpus": [hardware.name for hardware in list_hardware()],
        "engines": [*list_engines()],
    }


class Plans:
    """Searches, each of which takes all cores, and keeps the latest pages."""

    def __init__(self) -> None:
        self.pages = ByteCache(16 << 20)

    def page(self, model: str, gpu: str, max_gpus: int, context: int) -> str:
        """The page that `helicube plan -o plan.html` writes.

        Raises:
            InputError: an unknown name (files are not read on a client's word), or nothing fits.
            ApiError: there is no room for temporary files (503).
        """
        check_names(model, gpu)
        key = (model, gpu, max_gpus, context)
        found = self.pages.get(key)
        if found is None:
            try:
                found = search(model, gpu, max_gpus, context)
            except OSError as error:
                # Of a temporary folder, and not of the disk that holds the objects.
                text = f"the plan cannot be written now ({error.strerror or error}); try again in a moment"
                raise ApiError(503, text, code="busy", retry_after_s=5) from None
            self.pages.put(key, found)
        return found.decode()

    def is_search(self, model: str, gpu: str, max_gpus: int, context: int) -> bool:
        """Whether a page has to be searched for.

        Raises:
            InputError: an unknown name.
        """
        check_names(model, gpu)
        return self.pages.get((model, gpu, max_gpus, context)) is None


def check_names(model: str, gpu: str) -> None:
    names = plan_names()
    for what, name, known in (("model", model, names["models"]), ("GPU", gpu, names["gpus"])):
        if name not in known:
            raise InputError(f"{what} {name!r} is unknown; did you mean {nearest_names(name, known)}?")


def search(model: str, gpu: str, max_gpus: int, context: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.html"
        run_plan(PlanOptions(model=model, gpu=gpu, max_gpus=max_gpus, context=context, output=(path,)))
        return path.read_bytes()
