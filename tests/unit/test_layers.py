"""Imports point down only, lazy imports included, and there are no cycles between packages."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "helicube"

# From the top down. A package may import itself and what stands on a later line; those on one line are independent.
ORDER: list[set[str]] = [
    {"cli"},
    {"serve", "train"},
    {"pipelines"},
    {"engine"},
    {"parallel"},
    {"models"},
    {"nn"},
    {"kernels"},
    {"planner"},
    {"geometry"},
    {"specs"},
    {"errors", "idle_threads"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
FORBIDDEN = {
    "planner": {"torch"},
    "geometry": {"torch"},
    "specs": {"torch", "numpy", "scipy", "click", "rich"},
    "errors": {"torch", "numpy", "scipy", "click", "rich"},
    "idle_threads": {"torch", "numpy", "scipy", "click", "rich"},
}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> list[str]:
    """Absolute names of all modules that a file imports, at any depth of nesting."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer; write the absolute name"
            module = node.module or ""
            # `from helicube import cli` names a package too.
            names += [f"{module}.{alias.name}" for alias in node.names] if module == "helicube" else [module]
    return names


FILES = sorted(p for p in SOURCE.rglob("*.py") if layer_of(p) not in {"__init__", "__main__"})


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    layer = layer_of(path)
    assert layer in RANK, f"{path}: {layer} is not in the layer order"
    for name in imported_modules(path):
        top, _, rest = name.partition(".")
        assert top not in FORBIDDEN.get(layer, set()), f"{path}: {layer} must not import {top}"
        target = rest.split(".")[0]
        if top == "helicube" and target in RANK:
            below = target == layer or RANK[target] > RANK[layer]
            assert below, f"{path}: {layer} imports {target}, which is not below it"


@pytest.mark.parametrize("path", [p for p in FILES if layer_of(p) in {"nn", "models"}], ids=lambda p: p.stem)
def test_models_do_without_triton(path: Path) -> None:
    """Installations for CPUs lack it, and formats are no business of one device's kernels."""
    assert not [name for name in imported_modules(path) if name.startswith("helicube.kernels.triton")]


def test_every_file_is_small() -> None:
    long = {str(p.relative_to(SOURCE)): n for p in FILES if (n := len(p.read_text().splitlines())) > 500}
    assert not long, f"files over 500 lines: {long}"
