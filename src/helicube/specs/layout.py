"""HelixLayout: how a pool of ranks shards attention and FFN.

Source: Helix Parallelism (arXiv 2507.07120), section 2: N = KVP × TPA = TPF × EP.
"""

from __future__ import annotations

from dataclasses import dataclass

from helicube.errors import LayoutError
from helicube.specs.model import ModelSpec
from helicube.specs.names import nearest_names

__all__ = ["HelixLayout", "LayoutPadding", "legal_layouts"]

_KEYS = ("kvp", "tpa", "tpf", "ep")


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutPadding:
    """Zero rows that make widths divide; they change no result."""

    # Query heads added to each TPA slice, so that its heads divide over KVP.
    query_heads: int
    # Columns added to a dense FFN, so that it divides over the pool.
    dense_size: int
    # Columns added to each routed expert, so that it divides over TPF.
    expert_size: int
    # Columns added to the shared experts, so that they divide over the pool.
    shared_size: int

    def __bool__(self) -> bool:
        return any((self.query_heads, self.dense_size, self.expert_size, self.shared_size))

    def __str__(self) -> str:
        names = {"query_heads": "query heads per TPA slice", "dense_size": "columns of the dense FFN",
                 "expert_size": "columns of each expert", "shared_size": "columns of the shared experts"}  # fmt: skip
        return ", ".join(f"{getattr(self, key)} more {text}" for key, text in names.items() if getattr(self, key))


