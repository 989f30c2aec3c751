"""Words that people type for animals, people, plants, stones and other natural things."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["NATURE"]

# class -> noun of the class or of a subclass -> words that mean it or a usual kind of it.
NATURE: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "animal": {
            "animal": ("creature", "critter", "beast"),
            "cat": ("kitty", "kitten", "feline", "tabby"),
            "cow": ("cattle", "bull", "dairy cow", "ox"),
            "pig": ("hog", "piglet", "swine", "piggy"),
            "sheep": ("lamb", "ram", "ewe"),
            "deer": ("stag", "doe", "elk", "moose", "reindeer"),
            "llama": ("alpaca", "guanaco"),
            "bear": ("grizzly", "polar bear", "brown bear"),
            "elephant": ("mammoth", "jumbo elephant"),
            "rabbit": ("bunny", "hare"),
            "rat": ("mouse", "rodent", "hamster"),
            "frog": ("toad", "tree frog", "bullfrog"),
            "snake": ("serpent", "viper", "python", "cobra"),
            "turtle": ("tortoise", "sea turtle"),
            "spider": ("tarantula", "arachnid"),
            "crab": ("lobster", "crayfish"),
            "bee": ("wasp", "bumblebee", "hornet"),
            "bat": ("vampire bat", "fruit bat"),
            "worm": ("earthworm", "caterpillar"),
        },
        "astronaut": {"astronaut": ("spaceman", "cosmonaut", "space explorer", "space suit")},
        "bird": {
            "bird": ("songbird", "sparrow", "parrot", "pigeon", "birdie"),
            "chicken": ("hen", "rooster", "cockerel", "poultry"),
            "eagle": ("hawk", "falcon", "bird of prey"),
            "duck": ("mallard", "duckling"),
            "penguin": ("emperor penguin", "puffin"),
            "owl": ("barn owl", "night owl"),
        },
        "bones": {
            "bones": ("skeleton remains", "pile of bones"),
            "bone": ("femur", "dog bone"),
            "skull": ("cranium", "death's head", "skeleton head"),
        },
        "bush": {
            "bush": ("shrub", "hedge", "shrubbery", "thicket"),
            "berry bush": ("blueberry bush", "raspberry bush", "blackberry shrub"),
        },
        "cactus": {"cactus": ("saguaro", "prickly pear", "desert cactus", "succulent")},
        "cloud": {"cloud": ("cumulus", "rain cloud", "puffy cloud", "storm cloud")},
        "corn": {"corn": ("maize", "sweetcorn", "corncob", "corn on the cob", "ear of maize")},
        "crystal": {"crystal": ("quartz", "amethyst", "crystal shard", "crystal cluster", "mineral crystal")},
        "dead tree": {"dead tree": ("bare tree", "leafless tree", "withered tree", "barren tree")},
        "dinosaur": {"dinosaur": ("dino", "t-rex", "tyrannosaurus", "triceratops", "raptor", "stegosaurus")},
        "dog": {
            "dog": ("puppy", "hound", "doggy", "pup", "canine", "labrador", "retriever"),
            "fox": ("vixen", "red fox", "arctic fox"),
        },
        "flower": {"flower": ("blossom", "rose", "tulip", "daisy", "bloom", "sunflower", "daffodil")},
        "grass": {"grass": ("tuft of grass", "lawn", "blades of grass", "turf")},
        "horse": {"horse": ("pony", "stallion", "mare", "steed", "foal", "mustang")},
        "log": {"log": ("timber", "firewood", "tree log", "lumber")},
        "man": {
            "man": ("guy", "gentleman", "male person", "boy", "dude", "fellow"),
            "knight": ("cavalier", "armored warrior"),
            "pirate": ("buccaneer", "corsair"),
        },
        "monster": {
            "monster": ("demon", "ogre", "ghoul", "troll", "goblin"),
            "alien": ("extraterrestrial", "martian"),
            "zombie": ("undead", "walking dead"),
            "skeleton": ("skeleton warrior", "living skeleton"),
            "dragon": ("wyvern", "drake"),
            "ghost": ("phantom", "spirit", "spook"),
            "slime": ("blob monster", "jelly monster"),
        },
        "mountain": {"mountain": ("mount", "peak", "hill", "volcano", "summit", "mountain range")},
        "mushroom": {"mushroom": ("toadstool", "fungus", "fly agaric", "fungi")},
        "palm tree": {"palm tree": ("palm", "coconut palm", "date palm", "tropical tree", "coconut tree")},
        "pine tree": {
            "pine tree": ("conifer", "fir tree", "spruce", "evergreen", "pine", "fir"),
            "christmas tree": ("xmas tree", "decorated fir"),
        },
        "planet": {"planet": ("globe", "earth", "world", "saturn", "mars", "moon")},
        "plant": {
            "plant": ("herb", "fern", "shoot", "leafy sprout"),
            "bamboo": ("bamboo stalk", "bamboo cane"),
            "lily pad": ("water lily", "lotus leaf"),
            "hay bale": ("straw bale", "haystack"),
            "wheat": ("barley", "sheaf of grain"),
        },
        "robot": {
            "robot": ("android", "droid", "automaton", "bot"),
            "mech": ("mecha", "battle walker", "exosuit"),
        },
        "rock": {
            "rock": ("boulder", "stone", "pebble", "cobble"),
            "asteroid": ("meteor", "meteorite"),
            "crater": ("impact hole", "moon crater"),
        },
        "sea animal": {
            "sea animal": ("marine animal", "sea creature", "aquatic animal"),
            "fish": ("goldfish", "trout", "tropical fish", "salmon fish", "clownfish"),
            "shark": ("great white", "hammerhead"),
            "whale": ("orca", "humpback", "killer whale"),
            "dolphin": ("porpoise", "bottlenose"),
            "octopus": ("squid", "kraken"),
            "starfish": ("sea star",),
            "manta ray": ("stingray",),
        },
        "tree": {"tree": ("oak", "oak tree", "maple tree", "deciduous tree", "leafy tree")},
        "tree stump": {"tree stump": ("stump", "tree trunk stump", "cut tree", "chopped trunk")},
        "woman": {"woman": ("lady", "girl", "female person", "gal", "lass")},
    }
)
