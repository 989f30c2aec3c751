"""Words that people type for vehicles, buildings, weapons, tools and other outdoor things."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["OUTDOOR"]

# class -> noun of the class or of a subclass -> words that mean it or a usual kind of it.
OUTDOOR: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "airplane": {
            "airplane": ("plane", "aeroplane", "aircraft", "airliner", "jet", "biplane"),
            "helicopter": ("chopper", "copter", "rotorcraft"),
        },
        "barrel": {"barrel": ("cask", "keg", "oil drum", "wine barrel")},
        "boat": {"boat": ("rowboat", "dinghy", "canoe", "kayak", "motorboat", "sailboat", "yacht", "raft")},
        "bridge": {"bridge": ("footbridge", "viaduct", "arch bridge", "overpass")},
        "building": {
            "building": ("apartment block", "skyscraper", "office block", "high-rise", "tenement"),
            "shop": ("store", "boutique", "storefront", "supermarket"),
            "church": ("chapel", "cathedral", "abbey"),
            "castle": ("fortress", "fort", "citadel"),
            "barracks": ("garrison", "army quarters"),
            "town hall": ("city hall", "council house"),
            "mine": ("mineshaft", "mine entrance"),
        },
        "campfire": {"campfire": ("bonfire", "fire pit", "camp fire", "log fire")},
        "cannon": {
            "cannon": ("artillery gun", "howitzer", "bombard", "ship's gun"),
            "turret": ("gun turret", "sentry gun", "turret gun"),
        },
        "car": {
            "car": ("automobile", "sedan", "hatchback", "coupe", "motorcar", "suv"),
            "taxi": ("cab", "taxicab", "yellow cab"),
        },
        "coin": {"coin": ("gold coin", "doubloon", "penny", "token", "medallion")},
        "column": {"column": ("pillar", "pilaster", "stone post", "greek column")},
        "container": {
            "container": ("storage container", "storage tank", "canister"),
            "shipping container": ("freight container", "cargo container", "intermodal container"),
        },
        "crate": {
            "crate": ("wooden crate", "packing case", "supply crate", "shipping crate"),
            "pallet": ("skid", "shipping pallet"),
        },
        "door": {"door": ("doorway", "gate", "entrance door", "front door")},
        "emergency vehicle": {
            "emergency vehicle": ("rescue vehicle", "emergency car"),
            "ambulance": ("paramedic van", "ems vehicle"),
            "fire truck": ("fire engine", "firetruck", "fire brigade truck"),
            "police car": ("cop car", "patrol car", "squad car", "police cruiser"),
        },
        "farm": {
            "farm": ("farmstead", "ranch", "farm field", "homestead"),
            "barn": ("farm barn", "stable", "hayloft"),
            "silo": ("grain silo", "grain elevator"),
        },
        "fence": {"fence": ("picket fence", "railing", "palisade", "garden fence")},
        "flag": {"flag": ("banner", "pennant", "ensign", "standard banner")},
        "gravestone": {
            "gravestone": ("tombstone", "headstone", "grave", "grave marker"),
            "coffin": ("casket", "sarcophagus"),
        },
        "house": {
            "house": ("cottage", "home", "cabin", "villa", "bungalow", "hut"),
            "gazebo": ("pavilion", "summerhouse"),
            "igloo": ("snow hut", "ice house"),
        },
        "key": {"key": ("door key", "skeleton key", "latchkey"), "padlock": ("lock", "combination lock")},
        "machine": {
            "machine": ("apparatus", "contraption", "mechanical device"),
            "antenna": ("aerial", "radio mast", "radio tower"),
            "satellite dish": ("parabolic antenna", "radar dish"),
            "solar panel": ("photovoltaic panel", "solar cell"),
            "generator": ("power generator", "dynamo"),
            "gear": ("cogwheel", "cog", "sprocket"),
            "crane": ("hoist", "construction crane"),
        },
        "market stall": {"market stall": ("vendor stand", "kiosk", "market booth", "food stand", "bazaar stall")},
        "mill": {
            "mill": ("watermill", "grain mill", "flour mill"),
            "windmill": ("dutch windmill", "tower mill"),
            "wind turbine": ("wind generator", "windfarm turbine"),
        },
        "ornament": {
            "ornament": ("decoration", "bauble"),
            "heart": ("love heart", "valentine"),
            "star": ("five-pointed star", "gold star"),
            "snowflake": ("ice flake", "flake of snow"),
            "snowman": ("frosty the snowman",),
        },
        "pistol": {
            "pistol": ("handgun", "gun", "sidearm", "flintlock", "glock"),
            "revolver": ("six-shooter", "magnum"),
        },
        "race car": {
            "race car": ("racing car", "formula one car", "racer", "f1 car", "dragster"),
            "go-kart": ("gokart", "kart", "racing kart"),
        },
        "rifle": {
            "rifle": ("assault rifle", "carbine", "musket", "machine gun"),
            "shotgun": ("pump gun", "scattergun", "blunderbuss"),
            "sniper rifle": ("sniper gun", "marksman rifle"),
        },
        "shield": {"shield": ("buckler", "round shield", "heater shield", "knight's shield")},
        "ship": {
            "ship": ("vessel", "steamer", "cruise ship", "ocean liner", "battleship"),
            "sailing ship": ("galleon", "pirate ship", "tall ship", "caravel", "schooner"),
        },
        "siege engine": {
            "siege engine": ("siege weapon", "siege machine"),
            "catapult": ("trebuchet", "ballista", "mangonel", "onager"),
        },
        "sign": {"sign": ("signpost", "signboard", "road sign", "notice board", "billboard"), "buoy": ("marker buoy",)},
        "space base": {
            "space base": ("moon base", "space station", "mars habitat", "lunar outpost"),
            "hangar": ("aircraft hangar", "space hangar"),
        },
        "spaceship": {
            "spaceship": ("spacecraft", "starship", "starfighter", "ufo", "flying saucer", "space shuttle"),
            "rocket": ("space rocket", "rocket ship", "missile"),
        },
        "stairs": {
            "stairs": ("steps", "stairway", "flight of steps"),
            "staircase": ("stairwell", "flight of stairs", "stepped ramp"),
        },
        "statue": {
            "statue": ("sculpture", "bust", "monument", "figurine"),
            "obelisk": ("monolith", "stone needle"),
            "dummy": ("mannequin", "training dummy"),
        },
        "street furniture": {
            "street furniture": ("street fixture",),
            "street light": ("streetlight", "street lamp", "lamppost", "lamp post"),
            "traffic light": ("stoplight", "traffic signal"),
            "traffic cone": ("road cone", "safety cone", "pylon"),
            "fire hydrant": ("hydrant", "fireplug"),
            "mailbox": ("postbox", "letterbox", "post box"),
        },
        "temple": {"temple": ("shrine", "pagoda", "pantheon", "sanctuary", "ziggurat", "parthenon")},
        "tent": {"tent": ("teepee", "camping tent", "yurt", "wigwam", "marquee")},
        "tool": {
            "tool": ("hand tool", "implement"),
            "shovel": ("spade", "digging shovel"),
            "ladder": ("stepladder", "rope ladder"),
            "bucket": ("pail", "water bucket"),
            "saw": ("handsaw", "hacksaw"),
            "scissors": ("shears", "snips"),
            "pen": ("pencil", "ballpoint", "crayon"),
            "paddle": ("oar", "boat oar"),
            "wheelbarrow": ("barrow", "garden handcart"),
            "bear trap": ("foothold trap", "animal trap"),
            "wrench": ("spanner", "adjustable spanner"),
            "pickaxe": ("mattock", "miner's pick"),
            "broom": ("broomstick", "besom"),
        },
        "torch": {"torch": ("burning torch", "firebrand", "wall torch", "flaming torch")},
        "tower": {
            "tower": ("turreted keep", "watchtower", "castle tower", "lighthouse", "stone keep"),
            "water tower": ("water tank on stilts",),
            "bell tower": ("belfry", "campanile"),
        },
        "tractor": {"tractor": ("farm tractor", "farm vehicle", "ploughing machine", "harvester")},
        "train": {"train": ("locomotive", "steam engine", "railway engine", "tram", "subway train", "choo choo")},
        "train car": {
            "train car": ("railway carriage", "rail wagon", "boxcar", "train wagon", "freight car", "railcar"),
        },
        "treasure chest": {
            "treasure chest": ("pirate chest", "loot chest", "strongbox", "coffer", "chest of gold", "treasure trunk"),
        },
        "truck": {
            "truck": ("lorry", "pickup", "dump truck", "delivery truck", "semi truck"),
            "van": ("minivan", "delivery van", "camper van"),
        },
        "vehicle": {
            "vehicle": ("conveyance", "transport vehicle"),
            "bus": ("coach bus", "school bus", "double-decker", "omnibus"),
            "tank": ("panzer", "battle tank", "army tank"),
            "motorcycle": ("motorbike", "scooter", "chopper bike"),
            "bicycle": ("bike", "pushbike"),
            "cart": ("wagon", "handcart", "horse cart"),
            "rover": ("moon rover", "mars rover", "buggy"),
        },
        "weapon": {
            "weapon": ("armament", "melee weapon"),
            "sword": ("longsword", "saber", "katana", "broadsword", "scimitar"),
            "axe": ("hatchet", "battle axe", "ax", "tomahawk"),
            "knife": ("dagger", "dirk", "stiletto", "machete"),
            "hammer": ("mallet", "sledgehammer", "war hammer", "mace"),
            "bow": ("longbow", "archer's bow", "recurve bow"),
            "crossbow": ("arbalest",),
            "staff": ("wand", "spear", "trident", "wizard's staff"),
            "scythe": ("sickle", "reaper's scythe"),
            "bomb": ("explosive", "dynamite"),
            "grenade": ("hand grenade", "frag grenade"),
        },
        "well": {"well": ("water well", "wishing well", "draw well", "village well")},
        "wheel": {"wheel": ("tire", "tyre", "car wheel", "wagon wheel")},
        "window": {"window": ("windowpane", "casement", "window frame", "glass pane", "skylight")},
    }
)
