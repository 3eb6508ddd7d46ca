"""Flash and RAM of an image by owner: each model, by kind of content, and every other library or part.

**What.** A firmware engineer asks which bytes of the image each model takes. The ELF file alone does not say: the
linker merges the sections of all objects. The linker map does: it lists each *input section* with its address, its size
and the object file, or the member of a library, that it is from. So the owner follows from the map, the names and kinds
of what is inside from the symbol table, and the size of the whole from the ELF file, which checks the other two.

**Data.** In: the sections and symbols of the image, the input sections of the map, and the model's name for each
module. Out: ``Sizes``, which has an ``Owner`` for each model and every other part, and in each the ``SizedSymbol`` s:
bytes with a name, a kind, and whether they are in flash, in RAM or, as initialised variables, in both.

**Rules.** An input section belongs to the first of these that fits:

1. the model whose library ``libmlf_<module>.a`` it is from; also ``libmlf_<module>_blobs.a`` with graph and parameters,
   ``libmlf_<module>.<device>.a``, and objects ``<module>_lib0.o`` of builds that link without libraries (RT-Thread);
2. ``stack``, ``heap`` or ``alignment``, if no file made it: space that a linker script reserves, and padding;
3. the required library ``libmlf_dep_<name>.a``: separate, because several models share it;
4. ``link-time optimised code``, whose file is gone: models in it are ``mixed``, their sizes unknown, not too small;
5. ``C library``, if the archive is one of the toolchain, or else the library's own name;
6. ``board support`` for mlfbuild's files of a board, and ``firmware`` for all other objects.

The kind of content follows from the symbol and the *input* section, because linker scripts merge output sections: many
put constants into ``.text``. In a model, a constant is a weight unless its name is that of a table (``_TABLE``), and a
variable is the arena if its name has ``workspace``, or state. In other owners constants are tables, and variables data.

**Invariant.** Every byte is counted once: of symbols that overlap (aliases) only the first counts, bytes without a
symbol count under the name of their object, and for each output section the sum equals the size in the ELF file.
If it does not, the map is that of another link, and the image is refused (``map-of-another-image``).

**Example.** ``libmlf_kws.a(kws_lib0.o)`` contributes ``.rodata.tvmgen_kws_weights`` with 9,216 bytes at 0x08004000:
the owner is ``kws``, the symbol ``tvmgen_kws_weights`` in it has kind ``weights``, flash yes, RAM no. If the symbol has
9,210 bytes, the other 6 are a second piece named ``kws_lib0.o``, of kind ``tables``.

**What it does not do.** Stacks and heaps are reserved space here; how deep a stack becomes is computed in
``report.stack``. It reads no DWARF, which release builds omit, and guesses no owner: without a map there is no report.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlfbuild.core import InputFileError, read_bytes
from mlfbuild.library import symbol_prefix
from mlfbuild.report.sizes.image import Image, Section, Symbol
from mlfbuild.report.sizes.linker_map import FILL, InputSection, LinkerMap

CODE, WEIGHTS, TABLES = "code", "weights", "tables"
ARENA, STATE, DATA = "arena", "state", "data"
FLASH_KINDS = (CODE, WEIGHTS, TABLES)
RAM_KINDS = (ARENA, STATE, DATA)

_TABLE = re.compile(
    r"^mlf_(tensors|arguments|calls|shape_\w+)$|_(model_id|table|reciprocals|exponentials|order|padding|rows|columns)$"
    r"|\.\d+$"
)
"""Names of constants that are not weights: of the executor, of operators, and local ones of functions."""
_CONTENTS = (
    (re.compile(r"\.(text|init|fini|plt|glue_7t?|vfp11_veneer|v4_bx)(\.|$)"), CODE),
    (re.compile(r"\.(rodata|constdata|eh_frame|ARM\.(exidx|extab)|(preinit|init|fini)_array)(\.|$)"), TABLES),
    (re.compile(r"\.(data|bss|sdata|sbss|tdata|tbss|noinit)(\.|$)|COMMON$"), DATA),
)
"""Names of sections of object files whose content is known."""
_LIBRARY = re.compile(r"libmlf_(\w+?)(_blobs|\.[\w.-]+)?\.a")
"""Libraries of a module: its code, its data, and its code for another device."""
_OBJECT = re.compile(r"(\w+?)_(lib\d+|entry|blobs)(\.(c|cc|cpp|S))?\.(o|obj)")
"""Object files of a module in builds that link them without a static library, such as those of RT-Thread."""
_DEPENDENCY = re.compile(r"libmlf_dep_(.+)\.a")
"""Libraries that models require: separate owners, because several models share them."""
_BOARD = re.compile(r"(^|[/\\])mlf_board\.dir[/\\]")
_C_LIBRARY = frozenset({
    "c", "c_nano", "g", "g_nano", "m", "gcc", "nosys", "rdimon", "rdimon_nano", "stdc++", "stdc++_nano", "supc++",
    "supc++_nano",
})  # fmt: skip
"""Libraries of the toolchain: newlib, picolibc and GCC."""
_LTO_SECTION = b".gnu.lto_"
"""Begins the names of the sections in which GCC writes what link-time optimisation reads."""
_CLONE = re.compile(r"\.(constprop|isra|part|cold)\.?\d*")
"""Suffixes that GCC adds to the names of clones of functions."""


@dataclass(frozen=True)
class SizedSymbol:
    """A function, a constant or a variable of an owner."""

    name: str
    kind: str
    """One of ``FLASH_KINDS`` or ``RAM_KINDS``."""
    size: int
    flash: bool
    ram: bool
    """Initialised variables take flash and RAM."""
    module: str = ""
    """The module whose library it comes from; empty if it is not of a model."""
    address: int | None = None
    """Of a function; ``None`` for data and for bytes without a symbol."""
    content: str = ""
    """A hash of the bytes of a model's constant; empty for all else."""
    tensor: str = ""
    """The tensor or operator of the model that a constant or a function is made of; empty if unknown."""
    source: str = ""
    """A hash of that part of the model, regardless of the layout of the constant."""


