"""The common body of four-legged animals; the head at +Z."""

from __future__ import annotations

from dataclasses import dataclass

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import BLACK, RGB
from helicube.train.procedural.primitives import ball, cone, icosphere, link
from helicube.train.procedural.sweep import lathe, tube

__all__ = [
    "BEAR",
    "CAT",
    "COW",
    "DEER",
    "DOG",
    "ELEPHANT",
    "HORSE",
    "LLAMA",
    "PIG",
    "RAT",
    "SHEEP",
    "Build",
    "add_quadruped",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Proportions of a quadruped, in units of its body's length."""

    # Height of the legs.
    leg: float
    # Width and height of the trunk.
    wide: float
    high: float
    # Length and rise of the neck.
    neck: float
    rise: float
    # Length of the head and of the muzzle beyond it.
    head: float
    muzzle: float
    # "point", "flop" or "none".
    ears: str
    # "brush", "thin", "stub" or "curl".
    tail: str


DOG = Build(leg=0.55, wide=0.34, high=0.38, neck=0.12, rise=0.24, head=0.34, muzzle=0.22, ears="point", tail="brush")
CAT = Build(leg=0.42, wide=0.3, high=0.32, neck=0.06, rise=0.2, head=0.34, muzzle=0.06, ears="point", tail="curl")
HORSE = Build(leg=0.75, wide=0.34, high=0.4, neck=0.28, rise=0.5, head=0.26, muzzle=0.3, ears="point", tail="brush")
COW = Build(leg=0.45, wide=0.46, high=0.5, neck=0.1, rise=0.12, head=0.32, muzzle=0.18, ears="flop", tail="thin")
PIG = Build(leg=0.28, wide=0.5, high=0.48, neck=0.0, rise=0.05, head=0.38, muzzle=0.12, ears="flop", tail="stub")
SHEEP = Build(leg=0.36, wide=0.46, high=0.46, neck=0.06, rise=0.2, head=0.26, muzzle=0.14, ears="flop", tail="stub")
DEER = Build(leg=0.75, wide=0.28, high=0.36, neck=0.2, rise=0.48, head=0.24, muzzle=0.18, ears="point", tail="stub")
LLAMA = Build(leg=0.65, wide=0.34, high=0.42, neck=0.08, rise=0.68, head=0.24, muzzle=0.16, ears="point", tail="stub")
BEAR = Build(leg=0.42, wide=0.5, high=0.55, neck=0.06, rise=0.14, head=0.4, muzzle=0.16, ears="none", tail="stub")
ELEPHANT = Build(leg=0.5, wide=0.52, high=0.58, neck=0.06, rise=0.14, head=0.46, muzzle=0.02, ears="none", tail="thin")
RAT = Build(leg=0.16, wide=0.36, high=0.36, neck=0.02, rise=0.02, head=0.36, muzzle=0.18, ears="none", tail="thin")


def _vary(draft: Draft, build: Build) -> Build:
    def near(value: float) -> float:
        return value * draft.between(0.88, 1.14)

    return Build(
        leg=near(build.leg), wide=near(build.wide), high=near(build.high), neck=near(build.neck), rise=near(build.rise),
        head=near(build.head), muzzle=near(build.muzzle), ears=build.ears, tail=build.tail,
    )  # fmt: skip


def add_quadruped(draft: Draft, build: Build, colors: tuple[RGB, RGB]) -> tuple[float, float]:
    """Trunk, legs, neck, head, ears and tail of a body one unit long; returns y and z of the head's middle."""
    fur, second = colors
    b = _vary(draft, build)
    back = b.leg + b.high / 2
    trunk = lathe(
        [(0.0, -0.52), (0.36, -0.46), (0.5, -0.25), (0.46, 0.05), (0.52, 0.3), (0.3, 0.5), (0.0, 0.54)], 8, phase=0.5
    )
    draft.add("body", fur, trunk.turned("x", 90).scaled(b.wide, b.high, 1).at(y=back))
    thick = min(b.wide, b.high) * draft.between(0.17, 0.22)
    step = draft.between(-0.06, 0.06)
    for side in (-1, 1):
        for z, name, sway in ((0.32, "front", step), (-0.34, "back", -step)):
            x = side * b.wide * 0.3
            word = "left" if side > 0 else "right"
            knee, foot = (x, b.leg * 0.5, z + side * sway * 0.5), (x, thick * 0.4, z + side * sway)
            draft.add(f"leg {name} {word}", fur, link((x, back, z), knee, thick * 1.25, 6, top=thick * 0.9))
            draft.add(f"leg {name} {word}", fur, link(knee, foot, thick * 0.9, 6, top=thick * 0.75))
            paw = ball(thick * 2.1, thick * 1.2, thick * 2.6, 6, 4).at(foot[0], thick * 0.5, foot[2] + thick * 0.4)
            draft.add(f"leg {name} {word}", second, paw)
    top = (0.0, back + b.high * 0.2 + b.rise, 0.42 + b.neck)
    draft.add("neck", fur, link((0, back + b.high * 0.08, 0.34), top, b.high * 0.34, 8, top=b.head * 0.36))
    head = (top[1] + b.head * 0.08, top[2] + b.head * 0.15)
    draft.add("head", fur, ball(b.head * 0.85, b.head * 0.8, b.head, 8, 6).at(0, *head))
    nose = head[1] + b.head * 0.4 + b.muzzle
    if b.muzzle > 0.03:
        jaw = lathe([(0.0, 0.0), (b.head * 0.3, 0.0), (b.head * 0.22, b.muzzle + 0.08), (0.0, b.muzzle + 0.1)], 6)
        draft.add("head", second, jaw.turned("x", 100).at(0, head[0] - b.head * 0.08, head[1] + b.head * 0.22))
    _face(draft, b, head, nose)
    _tail(draft, fur, b, back)
    return head


def _face(draft: Draft, b: Build, head: tuple[float, float], nose: float) -> None:
    y, z = head
    fur = draft.pieces[0].color
    for side in (-1, 1):
        eye = icosphere(b.head * 0.13, b.head * 0.15, b.head * 0.13, 0)
        draft.add("eyes", BLACK, eye.at(side * b.head * 0.33, y + b.head * 0.12, z + b.head * 0.27))
        if b.ears == "point":
            ear = cone(b.head * 0.16, b.head * 0.42, 4).turned("z", -14 * side)
            draft.add(
                "ear left" if side > 0 else "ear right",
                fur,
                ear.at(side * b.head * 0.26, y + b.head * 0.5, z - b.head * 0.1),
            )
        elif b.ears == "flop":
            ear = ball(b.head * 0.42, b.head * 0.14, b.head * 0.26, 6, 4).turned("z", -24 * side)
            draft.add(
                "ear left" if side > 0 else "ear right",
                fur,
                ear.at(side * b.head * 0.5, y + b.head * 0.22, z - b.head * 0.05),
            )
    if b.muzzle > 0.03:
        tip = icosphere(b.head * 0.2, b.head * 0.14, b.head * 0.12, 0)
        draft.add("nose", BLACK, tip.at(0, y - b.head * 0.12, nose - b.head * 0.13))


def _tail(draft: Draft, fur: RGB, b: Build, back: float) -> None:
    x, y, z = 0.0, back + b.high * 0.2, -0.48
    if b.tail == "brush":
        path = [(x, y, z), (x, y + 0.02, z - 0.16), (x, y - 0.16, z - 0.26), (x, y - 0.34, z - 0.27)]
        draft.add("tail", fur, tube(path, [0.04, 0.07, 0.075, 0.02], 6))
    elif b.tail == "curl":
        path = [(x, y, z), (x, y + 0.05, z - 0.2), (x, y + 0.25, z - 0.34), (0.03, y + 0.48, z - 0.3)]
        draft.add("tail", fur, tube(path, [0.045, 0.045, 0.04, 0.025], 6))
    elif b.tail == "thin":
        path = [(x, y, z), (x, y - 0.02, z - 0.1), (x, y - 0.26, z - 0.15)]
        draft.add(
            "tail", fur, tube(path, [0.035, 0.03, 0.025], 5), icosphere(0.08, 0.12, 0.08, 0).at(0, y - 0.3, z - 0.15)
        )
    else:
        draft.add("tail", fur, ball(0.12, 0.12, 0.14, 6, 4).at(0, y, z - 0.02))
