"""Street lights, traffic lights, hydrants, mailboxes and traffic cones."""

from __future__ import annotations

import numpy as np

from helicube.train.procedural.draft import Draft
from helicube.train.procedural.palette import DARK_METAL, LIGHT, METAL, PAINT, WHITE, WOOD
from helicube.train.procedural.primitives import (
    arc,
    bevel_box,
    box,
    cone,
    cylinder,
    rounded_slab,
    torus,
)
from helicube.train.procedural.sweep import extrude, lathe, tube

__all__ = ["street_furniture"]


def street_furniture(draft: Draft) -> None:
    """Street lights, traffic lights, hydrants, mailboxes and traffic cones."""
    kind = draft.pick(("street light", "street light", "traffic light", "fire hydrant", "mailbox", "traffic cone"))
    draft.call(kind, subclass=kind)
    draft.wobble = 0.08
    {
        "street light": _street_light, "traffic light": _traffic_light, "fire hydrant": _hydrant, "mailbox": _mailbox,
        "traffic cone": _traffic_cone,
    }[kind](draft)  # fmt: skip


def _street_light(draft: Draft) -> None:
    metal = draft.tint((*DARK_METAL, *METAL, (34, 82, 46)))
    high = draft.proportion(1.8, 2.8, ("short", "tall"))
    draft.add("base", metal, cylinder(0.18, 0.24, 8, top=0.1).at(y=0.12))
    draft.add("post", metal, cylinder(0.075, high, 8, top=0.05).at(y=high / 2))
    if draft.chance(0.5):
        draft.add("lamp", draft.tint(LIGHT), cylinder(0.15, 0.36, 6, top=0.22).at(y=high + 0.16))
        draft.add("lamp", metal, cone(0.28, 0.2, 6).at(y=high + 0.44), cylinder(0.19, 0.06, 6).at(y=high - 0.02))
        return
    arms = draft.pick(((0,), (0, 180)))
    for turn in arms:
        path = arc(0.45, 180, 80, 5) + np.array([0.45, high - 0.1, 0])
        draft.add("arm", metal, tube(path, 0.05, 6).turned("y", turn - 90))
        head = box(0.2, 0.1, 0.5).at(0, high + 0.32, 0.62).turned("y", turn)
        draft.add("lamp", metal, head)
        draft.add("lamp", draft.tint(LIGHT), box(0.16, 0.06, 0.4).at(0, high + 0.26, 0.62).turned("y", turn))
    if len(arms) == 2:
        draft.call("double street light", "street light", subclass="street light")


def _traffic_light(draft: Draft) -> None:
    metal, case = draft.tint((*METAL, *DARK_METAL)), draft.tint(((240, 200, 60), (44, 44, 46), (34, 82, 46)))
    high = draft.between(1.4, 2.0)
    draft.add("post", metal, cylinder(0.07, high, 8).at(y=high / 2), cylinder(0.18, 0.1, 8).at(y=0.05))
    draft.add("case", case, bevel_box(0.36, 0.95, 0.28, 0.03).at(y=high + 0.4))
    for i, color in enumerate(((210, 44, 40), (240, 196, 60), (60, 170, 80))):
        draft.add("light", color, cylinder(0.12, 0.1, 12).turned("x", 90).at(0, high + 0.69 - 0.29 * i, 0.15))
    draft.having(3, "light")


def _hydrant(draft: Draft) -> None:
    color = draft.tint(((204, 48, 44), (240, 200, 60), (54, 104, 200)))
    cap = color if draft.chance(0.5) else draft.other((*METAL, WHITE), color)
    draft.add("base", color, cylinder(0.34, 0.12, 10).at(y=0.06))
    draft.add("body", color, cylinder(0.25, 0.85, 10).at(y=0.5), torus(0.25, 0.1, 10, 4).at(y=0.88))
    draft.add("dome", cap, lathe([(0.27, 0.9), (0.25, 1.05), (0.14, 1.17), (0.0, 1.2)], 10))
    draft.add("dome", cap, cylinder(0.07, 0.1, 6).at(y=1.23))
    for turn in (-90, 0, 90):
        draft.add("outlet", cap, cylinder(0.11, 0.16, 8).turned("x", 90).at(0, 0.62, 0.3).turned("y", turn))


def _mailbox(draft: Draft) -> None:
    color, wood = draft.tint(PAINT), draft.tint((*WOOD, *METAL))
    if draft.chance(0.5):
        outline = np.concatenate([[(-0.22, 0.0), (0.22, 0.0)], arc(0.22, 0, 180, 6)[:, :2] + np.array([0, 0.2])])
        draft.add("post", wood, box(0.14, 1.0, 0.14).at(y=0.5))
        draft.add("box", color, extrude(outline, 0.7).at(y=1.0))
        draft.add("flag", draft.other(((204, 48, 44), (240, 200, 60)), color), box(0.03, 0.3, 0.12).at(0.24, 1.3, -0.1))
        return
    draft.add("base", color, box(0.5, 0.9, 0.45).at(y=0.6))
    dome = np.concatenate([[(-0.25, 0.0), (0.25, 0.0)], arc(0.25, 0, 180, 8)[:, :2]])
    draft.add("top", color, extrude(dome, 0.45).at(y=1.05))
    draft.add("slot", (34, 34, 36), box(0.3, 0.05, 0.06).at(0, 1.05, 0.22))
    for sx in (-1, 1):
        for sz in (-1, 1):
            draft.add("leg", color, box(0.08, 0.2, 0.08).at(sx * 0.2, 0.1, sz * 0.17))


def _traffic_cone(draft: Draft) -> None:
    orange = draft.tint(((236, 120, 40), (230, 100, 36)))
    draft.add("base", orange, rounded_slab(0.8, 0.07, 0.8, 0.1).at(y=0.035))
    draft.add("cone", orange, cylinder(0.3, 1.05, 12, top=0.06).at(y=0.58))
    bands = draft.count(1, 2)
    for i in range(bands):
        y = 0.42 + 0.3 * i
        radius = 0.3 - 0.24 * (y - 0.055) / 1.05
        draft.add("stripe", WHITE, cylinder(radius * 1.04, 0.15, 12, top=(radius - 0.034) * 1.04).at(y=y + 0.075))
    draft.having(bands, "white stripe")