@dataclass(frozen=True)
class Owner:
    """A model, a library or another part that takes bytes of the image."""

    name: str
    pieces: tuple[SizedSymbol, ...] = field(repr=False)

    @property
    def flash(self) -> int:
        """Bytes in flash."""
        return sum(piece.size for piece in self.pieces if piece.flash)

    @property
    def ram(self) -> int:
        """Bytes in RAM."""
        return sum(piece.size for piece in self.pieces if piece.ram)

    def of_kind(self, kind: str) -> int:
        """Return the bytes of one of ``FLASH_KINDS`` or ``RAM_KINDS``."""
        return sum(piece.size for piece in self.pieces if piece.kind == kind)

    def largest(self, count: int, *, ram: bool = False) -> list[SizedSymbol]:
        """Return the largest symbols in flash, or in RAM; those with the same name and kind are added up."""
        sizes: Counter[tuple[str, str]] = Counter()
        for piece in self.pieces:
            if piece.ram if ram else piece.flash:
                sizes[piece.name, piece.kind] += piece.size
        # Names decide between equal sizes, so that equal images give equal reports.
        ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:count]
        return [SizedSymbol(name, kind, size, flash=not ram, ram=ram) for (name, kind), size in ordered]


@dataclass(frozen=True)
class Sizes:
    """An image by owner: models in the requested order, other owners by decreasing size."""

    models: tuple[Owner, ...]
    others: tuple[Owner, ...]
    mixed: tuple[str, ...] = ()
    """The models whose code link-time optimisation mixed with other code: their bytes are unknown."""


