"""The steps of one object one by one, for callers that decode many side by side and show each while it grows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from helicube import __version__
from helicube.engine.request import Request
from helicube.engine.sampling import SamplingConfig
from helicube.geometry.mesh import Mesh
from helicube.models.cube.lattice_code import Shape
from helicube.pipelines.box import box_notes, parse_box
from helicube.pipelines.meshing import MeshOptions, build_mesh, find_surface, finish_mesh, with_sizes
from helicube.pipelines.soundness import candidate_seed
from helicube.pipelines.text_to_shape import TextToShape

__all__ = ["PREVIEW_CELLS", "ObjectSteps", "ShapeFirst", "fingerprint"]

# Cells along the longest side of each preview.
PREVIEW_CELLS = (32, 64)


@runtime_checkable
class ShapeFirst(Protocol):
    """A model whose shape is known before all of its ids are."""

    @property
    def num_shape_ids(self) -> int:
        """Ids from the start that decide the shape."""
        ...

    def decode_shape(self, ids: NDArray[np.int64]) -> Shape:
        """The first `num_shape_ids` ids to a field without colours."""
        ...


class ObjectSteps:
    """From a prompt to a request, and from ids to meshes: each step gives what `TextToShape.generate` gives."""

    def __init__(self, pipeline: TextToShape) -> None:
        self.pipeline, self.model = pipeline, pipeline.model
        self.num_tokens = self.model.plan.num_steps
        # Ids after which a preview is possible; None where there is none before the end.
        self.num_shape_ids = self.model.num_shape_ids if isinstance(self.model, ShapeFirst) else None

    def request(
        self, prompt: str, sampling: SamplingConfig, box: Sequence[float] | None
    ) -> tuple[Request, tuple[str, ...]]:
        """What the engine takes, and notes, such as words that the text encoder did not know.

        Raises:
            PromptError: the prompt is empty, too long, or holds no word that the model knows.
        """
        sizes = parse_box(box)
        worded = self.pipeline.worded(prompt, sampling.seed)
        conditioned = self.model.condition([worded.asked], None if sizes is None else sizes[None])
        request = Request(
            prompt=conditioned.prompts[0],
            num_tokens=self.num_tokens,
            sampling=sampling,
            forced=torch.from_numpy(self.model.forced(sizes)),
        )
        return request, worded.notes + conditioned.notes[0] + box_notes(self.model, sizes)

    @staticmethod
    def candidate(request: Request, number: int) -> Request:
        """The request of an object's k-th candidate; the first is the object's own."""
        sampling = request.sampling
        return replace(request, sampling=replace(sampling, seed=candidate_seed(sampling.seed, number)))

    def soundest(self, box: Sequence[float] | None, candidates: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The ids that `TextToShape.decode_many` keeps of those of an object's candidates, in their order."""
        return candidates[self.pipeline.soundest(candidates, parse_box(box))]

    def shape(self, ids: NDArray[np.int64], box: Sequence[float] | None) -> Shape:
        """The field of a row of ids; without colours of the first `num_shape_ids`."""
        if len(ids) < self.num_tokens:
            assert isinstance(self.model, ShapeFirst), "a preview of some ids needs a model whose shape comes first"
            return with_sizes(self.model.decode_shape(ids), parse_box(box))
        return self.pipeline.field(ids, parse_box(box))

    @staticmethod
    def mesh(shape: Shape, box: Sequence[float] | None, options: MeshOptions) -> Mesh:
        """The finished mesh of the field of all ids.

        Raises:
            EmptyFieldError: the field has no surface.
            GeometryError: the field is not finite, or its surface cannot be made a mesh.
        """
        return build_mesh(shape, options, fit=parse_box(box))[0]

    @staticmethod
    def preview(shape: Shape, box: Sequence[float] | None, options: MeshOptions, level: int) -> Mesh:
        """A coarse mesh, neither repaired nor simplified.

        Args:
            level: 0, or 1 for one twice as fine.

        Raises:
            EmptyFieldError: the field has no surface.
            GeometryError: the field is not finite.
        """
        return finish_mesh(find_surface(shape, PREVIEW_CELLS[level]), shape, options, parse_box(box))


def fingerprint(pipeline: TextToShape, samples: int = 256) -> str:
    """A short name of all that decides an object besides its settings: weights, text table, kernels, device, version.

    Args:
        samples: values looked at in each parameter of a network, evenly spread; tables are looked at whole.
    """
    model = pipeline.model
    runs = f"{pipeline.options.weights} {pipeline.resolved.kernels.implementation} {model.decoder.device.type}"
    digest = hashlib.sha256(f"{__version__} {model.name} {runs}".encode())
    for name, part in chain.from_iterable(_parts(value, key, depth=3) for key, value in vars(model).items()):
        digest.update(name.encode())
        digest.update(_sampled(part, samples) if isinstance(part, torch.Tensor) else part)
    return digest.hexdigest()[:16]


def _sampled(tensor: torch.Tensor, samples: int) -> bytes:
    flat = tensor.detach().reshape(-1)
    # In whole numbers: float32 rounds places beyond 2^24 up, past the end.
    count = min(samples, flat.numel())
    index = torch.arange(count) * (flat.numel() - 1) // max(1, count - 1)
    return flat[index.to(flat.device)].float().cpu().numpy().tobytes()


def _parts(value: object, name: str, depth: int) -> Iterator[tuple[str, torch.Tensor | bytes]]:
    """Parameters of networks, and whatever else an object of helicube holds that can be written as bytes, by name."""
    if isinstance(value, torch.nn.Module):
        yield from ((f"{name}.{key} {tuple(tensor.shape)}", tensor) for key, tensor in value.state_dict().items())
    elif isinstance(value, np.ndarray):
        yield f"{name} {value.shape} {value.dtype}", value.tobytes()
    elif isinstance(value, dict | list | tuple) and all(isinstance(part, str | int | float) for part in value):
        # Of a vocabulary the entries in their order; what else values may be has no text that stays the same.
        yield name, repr([*value]).encode()
    elif isinstance(value, Mapping) and all(isinstance(part, tuple) for part in value.values()):
        yield name, repr(dict(value)).encode()
    elif depth and type(value).__module__.startswith("helicube"):
        for key, part in getattr(value, "__dict__", {}).items():
            yield from _parts(part, f"{name}.{key}", depth - 1)
