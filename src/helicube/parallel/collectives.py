"""The collectives that Helix needs, behind one interface, and the pool of one rank.

`collectives_threads` runs N ranks inside one process, `collectives_torch` over torch.distributed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

__all__ = ["Collectives", "Done", "Group", "Pending", "SoloCollectives", "Traffic"]

Group = tuple[int, ...]


class Pending(Protocol):
    """A collective under way."""

    def wait(self) -> Tensor:
        """The result; call it once."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """A collective that is finished."""

    result: Tensor

    def wait(self) -> Tensor:
        return self.result


@dataclass(slots=True)
class Traffic:
    """What one rank has sent, in bytes, per kind of collective.

    All-to-all and all-gather: bytes for the other ranks. All-reduce: 2·(n − 1)/n of the tensor, what a ring sends, the
    least that any algorithm can.
    """

    bytes_sent: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Bytes of all kinds."""
        return sum(self.bytes_sent.values())

    def add(self, kind: str, num_bytes: int) -> None:
        self.bytes_sent[kind] += num_bytes
        self.calls[kind] += 1

    def reset(self) -> None:
        self.bytes_sent.clear()
        self.calls.clear()


class Collectives(Protocol):
    """What one rank may ask of its pool. All ranks of a group call the same collective in the same order.

    Raises:
        PoolError: (any method) a rank died or did not answer in time.
    """

    rank: int
    size: int
    traffic: Traffic

    def all_reduce(self, x: Tensor, group: Group) -> Tensor:
        """Sum over the group, the same bits on every rank; may overwrite x."""
        ...

    def all_gather(self, x: Tensor, group: Group) -> Tensor:
        """(n, …): the x of each rank of the group, in order."""
        ...

    def all_to_all(self, x: Tensor, group: Group) -> Pending:
        """Start sending x[i], of (n, …), to rank i of the group; the result (n, …) holds what each rank sent here."""
        ...


class SoloCollectives:
    """A pool of one rank: nothing to send."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.traffic = Traffic()

    def all_reduce(self, x: Tensor, group: Group) -> Tensor:  # noqa: ARG002 - the interface
        return x

    def all_gather(self, x: Tensor, group: Group) -> Tensor:  # noqa: ARG002 - the interface
        return x[None]

    def all_to_all(self, x: Tensor, group: Group) -> Pending:  # noqa: ARG002 - the interface
        return Done(x)
