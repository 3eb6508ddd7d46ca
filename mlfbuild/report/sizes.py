"""Whose the bytes of an image are: each model's, by what they are for, and everybody else's.

The map tells the object of each byte, the symbol table what lies inside. Every byte is counted once: the sums are those
of the image's sections.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.core import InputFileError
from mlfbuild.report.image import Image, Section, Symbol
from mlfbuild.report.linker_map import FILL, InputSection

CODE, WEIGHTS, TABLES = "code", "weights", "tables"
ARENA, STATE, DATA = "arena", "state", "data"
FLASH_KINDS = (CODE, WEIGHTS, TABLES)
RAM_KINDS = (ARENA, STATE, DATA)

_TABLE = re.compile(
    r"^mlf_(tensors|arguments|calls|shape_\w+)$|_(model_id|table|reciprocals|exponentials|order|padding|rows|columns)$"
    r"|\.\d+$"
)
"""Names of constants that are no weights: of the executor, of operators, and of those inside a function."""
_LIBRARY = re.compile(r"libmlf_(\w+?)(_blobs)?\.a")
_DEPENDENCY = re.compile(r"libmlf_dep_(.+)\.a")
"""What models need beside their archives: an owner of its own, as several of them share it."""
_BOARD = re.compile(r"(^|[/\\])mlf_board\.dir[/\\]")
_C_LIBRARY = frozenset({
    "c", "c_nano", "g", "g_nano", "m", "gcc", "nosys", "rdimon", "rdimon_nano", "stdc++", "stdc++_nano", "supc++",
    "supc++_nano",
})  # fmt: skip
"""Libraries of the toolchain: newlib's, picolibc's, GCC's."""
_OPTIMISED = re.compile(r"\.(ltrans\d+\.ltrans|lto)\.o")
"""Ends of the names of objects that GCC makes of many others when it links (gcc, lto-wrapper.cc)."""
_PART = re.compile(r"\.(constprop|isra|part|cold)\.?\d*")
"""What GCC puts behind the name of a function that it made another version of."""


@dataclass(frozen=True)
class Piece:
    """A function, a constant or a variable of an owner."""

    name: str
    kind: str
    """Of ``FLASH_KINDS`` or ``RAM_KINDS``."""
    size: int
    flash: bool
    ram: bool
    """Initialised variables take both."""
    module: str = ""
    """The module whose library it comes from; empty for what is no model's."""
    address: int | None = None
    """Of a function; ``None`` where it is none, or has no name."""


@dataclass(frozen=True)
class Owner:
    """Who has a part of the image: a model, or one of the others."""

    name: str
    pieces: tuple[Piece, ...] = field(repr=False)

    @property
    def flash(self) -> int:
        """Bytes in flash."""
        return sum(piece.size for piece in self.pieces if piece.flash)

    @property
    def ram(self) -> int:
        """Bytes in RAM."""
        return sum(piece.size for piece in self.pieces if piece.ram)

    def of_kind(self, kind: str) -> int:
        """Return the bytes of one kind, where they are first."""
        return sum(piece.size for piece in self.pieces if piece.kind == kind)

    def largest(self, count: int, *, ram: bool = False) -> list[Piece]:
        """Return the largest pieces in flash, or in RAM, those of equal names as one."""
        sizes: Counter[tuple[str, str]] = Counter()
        for piece in self.pieces:
            if piece.ram if ram else piece.flash:
                sizes[piece.name, piece.kind] += piece.size
        ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:count]
        return [Piece(name, kind, size, flash=not ram, ram=ram) for (name, kind), size in ordered]


@dataclass(frozen=True)
class Sizes:
    """An image by owners: the models in the order asked for, then the others by their flash."""

    models: tuple[Owner, ...]
    others: tuple[Owner, ...]


