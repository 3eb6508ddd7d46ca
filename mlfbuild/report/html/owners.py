"""Sizes of an image by owner, for its bars, its table and its treemap."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.document.compare import Change
from mlfbuild.report.document.pairing import earlier_sizes, paired_units
from mlfbuild.report.html import numbers
from mlfbuild.report.operators.cycles import CYCLE_KINDS
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS

STACK = "stack"
"""The owner of the stack section, and its kind on the page."""
KINDS = tuple(dict.fromkeys((*FLASH_KINDS, *RAM_KINDS, STACK)))
_SMALL = 2500
"""Symbols smaller than the image divided by this are shown together by kind."""
# Rows of the table of symbols; an image may have tens of thousands.
_LISTED = 200


@dataclass(frozen=True)
class BarSegment:
    """A segment of a bar: the bytes or cycles of a kind."""

    kind: str
    x: str
    width: str
    size: int
    name: str
    """The name of the kind in the legend."""


@dataclass(frozen=True)
class Bar:
    """Bytes, instructions or cycles, with their limit."""

    title: str
    unit: str
    taken: int
    limit: int | None
    parts: tuple[BarSegment, ...]
    change: Change | None
    show: Callable[[int], str] = numbers.count
    """Formats its numbers."""

    @property
    def over(self) -> bool:
        """Whether it exceeds its budget."""
        return self.limit is not None and self.taken > self.limit

    @property
    def limit_at(self) -> str:
        """Position of the budget on the bar."""
        # The bar is as long as the larger of the two, so the mark stays inside.
        return numbers.per_cent(self.limit or 0, max(self.taken, self.limit or 0))


@dataclass(frozen=True)
class ListedPiece:
    """A function, a constant or a variable."""

    name: str
    owner: str
    kind: str
    size: int
    memory: str


def kind_of(piece: Mapping[str, Any], owner: str) -> str:
    """Return the kind of a piece as the page shows it."""
    return STACK if owner == STACK else str(piece["kind"])


def by_kind(owners: Iterable[Mapping[str, Any]], memory: str) -> dict[str, int]:
    """Return the bytes of ``memory``, which is ``flash`` or ``ram``, by kind."""
    found: Counter[str] = Counter()
    for owner in owners:
        for piece in owner["pieces"]:
            if piece[memory]:
                found[kind_of(piece, owner["name"])] += piece["size"]
    # In the order of `KINDS`, so that all bars have their colours in the same order.
    return {kind: found[kind] for kind in KINDS if found[kind]}


def bar(title: str, unit: str, kinds: Mapping[str, int], limit: int | None, change: Change | None = None) -> Bar:
    """Return a bar of numbers by kind; it is as long as the budget if there is one and it is kept.

    ``limit`` is the budget in the same unit as the numbers. Segments are in the order of ``kinds``.
    """
    taken = sum(kinds.values())
    # With a budget that is kept, the free part of the bar is what is left of it.
    whole = max(taken, limit or 0)
    parts, start = [], 0
    for kind, size in kinds.items():
        place = numbers.per_cent(start, whole), numbers.per_cent(size, whole)
        parts.append(BarSegment(kind, *place, size, CYCLE_KINDS.get(kind, kind)))
        start += size
    return Bar(title, unit, taken, limit, tuple(parts), change)


def largest(owners: Iterable[Mapping[str, Any]]) -> tuple[tuple[ListedPiece, ...], int]:
    """Return the largest symbols of all ``owners``, and the number of the others.

    At most ``_LISTED`` are returned, the largest first.
    """
    pieces = [
        ListedPiece(piece["name"], owner["name"], kind_of(piece, owner["name"]), piece["size"], _memory(piece))
        for owner in owners
        for piece in owner["pieces"]
    ]
    # Owner and name decide among equal sizes, so that the same report makes the same page.
    pieces.sort(key=lambda piece: (-piece.size, piece.owner, piece.name))
    return tuple(pieces[:_LISTED]), len(pieces) - len(pieces[:_LISTED])


def _memory(piece: Mapping[str, Any]) -> str:
    return "flash and RAM" if piece["flash"] and piece["ram"] else "flash" if piece["flash"] else "RAM"


def tree(image: Mapping[str, Any], against: Mapping[str, Any] | None, memory: str) -> dict[str, Any]:
    """Return a treemap: owners, operators of models, then symbols, each with its size in ``against``.

    A leaf is ``{"name", "label", "kind", "size", "old"}``, others ``{"name", "size", "old", "children"}``. ``label`` is
    omitted if the name does not begin as all symbols of its model, ``old`` without ``against``.
    """
    whole = image[memory]
    children = []
    for owner in (*image["models"], *image["others"]):
        former = (*against["models"], *against["others"]) if against else ()
        before = next((each for each in former if each["name"] == owner["name"]), None)
        # None without another report; an owner that is new has a size of 0 for each piece.
        earlier = () if against is None else earlier_sizes(paired_units(owner, before))
        old = None if against is None else _sizes(earlier, owner["name"], memory)
        prefixes = _prefixes(owner) if owner in image["models"] else ()
        groups = [
            _labelled(_group(name, pieces, old, owner["name"], whole), prefixes)
            for name, pieces in _groups(owner, memory)
        ]
        if groups:
            # A frame around a single group would only take space from its symbols.
            node = groups[0] if len(groups) == 1 else {"children": groups}
            size = sum(group["size"] for group in groups)
            known = {} if old is None else {"old": 0 if before is None else before[memory]}
            children.append({**node, "name": owner["name"], "size": size, **known})
    return {"name": "image", "size": sum(child["size"] for child in children), "children": children}


def _prefixes(model: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the beginnings of the symbols of a model, which say nothing in a frame with the model's name."""
    modules = dict.fromkeys([model["name"], *(network["module"] for network in model.get("networks", ()))])
    return (*(f"{prefix}_{name}_" for name in modules for prefix in ("tvmgen", "mlf")), "mlf_")


