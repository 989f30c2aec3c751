"""Small facts of English that captions need."""

from __future__ import annotations

import re

__all__ = ["article", "fix_articles", "with_article"]

_AN_SOUNDS = ("a", "e", "i", "o", "u", "hour", "honest", "honor", "honour", "heir", "8", "11-", "18", "x-ray", "xmas")
# Nouns that take no article.
_BARE = frozenset(
    (
        "stairs", "fries", "scissors", "glasses", "shoes", "boots", "headphones", "chopsticks", "corn", "wheat",
        "grass", "meat", "ribs", "bones", "grapes", "armor", "bread", "pants", "jewelry", "clothing", "food", "maize",
        "sweetcorn", "cattle", "swine", "poultry", "fungi", "steps", "shelves", "bookshelves", "apparel", "footwear",
        "sneakers", "sandals", "spectacles", "eyeglasses", "sunglasses", "sweets", "candy", "pancakes", "flapjacks",
        "hotcakes", "crepes", "chips", "firewood", "timber", "lumber", "bullion", "bars", "ingots", "jewellery",
        "cutlery", "earphones", "drapes", "barley", "beef", "ham", "salami", "shears", "snips", "cherries", "chainmail",
        "armour", "undead", "dead", "dynamite", "turf", "bamboo", "sushi", "maki", "nigiri", "shellfish", "headgear",
        "quarters", "cheese", "cheddar", "gouda", "tissue", "crystals", "roses", "tulips", "flowers", "bananas",
        "sunflowers", "logs", "books", "coins", "potatoes", "sails", "wheels", "doors", "windows", "eyes", "leaves",
        "petals", "blades", "hair", "teeth", "wool", "ears", "antlers", "hips", "bristles", "gems",
    )
)  # fmt: skip
_A_SOUNDS = ("unic", "unif", "unio", "uniq", "unis", "unit", "univ", "use", "util", "eu", "one", "ufo", "uto")


def article(phrase: str) -> str:
    """ "a" or "an", by the sound that the phrase begins with."""
    word = phrase.lower()
    if word.split(" ")[0] in {"suv", "mp3", "f1"}:
        return "an"
    return "an" if word.startswith(_AN_SOUNDS) and not word.startswith(_A_SOUNDS) else "a"


def with_article(phrase: str) -> str:
    """The phrase after its indefinite article; nouns in the plural and mass nouns ("stairs") stay bare."""
    head = re.split(r" (?:with|without|of|on|in|full|lying|from) ", phrase, maxsplit=1)[0]
    if head.rsplit(" ", 1)[-1] in _BARE:
        return phrase
    return f"{article(phrase)} {phrase}"


def fix_articles(text: str) -> str:
    """The text with "a" and "an" set right before the words that now follow them."""
    return re.sub(r"\ban? (?=(\S+))", lambda match: f"{article(match.group(1))} ", text)
