"""Pair constants and operators of two reports of a model by what they are, and not by the number of their operator.

A symbol contains the number of the operator that uses it. If a build fuses two operators or a layer is added, every
later number changes, and a comparison by symbol would list the whole model as removed and added again.

Data: a report's JSON has pieces (a symbol with its kind, size in bytes, and the memories that it takes) and operators.
A piece of a constant may have ``tensor``, its name in the model file, ``source``, the hash of the tensor's data there,
and ``content``, the hash of its bytes in the image. A ``Unit`` has the pieces of one owner that are made of one tensor,
as a compiler may divide or copy it; without a tensor, the pieces of one name. A ``UnitPair`` is the same unit in both
reports, or one that only one of them has.

Rules

  1. Evidence is used from the strongest to the weakest: the tensor, the hash of its source, name and content, size and
     content, at last the name. Each pass sees only what the passes before it have left, so that a weak match never
     takes the partner of a strong one.
  2. Kind and memories must be equal in every pass. A constant that moved to RAM is another cost, not the same unit.
  3. Unknown is not equal to unknown: a unit without a hash takes no part in a pass by hash.
  4. The name alone pairs units without a tensor. It pairs the others only if one of the reports names no tensor at all,
     because an older mlfbuild or another compiler made it.
  5. Among equals, the first is paired with the first, so that the same reports give the same pairs.
  6. Operators are paired by name, the n-th with the n-th. Those left are grouped if they share a part of a fused name
     (``conv + relu``), and a group is compared as one: cycles of a fused operator cannot be divided.

For example, version 1 has the operators ``conv`` and ``relu`` and the symbol ``conv_0_weights``; version 2 has one
operator ``conv + relu`` and the symbol ``conv_relu_0_weights``. Both symbols have the tensor ``w``, so they are one
pair. Its content is equal and its name is not, so it is ``repacked``: the same part of the model under another symbol.
``paired_operators`` returns one group: the fused operator on one side, ``conv`` and ``relu`` on the other.

Not here: what counts as a difference and how it is shown (``compare``, ``report/html``), and pairs of different models.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_JOINED = " + "
_Json = Mapping[str, Any]


@dataclass
class Unit:
    """The pieces of an owner that are made of one tensor; or those with one name, if no tensor is known."""

    kind: str
    flash: bool
    ram: bool
    tensor: str
    pieces: list[_Json] = field(default_factory=list)

    @property
    # A unit may have several pieces, of which a reader looks for the largest one.
    def name(self) -> str:
        """The name of the largest piece."""
        return str(max(self.pieces, key=lambda piece: piece["size"])["name"])

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(piece["size"] for piece in self.pieces)

    @property
    def where(self) -> tuple[str, bool, bool]:
        """Kind and memories, which the other report's unit must also have."""
        return self.kind, self.flash, self.ram

    def hashes(self, key: str) -> tuple[str, ...]:
        """Return the hashes ``content`` or ``source`` of all pieces; empty if one is unknown."""
        # Sorted, because the order of the pieces is that of the linker.
        found = sorted(piece.get(key, "") for piece in self.pieces)
        return tuple(found) if all(found) else ()

    def by_name(self) -> Counter[str]:
        """Return the bytes of the pieces by name."""
        found: Counter[str] = Counter()
        for piece in self.pieces:
            found[piece["name"]] += piece["size"]
        return found

    @property
    def symbols(self) -> list[str]:
        """The names of the pieces."""
        return sorted(piece["name"] for piece in self.pieces)


@dataclass(frozen=True)
class UnitPair:
    """The same unit in both reports, or a unit that only one of them has."""

    now: Unit | None
    before: Unit | None

    @property
    def repacked(self) -> bool:
        """Whether the part of the model is unchanged, but has another symbol or another layout."""
        if self.now is None or self.before is None:
            return False
        same = {key: _equal(self.now.hashes(key), self.before.hashes(key)) for key in ("content", "source")}
        moved = self.now.symbols != self.before.symbols or not same["content"]
        return moved and (same["source"] or same["content"])