@dataclass(frozen=True, kw_only=True, slots=True)
class HelixLayout:
    """Widths of the attention grid (KVP × TPA) and of the FFN grid (TPF × EP) over the same ranks.

    Raises:
        LayoutError: a width is not positive, or the two grids have different sizes.
    """

    # Ranks that share one sequence's cache, by tokens.
    kvp: int = 1
    # Ranks that split the heads of attention.
    tpa: int = 1
    # Ranks that split the width of an FFN.
    tpf: int = 1
    # Groups that split the experts.
    ep: int = 1

    def __post_init__(self) -> None:
        for key in _KEYS:
            if getattr(self, key) < 1:
                raise LayoutError(f"{key}={getattr(self, key)} is below 1; every width of a layout is at least 1")
        if self.kvp * self.tpa != self.tpf * self.ep:
            raise LayoutError(
                f"kvp·tpa = {self.kvp}·{self.tpa} = {self.kvp * self.tpa} differs from tpf·ep = {self.tpf}·{self.ep} = "
                f"{self.tpf * self.ep}; both grids cover the same ranks, so choose tpf={self._matching_tpf()}"
            )

    def _matching_tpf(self) -> str:
        ranks = self.kvp * self.tpa
        return f"{ranks // self.ep}" if ranks % self.ep == 0 else f"{ranks},ep=1"

    def __str__(self) -> str:
        return ",".join(f"{key}={getattr(self, key)}" for key in _KEYS)

    @property
    def num_ranks(self) -> int:
        """N, the size of the pool."""
        return self.kvp * self.tpa

    @classmethod
    def of(cls, *, kvp: int | None = None, tpa: int | None = None, tpf: int | None = None, ep: int | None = None,
           num_ranks: int | None = None) -> HelixLayout:  # fmt: skip
        """Fill the widths that are not given: KVP takes what TPA leaves, TPF what EP leaves.

        Raises:
            LayoutError: the widths given do not divide the pool.
        """
        ranks = num_ranks
        if ranks is None:
            ranks = (kvp or 1) * (tpa or 1) if kvp or tpa else (tpf or 1) * (ep or 1)
        kvp, tpa = _fill("kvp", kvp, "tpa", tpa, ranks)
        tpf, ep = _fill("tpf", tpf, "ep", ep, ranks)
        for name, product in (("kvp·tpa", kvp * tpa), ("tpf·ep", tpf * ep)):
            if num_ranks is not None and product != num_ranks and min(kvp, tpa, tpf, ep) > 0:
                raise LayoutError(
                    f"{name} = {product} differs from the {num_ranks} ranks asked for; choose {product} ranks, or "
                    f"widths whose product is {num_ranks}"
                )
        return cls(kvp=kvp, tpa=tpa, tpf=tpf, ep=ep)

    @classmethod
    def parse(cls, text: str, *, num_ranks: int | None = None) -> HelixLayout:
        """Read "kvp=2,tpa=1[,tpf=2][,ep=1]"; widths left out are filled as in :meth:`of`.

        Raises:
            LayoutError: a key or a number is not understood, or the widths do not fit the pool.
        """
        widths: dict[str, int] = {}
        if not text.strip(" ,"):
            raise LayoutError(f"layout {text!r} names no width; write it as kvp=2,tpa=1")
        for part in text.replace(" ", "").strip(",").split(","):
            key, equals, value = part.partition("=")
            if not equals and key not in _KEYS:
                raise LayoutError(f"layout part {part!r} is not understood; write it as key=value, such as kvp=2,tpa=1")
            if key not in _KEYS:
                raise LayoutError(f"layout key {key!r} is unknown; choose {nearest_names(key, _KEYS, most=4)}")
            if not equals or not value.isdecimal():
                raise LayoutError(f"layout part {part!r} has no whole number; write it as {key}=2")
            if key in widths:
                raise LayoutError(f"layout {text!r} gives {key} twice; give it once")
            widths[key] = int(value)
        return cls.of(**widths, num_ranks=num_ranks)

    def validate(self, model: ModelSpec, *, num_ranks: int | None = None, allow_padding: bool = True) -> None:
        """Check the layout against a model and, if given, the size of the pool.

        Args:
            model: what is to be sharded.
            num_ranks: ranks that exist.
            allow_padding: accept widths that need :meth:`padding`, which is exact but wastes a little.

        Raises:
            LayoutError: names the width, the rule and the legal choices.
        """
        if num_ranks is not None and self.num_ranks != num_ranks:
            raise LayoutError(f"layout {self} needs {self.num_ranks} ranks, but there are {num_ranks}")
        _check_attention(self, model)
        _check_ffn(self, model)
        pad = self.padding(model)
        if pad and not allow_padding:
            raise LayoutError(f"layout {self} does not divide {model.name} evenly ({pad}); allow padding")

    def padding(self, model: ModelSpec) -> LayoutPadding:
        """Zero heads and columns that make this layout divide the model; exact, since what they add is zero."""
        n, f = self.num_ranks, model.ffn
        slice_heads = -(-model.attention.num_query_heads // self.tpa)
        return LayoutPadding(
            query_heads=-slice_heads % self.kvp,
            dense_size=-f.dense_size % n if f.num_dense_layers else 0,
            expert_size=-f.expert_size % self.tpf,
            shared_size=-f.shared_size % n,
        )


def _fill(a: str, a_width: int | None, b: str, b_width: int | None, ranks: int) -> tuple[int, int]:
    """Complete a pair of widths whose product is the pool; the first takes what the second leaves."""
    if a_width is not None and b_width is not None:
        return a_width, b_width
    given_name, given = (a, a_width) if a_width is not None else (b, b_width if b_width is not None else 1)
    if given < 1:
        raise LayoutError(f"{given_name}={given} is below 1; every width of a layout is at least 1")
    if ranks % given:
        raise LayoutError(
            f"{given_name}={given} does not divide the {ranks} ranks; choose {given_name} in {_list(_divisors(ranks))}"
        )
    return (given, ranks // given) if a_width is not None else (ranks // given, given)


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _list(values: list[int]) -> str:
    return ", ".join(map(str, values))


def _check_attention(layout: HelixLayout, model: ModelSpec) -> None:
    kv_heads = model.attention.num_kv_heads
    if model.attention.is_mla and layout.tpa != 1:
        raise LayoutError(
            f"tpa={layout.tpa} would copy the latent cache of {model.name}, whose MLA has one latent head; "
            f"choose tpa=1 and kvp={layout.num_ranks}"
        )
    if kv_heads % layout.tpa:
        legal = _list(_divisors(kv_heads))
        rule = "exceeds" if layout.tpa > kv_heads else "does not divide"
        raise LayoutError(f"tpa={layout.tpa} {rule} the {kv_heads} KV heads of {model.name}; choose tpa in {legal}")
    heads = model.attention.num_query_heads // layout.tpa
    if layout.kvp > heads:
        # The exchange deals whole query heads. Rounding may leave the last ranks without one (9 heads over 4 ranks are
        # 3 + 3 + 3 + 0); a width beyond the heads is sure to.
        raise LayoutError(
            f"kvp={layout.kvp} exceeds the {heads} query heads of a TPA slice of {model.name}; choose kvp ≤ {heads}"
        )


def _check_ffn(layout: HelixLayout, model: ModelSpec) -> None:
    f = model.ffn
    if not f.is_moe and layout.ep != 1:
        raise LayoutError(
            f"ep={layout.ep} needs experts, but {model.name} is dense; choose ep=1 and tpf={layout.num_ranks}"
        )
    if f.is_moe and f.num_experts % layout.ep:
        legal = [d for d in _divisors(layout.num_ranks) if f.num_experts % d == 0]
        raise LayoutError(
            f"ep={layout.ep} does not divide the {f.num_experts} experts of {model.name}; choose ep in {_list(legal)}"
        )
    narrowest = f.expert_size if f.is_moe else f.dense_size
    width = layout.tpf if f.is_moe else layout.num_ranks
    if width > narrowest:
        raise LayoutError(f"tpf={width} exceeds the FFN width {narrowest} of {model.name}; choose tpf ≤ {narrowest}")


def legal_layouts(model: ModelSpec, num_ranks: int, *, allow_padding: bool = True) -> list[HelixLayout]:
    """Every layout of `num_ranks` ranks that passes :meth:`HelixLayout.validate`, widest KVP last."""
    found = []
    for tpa in _divisors(num_ranks)[::-1]:
        for ep in _divisors(num_ranks):
            layout = HelixLayout(kvp=num_ranks // tpa, tpa=tpa, tpf=num_ranks // ep, ep=ep)
            try:
                layout.validate(model, allow_padding=allow_padding)
            except LayoutError:
                continue
            found.append(layout)
    return found