def sizes_of(image: Image, linked: LinkerMap, models: Mapping[str, str]) -> Sizes:
    """Return the sizes of ``image``, whose linker map is ``linked``, by owner.

    ``models`` has the name of the model by the name of each of its modules. Raises ``InputFileError`` if the map is
    that of another image.
    """
    sections = {section.name: section for section in image.sections}
    _check(sections, linked)
    pieces: dict[str, list[SizedSymbol]] = defaultdict(list)
    inside = _Symbols(image.symbols)
    # Sections that are only in the file, such as debug information, are in the map but take no memory.
    for part in linked.sections:
        if part.output in sections:
            owner, module = _owner_of(part, models)
            pieces[owner] += _pieces(part, sections[part.output], inside, module)
    # In the order of the request, and each name once although a model may have several modules.
    names = list(dict.fromkeys(models.values()))
    others = [Owner(name, tuple(found)) for name, found in pieces.items() if name not in names]
    return Sizes(
        # A model without bytes also gets an owner, so that reports list all that were requested.
        tuple(Owner(name, tuple(pieces.get(name, ()))) for name in names),
        tuple(sorted(others, key=lambda owner: (-owner.flash - owner.ram, owner.name))),
        tuple(dict.fromkeys(_mixed(linked, models))),
    )


def models_in(image: Image, linked: LinkerMap) -> dict[str, str]:
    """Return the modules whose code is in the image, sorted, each under its own name.

    These are the libraries ``libmlf_<module>.a``, and the objects ``<module>_lib0.o`` of a module with a run function.
    Link-time optimisation leaves neither files nor, often, a run function, but constants and operators of the module.
    """
    functions = {symbol.name for symbol in image.symbols if symbol.function}
    names = {
        name
        for part in linked.sections
        # The name of a required library, libmlf_dep_<name>.a, also fits that of a module's.
        if not _DEPENDENCY.fullmatch(part.archive)
        and (name := module_of(part))
        # Objects have their names only by convention, so a run function must confirm that they belong to a module.
        and (_LIBRARY.fullmatch(part.archive) or functions & {f"{symbol_prefix(name)}_run", f"mlf_{name}_run"})
    }
    if _is_optimised(linked):
        symbols = tuple(symbol.name for symbol in image.symbols)
        names |= {
            # Objects that were only inputs of link-time optimisation have no sections in the map; LOAD lines still
            # name them.
            name
            for part, _ in linked.inputs()
            if not _DEPENDENCY.fullmatch(part.archive)
            and (name := module_of(part))
            and any(symbol.startswith((f"{symbol_prefix(name)}_", f"mlf_{name}_model_id")) for symbol in symbols)
        }
    return {name: name for name in sorted(names)}


def module_of(part: InputSection) -> str:
    """Return the module that an input section is from, by the name of its library or object; empty if from none.

    For example, ``libmlf_kws.a(kws_lib0.o)`` and the object ``kws_lib0.o`` are from ``kws``.
    """
    found = _LIBRARY.fullmatch(part.archive) or _OBJECT.fullmatch(part.member)
    return "" if found is None else found[1]


def _check(sections: Mapping[str, Section], linked: LinkerMap) -> None:
    found: Counter[str] = Counter()
    for part in linked.sections:
        found[part.output] += part.size
    for name, section in sections.items():
        # A map of an earlier link is the usual mistake, and its numbers would look right.
        if found[name] != section.size:
            raise InputFileError(
                "map-of-another-image",
                place=linked.path,
                reason=f"section {name} has {found[name]:,} bytes in the map, but {section.size:,} in the image",
                hint="link the image again",
            )


def _mixed(linked: LinkerMap, models: Mapping[str, str]) -> Iterator[str]:
    """Yield the models that were compiled for link-time optimisation, if the linker did that.

    If the linked file is gone, these are models of which the map has no bytes.
    """
    if not _is_optimised(linked):
        return
    placed = {module_of(part) for part in linked.sections}
    for part, path in linked.inputs():
        module = module_of(part)
        # The linked file shows whether it was compiled for link-time optimisation. Without it, absence from the map is
        # the only sign.
        if module in models and (
            module not in placed if path is None else _LTO_SECTION in read_bytes(path, "linked file")
        ):
            yield models[module]


def _is_optimised(linked: LinkerMap) -> bool:
    return any(part.optimised for part in linked.sections)