def sizes_of(image: Image, placed: Sequence[InputSection], models: Mapping[str, str], where: Path) -> Sizes:
    """Return whose the bytes of ``image`` are, by its map ``placed``, read from ``where``.

    ``models`` has what a module's model is called, by the name of the module. Raises ``InputFileError`` where the map
    is that of another image, and where link-time optimisation made one object of many.
    """
    sections = {section.name: section for section in image.sections}
    _check(sections, placed, where)
    _check_origins(sections, placed, where)
    pieces: dict[str, list[Piece]] = defaultdict(list)
    inside = _Symbols(image.symbols)
    for part in placed:
        if part.output in sections:
            owner, module = _owner_of(part, models)
            pieces[owner] += _pieces(part, sections[part.output], inside, module)
    names = list(dict.fromkeys(models.values()))
    others = [Owner(name, tuple(found)) for name, found in pieces.items() if name not in names]
    return Sizes(
        tuple(Owner(name, tuple(pieces.get(name, ()))) for name in names),
        tuple(sorted(others, key=lambda owner: (-owner.flash - owner.ram, owner.name))),
    )


def models_in(placed: Iterable[InputSection]) -> dict[str, str]:
    """Return the modules of which the image has a library, ``libmlf_<module>.a``, each by its own name, sorted."""
    names = {module_of(part) for part in placed if not _DEPENDENCY.fullmatch(part.archive)} - {""}
    return {name: name for name in sorted(names)}


def module_of(part: InputSection) -> str:
    """Return the module whose library a part of an image is from; empty for all else."""
    library = _LIBRARY.fullmatch(part.archive)
    return "" if library is None else library[1]


def _check(sections: Mapping[str, Section], placed: Iterable[InputSection], where: Path) -> None:
    found: Counter[str] = Counter()
    for part in placed:
        found[part.output] += part.size
    for name, section in sections.items():
        if found[name] != section.size:
            raise InputFileError(
                f"{where}: is not the map of this image: {name} has {found[name]:,} bytes there and {section.size:,} "
                "in the image; link it again"
            )


def _check_origins(sections: Mapping[str, Section], placed: Iterable[InputSection], where: Path) -> None:
    sizes = [part.size for part in placed if part.output in sections and _OPTIMISED.search(part.member)]
    if sizes:
        raise InputFileError(
            f"{where}: does not tell whose {sum(sizes):,} bytes are, as link-time optimisation put objects together; "
            "link the image without -flto"
        )


def _owner_of(part: InputSection, models: Mapping[str, str]) -> tuple[str, str]:
    """Return who has a part of the image, and the module that it is of; empty where it is no model's."""
    module = module_of(part)
    if module in models:
        return models[module], module
    if part.name == FILL or not part.source:
        return ("stack" if "stack" in part.output else "alignment"), ""
    dependency = _DEPENDENCY.fullmatch(part.archive)
    if dependency is not None:
        return dependency[1], ""
    if part.archive:
        name = part.archive.removesuffix(".a").removeprefix("lib")
        return ("C library" if name in _C_LIBRARY else name), ""
    return ("board support" if _BOARD.search(part.source) else "firmware"), ""


def plain_name(symbol: str) -> str:
    """Return the name that a function or an object has in its source."""
    return _PART.sub("", symbol)


class _Symbols:
    """The symbols of an image by address."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols
        self._addresses = [symbol.address for symbol in symbols]

    def within(self, start: int, end: int) -> Iterator[Symbol]:
        """Yield the symbols from ``start`` to ``end``, of those that share bytes the first."""
        at = start
        for symbol in self._symbols[bisect_left(self._addresses, start) :]:
            if symbol.address >= end:
                return
            if symbol.address >= at and symbol.address + symbol.size <= end:
                yield symbol
                at = symbol.address + symbol.size


def _pieces(part: InputSection, section: Section, symbols: _Symbols, module: str) -> Iterator[Piece]:
    left, flash, ram = part.size, section.flash > 0, section.ram > 0
    for symbol in symbols.within(part.address, part.address + part.size):
        name = plain_name(symbol.name)
        kind = _kind(name, section, model=bool(module))
        yield Piece(name, kind, symbol.size, flash, ram, module, symbol.address if symbol.function else None)
        left -= symbol.size
    if left:
        rest = CODE if section.code else TABLES if section.flash and not section.copied else DATA
        yield Piece(part.member or part.name, rest, left, flash, ram, module)


def _kind(name: str, section: Section, *, model: bool) -> str:
    if section.code:
        return CODE
    if section.ram == 0:
        return TABLES if not model or _TABLE.search(name) else WEIGHTS
    if name.endswith("_workspace") or "workspace" in name:
        return ARENA
    return STATE if name.endswith("_state") else DATA