def _equal(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    # As sets: a tensor that a build now stores twice has the same content.
    return bool(one) and set(one) == set(other)


def paired_units(now: _Json | None, before: _Json | None) -> list[UnitPair]:
    """Return the units of an owner in two reports in pairs, in the order of ``now``, then those of ``before`` only."""
    new, old = _units(now), _units(before)
    # From the strongest evidence to the weakest; each pass only pairs what those before have left.
    keys: tuple[Callable[[Unit], Hashable], ...] = (
        lambda unit: (unit.where, unit.tensor) if unit.tensor else None,
        lambda unit: (unit.where, found) if (found := unit.hashes("source")) else None,
        lambda unit: (unit.where, unit.name, found) if (found := unit.hashes("content")) else None,
        lambda unit: (unit.where, unit.size, found) if (found := unit.hashes("content")) else None,
    )
    # By identity: units can change, and two of them may be equal.
    others: dict[int, Unit] = {}
    taken: set[int] = set()
    for key in keys:
        _pair(new, old, key, others, taken)
    without = [unit for unit in (new, old) if any(each.tensor for each in unit)]
    if len(without) < 2:  # a report of an older mlfbuild, or a model of another compiler, names no tensors
        _pair(new, old, lambda unit: (unit.where, unit.name), others, taken)
    _pair(new, old, lambda unit: None if unit.tensor else (unit.where, unit.name), others, taken)
    pairs = [UnitPair(unit, others.get(id(unit))) for unit in new]
    return pairs + [UnitPair(None, unit) for unit in old if id(unit) not in taken]


def _units(owner: _Json | None) -> list[Unit]:
    found: dict[Hashable, Unit] = {}
    for piece in owner["pieces"] if owner else ():
        where, tensor = (piece["kind"], piece["flash"], piece["ram"]), piece.get("tensor", "")
        # Tensors and plain names are kept apart, because a symbol may have the name of a tensor.
        key = (where, bool(tensor), tensor or piece["name"])
        found.setdefault(key, Unit(*where, tensor)).pieces.append(piece)
    return list(found.values())


def _pair(
    new: Sequence[Unit],
    old: Sequence[Unit],
    key: Callable[[Unit], Hashable],
    others: dict[int, Unit],
    taken: set[int],
) -> None:
    """Add pairs of units that have no partner yet and have the same ``key``, which is ``None`` if unknown."""
    waiting: dict[Hashable, list[Unit]] = defaultdict(list)
    for unit in old:
        if id(unit) not in taken:
            waiting[key(unit)].append(unit)
    # Unknown is not equal to unknown.
    waiting.pop(None, None)
    for unit in new:
        if id(unit) not in others and (found := waiting.get(key(unit))):
            # The first with the first: reports have a stable order, so the pairs are reproducible.
            others[id(unit)] = found.pop(0)
            taken.add(id(others[id(unit)]))


def earlier_sizes(pairs: Iterable[UnitPair]) -> Iterator[tuple[_Json, int]]:
    """Yield a present piece of each name with the earlier size of that name.

    If a tensor has other pieces than before, its growth counts for the largest of them.
    """
    for now, before in ((pair.now, pair.before) for pair in pairs if pair.now is not None):
        old = before.by_name() if before else Counter[str]()
        # Pieces without their old names cannot be compared one by one, only their sum.
        if before is not None and now.symbols != before.symbols:
            old = now.by_name()
            old[now.name] = max(old[now.name] + before.size - now.size, 0)
        yield from ((piece, old[name]) for name, piece in {piece["name"]: piece for piece in now.pieces}.items())


# Operators -----------------------------------------------------------------------------------------------------------

OperatorGroup = tuple[list[_Json], list[_Json]]
"""Operators of the new and of the old report that compute the same."""


def paired_operators(now: Sequence[_Json], before: Sequence[_Json]) -> list[OperatorGroup]:
    """Return the operators of a network in two reports in groups, in the order of ``now``, then of ``before``.

    Those with equal names are paired, the n-th with the n-th. Of the others, those that share a name that is joined in
    the name of a fused operator are in one group.
    """
    waiting: dict[str, list[_Json]] = defaultdict(list)
    for operator in before:
        waiting[operator["name"]].append(operator)
    groups: list[OperatorGroup] = []
    of_part: dict[str, OperatorGroup] = {}
    for operator in now:
        if found := waiting[operator["name"]]:
            groups.append(([operator], [found.pop(0)]))
        else:
            _joined(groups, of_part, str(operator["name"]).split(_JOINED))[0].append(operator)
    # Operators that only the old report has; they may join a group of the new one.
    for operator in (each for left in waiting.values() for each in left):
        _joined(groups, of_part, str(operator["name"]).split(_JOINED))[1].append(operator)
    return [group for group in groups if group[0] or group[1]]


def _joined(groups: list[OperatorGroup], of_part: dict[str, OperatorGroup], parts: Sequence[str]) -> OperatorGroup:
    """Return the group of operators with any of ``parts``: a new one, or the union of those that there are."""
    # A build may fuse a+b and another b+c: then all three are one group.
    known = [of_part[part] for part in parts if part in of_part]
    if not known:
        known = [([], [])]
        groups.append(known[0])
    group = known[0]
    for other in (each for each in known[1:] if each is not group):
        for side in (0, 1):
            group[side].extend(other[side])
            # The emptied group stays in the list until the end, where it is left out.
            other[side].clear()
        of_part.update({part: group for part, each in of_part.items() if each is other})
    of_part.update(dict.fromkeys(parts, group))
    return group