def _owner_of(part: InputSection, models: Mapping[str, str]) -> tuple[str, str]:
    """Return the owner of an input section and its module; the module is empty if it is not of a model."""
    module = module_of(part)
    if module in models:
        return models[module], module
    # Before the libraries: a fill line has no source, and space reserved by a script has none either.
    if part.name == FILL or not part.source:
        return next((name for name in ("stack", "heap") if name in part.output), "alignment"), ""
    dependency = _DEPENDENCY.fullmatch(part.archive)
    if dependency is not None:
        return dependency[1], ""
    if part.optimised:
        return "link-time optimised code", ""
    if part.archive:
        return ("C library" if is_c_library(part.archive) else _library_name(part.archive)), ""
    return ("board support" if _BOARD.search(part.source) else "firmware"), ""


def is_c_library(file: str) -> bool:
    """Return whether a static library of this name is of the toolchain.

    For example, ``libc_nano.a`` and ``libgcc.a`` are, and ``libarm_math.a`` is not.
    """
    return _library_name(file) in _C_LIBRARY


def _library_name(file: str) -> str:
    return file.removesuffix(".a").removeprefix("lib")


def plain_name(symbol: str) -> str:
    """Return the name of a function or variable in its source: without the suffixes of clones.

    For example, ``conv.constprop.0`` and ``conv.part.1`` are both ``conv``.
    """
    return _CLONE.sub("", symbol)


class _Symbols:
    """The symbols of an image by address."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols
        self._addresses = [symbol.address for symbol in symbols]

    def within(self, start: int, end: int) -> Iterator[Symbol]:
        """Yield the symbols from ``start`` to ``end``; of symbols that overlap, only the first."""
        at = start
        for symbol in self._symbols[bisect_left(self._addresses, start) :]:
            if symbol.address >= end:
                return
            # Aliases have the same bytes, and a symbol of a merged section may reach beyond it.
            if symbol.address >= at and symbol.address + symbol.size <= end:
                yield symbol
                at = symbol.address + symbol.size


def _pieces(part: InputSection, section: Section, symbols: _Symbols, module: str) -> Iterator[SizedSymbol]:
    left, flash, ram = part.size, section.flash > 0, section.ram > 0
    for symbol in symbols.within(part.address, part.address + part.size):
        # Clones count under the name in the source, so that two builds can be compared.
        name = plain_name(symbol.name)
        kind = CODE if symbol.function else _kind(name, part, section, model=bool(module))
        address = symbol.address if symbol.function else None
        constant = bool(module) and kind in {WEIGHTS, TABLES}
        content = section.content(symbol.address, symbol.size) if constant else ""
        yield SizedSymbol(name, kind, symbol.size, flash, ram, module, address, content)
        left -= symbol.size
    # Padding between symbols, and literals that have none, are counted under the object's name: no byte is lost.
    if left:
        yield SizedSymbol(part.member or part.name, _content(part, section), left, flash, ram, module)


def _kind(name: str, part: InputSection, section: Section, *, model: bool) -> str:
    """Return the kind of the constant or variable ``name``."""
    # Also in a section of a name that says nothing, such as one that a placement has chosen.
    arena = "workspace" in name
    if _content(part, section) != DATA and not (arena and model and known_content(part.name) is None):
        return TABLES if not model or _TABLE.search(name) else WEIGHTS
    if arena:
        return ARENA
    return STATE if name.endswith("_state") else DATA


def _content(part: InputSection, section: Section) -> str:
    """Return what an input section holds: ``CODE``, ``TABLES`` for constants, or ``DATA``.

    If its name does not tell, it holds what the output section holds.
    """
    return known_content(part.name) or (CODE if section.code else DATA if section.ram else TABLES)


def known_content(section: str) -> str | None:
    """Return what sections of objects with this name hold: ``CODE``, ``TABLES``, ``DATA``; ``None`` if any.

    For example, ``.text.run`` holds ``CODE`` and ``.rodata`` ``TABLES``; ``.fast`` may hold anything.
    """
    return next((content for names, content in _CONTENTS if names.match(section)), None)
