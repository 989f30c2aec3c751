"""The class functions by class name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from helicube.train.procedural import (
    cars,
    containers,
    houses,
    lamps,
    seating,
    stones,
    storage,
    tables,
    tableware,
    trees,
)
from helicube.train.procedural.draft import Draft

__all__ = ["CLASSES"]

CLASSES: Mapping[str, Callable[[Draft], None]] = MappingProxyType(
    {
        "chair": seating.chair,
        "table": tables.table,
        "sofa": seating.sofa,
        "bed": tables.bed,
        "shelf": storage.shelf,
        "bookcase": storage.bookcase,
        "cabinet": storage.cabinet,
        "desk": tables.desk,
        "nightstand": tables.nightstand,
        "stool": seating.stool,
        "bench": seating.bench,
        "armchair": seating.armchair,
        "tree": trees.tree,
        "pine tree": trees.pine_tree,
        "palm tree": trees.palm_tree,
        "dead tree": trees.dead_tree,
        "bush": trees.bush,
        "cactus": trees.cactus,
        "rock": stones.stone,
        "crystal": stones.crystal,
        "mountain": stones.mountain,
        "cloud": stones.cloud,
        "planet": stones.planet,
        "mushroom": stones.mushroom,
        "cup": tableware.cup,
        "bowl": tableware.bowl,
        "plate": tableware.plate,
        "bottle": tableware.bottle,
        "pot": tableware.pot,
        "potion": tableware.potion,
        "can": tableware.can,
        "barrel": containers.barrel,
        "crate": containers.crate,
        "box": containers.carton,
        "treasure chest": containers.treasure_chest,
        "car": cars.car,
        "race car": cars.race_car,
        "truck": cars.truck,
        "emergency vehicle": cars.emergency_vehicle,
        "lamp": lamps.lamp,
        "candle": lamps.candle,
        "torch": lamps.torch,
        "campfire": lamps.campfire,
        "house": houses.house,
        "building": houses.building,
        "tower": houses.tower,
        "temple": houses.temple,
        "tent": houses.tent,
        "well": houses.well,
    }
)