def _labelled(group: dict[str, Any], prefixes: Sequence[str]) -> dict[str, Any]:
    """Give leaves a label without the beginning that all of a model's symbols have."""
    for leaf in group["children"]:
        found = next((prefix for prefix in prefixes if leaf["name"].startswith(prefix)), "")
        # A symbol that is nothing but the prefix would get an empty label.
        if found and leaf["name"] != found:
            # All symbols of a model have the same prefix, which would leave little room for the rest.
            leaf["label"] = leaf["name"].removeprefix(found)
    return group


_Key = tuple[str, str]


def _sizes(pieces: Iterable[tuple[Mapping[str, Any], int]], owner: str, memory: str) -> Counter[_Key]:
    """Return the sizes of an owner's ``pieces``, each with its size, by name and kind."""
    found: Counter[_Key] = Counter()
    for piece, size in pieces:
        if piece[memory]:
            found[piece["name"], kind_of(piece, owner)] += size
    return found


def _groups(owner: Mapping[str, Any], memory: str) -> Iterator[tuple[str, Counter[_Key]]]:
    """Yield the symbols of a model by operator, those of other owners together."""
    titles = operator_of_piece(owner.get("networks", ()))
    groups: dict[str, Counter[_Key]] = defaultdict(Counter)
    pieces = ((piece, piece["size"]) for piece in owner["pieces"])
    for (name, kind), size in _sizes(pieces, owner["name"], memory).items():
        groups[titles.get(name, "no operator" if titles else "")][name, kind] += size
    order = {title: index for index, title in enumerate(dict.fromkeys(titles.values()))}
    # Operators in the order of execution, and what belongs to none of them last.
    yield from sorted(groups.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))


def operator_of_piece(networks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the title of the operator of each symbol of a model.

    A symbol that several operators use has the title of the last one.
    """
    return {
        piece: f"{index} {operator['operator']}"
        for network in networks
        for index, operator in enumerate(network["operators"])
        for piece in operator["pieces"]
    }


def _group(name: str, pieces: Counter[_Key], old: Mapping[_Key, int] | None, owner: str, whole: int) -> dict[str, Any]:
    """Return a group of symbols as a node; those too small to be visible are one leaf for each kind."""
    # Names and kinds decide between equal sizes, so that the same report makes the same page.
    ordered = sorted(pieces.items(), key=lambda item: (-item[1], item[0]))
    leaves, small = [], defaultdict(list)
    for key, size in ordered:
        # Of the whole image, because areas of all owners have one scale.
        if size * _SMALL < whole and len(ordered) > 1:
            small[key[1]].append((key, size))
        else:
            leaves.append(_leaf(key[0], key[1], [(key, size)], old))
    leaves += [_leaf(f"{len(found)} small pieces", kind, found, old) for kind, found in sorted(small.items())]
    return {"name": name or owner, "size": sum(pieces.values()), "children": leaves}


def _leaf(name: str, kind: str, found: Sequence[tuple[_Key, int]], old: Mapping[_Key, int] | None) -> dict[str, Any]:
    known = {} if old is None else {"old": sum(old.get(key, 0) for key, _ in found)}
    return {"name": name, "kind": kind, "size": sum(size for _, size in found), **known}
