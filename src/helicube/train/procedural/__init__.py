"""Training objects made by code: common things in a clean low-poly style, with parts, colours and captions."""

from __future__ import annotations

from helicube.train.procedural.build import generate, generate_many
from helicube.train.procedural.registry import CLASSES

__all__ = ["CLASSES", "generate", "generate_many"]
