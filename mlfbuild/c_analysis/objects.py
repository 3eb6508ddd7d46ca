"""Compiled objects (ELF, ``.o``), read with pyelftools: the symbols that a linker sees, and the data behind weak ones.

Objects come out of archives and are untrusted. ``opened_object`` checks the header, every table is checked against the
length of the file, and an object that does not hold what its header promises is an ``InputFileError``.

Objects for GCC's link-time optimisation (``-flto``) contain GIMPLE instead of machine code, and their ELF symbol
table is empty. Linkers read the sections ``.gnu.lto_.symtab.*`` instead, and so does this module. GCC's linker plugin
documents them (``lto-plugin.c``, ``parse_table_entry``). For each symbol:

    name, zero byte; name of its COMDAT group, zero byte; kind; visibility; size (8 bytes); slot (4 bytes)

Two definitions of a weak symbol: the linker takes the first and drops the others. That is correct for definitions made
to be merged (COMDAT groups: inline functions and templates of C++) and for equal ones (helpers that LLVM adds to every
module), but not for two different C functions that have one name and are marked ``__attribute__((weak))``.
``weak_definitions`` distinguishes these cases.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlfbuild.core import InputFileError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section, Symbol

SHARED = "common"
"""A common symbol: one variable for every object that has it."""
MERGED = "merged"
"""A definition that may be merged with others, or GIMPLE, for which this is unknown."""

# Bounds the search for the end of a name, so that a table of overlapping names cannot take quadratic time.
_MAX_NAME = 4096  # bytes; TVM's own limit of a function's name is 120
_LOCAL, _GLOBAL, _WEAK, _UNIQUE = 0, 1, 2, 10  # STB_* of the ELF specification, and GNU's
_UNDEFINED, _COMMON = 0, 0xFFF2  # SHN_*
_SECTION_TYPE = 3  # STT_SECTION; STT_FILE is 4
_IN_GROUP = 0x200  # SHF_GROUP
_SOMEWHERE = 1  # any section that is neither of the two
_WORD = 4  # bytes

_LTO_SECTION = ".gnu.lto_.symtab."
_LTO_DEFINED, _LTO_WEAK, _LTO_UNDEFINED, _LTO_WEAKLY_UNDEFINED, _LTO_COMMON = range(5)
_LTO_REST = 1 + 1 + 8 + 4  # bytes after the two names of an entry
_LTO_AS_ELF = {
    _LTO_WEAK: (_WEAK, _SOMEWHERE),
    _LTO_UNDEFINED: (_GLOBAL, _UNDEFINED),
    _LTO_WEAKLY_UNDEFINED: (_WEAK, _UNDEFINED),
    _LTO_COMMON: (_GLOBAL, _COMMON),
}
"""Binding and section for each kind of GIMPLE symbol that is not simply defined."""


@dataclass(frozen=True)
class Symbols:
    """Names of functions and objects of one file, as the linker sees them.

    A function with C++ linkage is listed as ``space::name()``, without its arguments, which its symbol also encodes.
    """

    defined: frozenset[str] = field(default=frozenset())
    """Global and strong: two files that define one of them do not link."""
    weak: frozenset[str] = field(default=frozenset())
    """Global, but the linker drops all but one of several definitions. Includes the common symbols of objects."""
    local: frozenset[str] = field(default=frozenset())
    """Visible in this file only: ``static``."""
    declared: frozenset[str] = field(default=frozenset())
    """Declared but not defined (C), or undefined (objects)."""


def object_symbols(data: bytes, where: str) -> Symbols:
    """Return the symbols of the ELF relocatable object ``data``, of any machine and byte order.

    ``where`` names it in messages. Raises ``InputFileError`` if it is not such an object or is damaged. Time and memory
    are linear in the length of ``data``, regardless of the sizes in its tables.
    """
    names: dict[str, set[str]] = {"defined": set(), "weak": set(), "local": set(), "declared": set()}
    # Undefined comes first: a reference can be weak, and an undefined weak symbol defines nothing.
    for name, binding, section in _entries(data, where):
        if section == _UNDEFINED:
            names["declared"].add(name)
        elif binding == _LOCAL:
            names["local"].add(name)
        # STB_GNU_UNIQUE is what g++ gives to static variables of inline functions; linkers merge these like weak ones.
        elif binding in {_WEAK, _UNIQUE} or section == _COMMON:
            names["weak"].add(name)
        else:
            names["defined"].add(name)
    return Symbols(**{kind: frozenset(found) for kind, found in names.items()})


def weak_definitions(data: bytes, names: Collection[str], where: str) -> Mapping[str, str]:
    """Return for each of ``names`` that is weak or common in the object ``data``: ``SHARED``, ``MERGED``, or a hash.

    Two definitions with one hash are equal: it covers the bytes behind the name and the global symbols that the linker
    puts into them. Raises ``InputFileError`` as ``object_symbols`` does.
    """
    with reading(where, "weak symbols"):
        return _definitions(opened_object(data, where), data, names)


def opened_object(data: bytes, where: str) -> ELFFile:
    """Return the ELF relocatable object ``data`` with its header checked.

    Raises ``InputFileError`` if it is not one, or if its section table is larger than the file. For damage elsewhere,
    pyelftools raises ``KeyError``, ``AttributeError`` or its own exceptions when it reads that part.
    """
    from elftools.elf.elffile import ELFFile

    if not data.startswith(b"\x7fELF"):
        reason = "not an ELF object, so its symbols cannot be read"
        raise InputFileError("object-not-elf", place=where, reason=reason, hint="compile it for an ELF target")
    elf = ELFFile(io.BytesIO(data))
    if elf["e_type"] != "ET_REL":
        raise InputFileError(
            "object-not-relocatable",
            place=where,
            reason="an ELF file, but not a relocatable object",
            hint="use the `.o` file that the compiler wrote",
        )
    # sizeof(Elf64_Shdr) and sizeof(Elf32_Shdr).
    smallest = 64 if elf.elfclass == 64 else 40
    # pyelftools trusts both fields; a count of 2^32 sections would keep it busy for hours.
    if elf["e_shentsize"] < smallest or elf.num_sections() * elf["e_shentsize"] > len(data):
        raise damaged_object(where, "its section table is larger than the file")
    return elf


def object_section_size(data: bytes, section: str, where: str) -> int:
    """Return the bytes of ``section``, and of those called ``<section>.*``, in the ELF relocatable object ``data``.

    ``where`` names it in messages. Raises ``InputFileError`` if it is not such an object or is damaged.

    For example, ``.text`` includes ``.text.main``, as ``-ffunction-sections`` names it, but not ``.textual``. Sizes are
    those before linking: ``--gc-sections`` may drop some of the sections.
    """
    with reading(where, "sections"):
        sections = [(each.name, each["sh_size"]) for each in opened_object(data, where).iter_sections()]
    return sum(size for name, size in sections if f"{name}.".startswith(f"{section}."))


def check_elf_image(data: bytes, where: object) -> None:
    """Raise ``InputFileError`` if ``data`` is not an ELF file; ``where`` is the place in the error.

    Only the first bytes are read here: the file can still be damaged elsewhere.
    """
    if not data.startswith(b"\x7fELF"):
        hint = "name the ELF file that the linker wrote, not a .bin or .hex file"
        raise InputFileError("not-an-elf-image", place=where, reason="the file is not an ELF image", hint=hint)


def lto_symbols(elf: ELFFile, data: bytes) -> Iterator[str]:
    """Yield the names of the symbols in the GIMPLE of ``elf``, which was read from ``data``; none without GIMPLE.

    Local symbols are not in these tables. Raises ``ValueError`` if a table is damaged.
    """
    yield from (name for name, _ in _lto_entries(elf, data))


@contextmanager
def reading(where: str, what: str) -> Iterator[None]:
    """Turn any error of pyelftools, which means damage, into an ``InputFileError`` about ``what`` of ``where``.

    ``where`` is the file in messages, and ``what`` a plural such as "symbols". An ``InputFileError`` that the block
    raises itself passes unchanged.
    """
    try:
        yield
    except InputFileError:
        raise
    except Exception as error:  # noqa: BLE001 - pyelftools raises KeyError, AttributeError, its own errors, ...
        raise damaged_object(where, f"{type(error).__name__} while its {what} were read") from None


def damaged_object(where: str, reason: str) -> InputFileError:
    """Return the error that the object ``where`` does not hold what its header promises."""
    return InputFileError(
        "object-damaged", place=where, reason=f"damaged ELF object: {reason}", hint="compile it again, or copy it again"
    )


# Symbol tables -------------------------------------------------------------------------------------------------------


def _entries(data: bytes, where: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, binding, section index) of each named symbol of the object's symbol tables."""
    with reading(where, "sections"):
        elf = opened_object(data, where)
        tables = [
            _table(elf, section, data, where) for section in elf.iter_sections() if section["sh_type"] == "SHT_SYMTAB"
        ]
        gimple = list(_lto_entries(elf, data))
    # Not pyelftools' own symbols: it reads each name to its zero byte, however far that is.
    layout = struct.Struct(("<" if elf.little_endian else ">") + ("IBBHQQ" if elf.elfclass == 64 else "IIIBBH"))
    for table, strings in tables:
        # A damaged table may end within an entry, which iter_unpack would refuse.
        for values in layout.iter_unpack(table[: len(table) // layout.size * layout.size]):
            info, section = (values[1], values[3]) if elf.elfclass == 64 else (values[3], values[5])
            name = _name(strings, values[0], where)
            # Symbols of sections and files have no definition that could clash.
            if name and info & 15 < _SECTION_TYPE:
                yield name, info >> 4, section
    for name, kind in gimple:
        yield name, *_LTO_AS_ELF.get(kind, (_GLOBAL, _SOMEWHERE))


def _table(elf: ELFFile, section: Section, data: bytes, where: str) -> tuple[memoryview, bytes]:
    """Return the bytes of a symbol table and of the string table that has its names."""
    strings = elf.get_section(section["sh_link"])
    for part in (section, strings):
        if part["sh_offset"] + part["sh_size"] > len(data):
            raise damaged_object(where, "its symbol table is longer than the file")
    content = memoryview(data)[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
    return content, data[strings["sh_offset"] : strings["sh_offset"] + strings["sh_size"]]


def _name(strings: bytes, offset: int, where: str) -> str:
    end = strings.find(b"\0", offset, offset + _MAX_NAME)
    if end < 0:
        raise damaged_object(where, "a symbol name has no end")
    return strings[offset:end].decode(errors="backslashreplace")


def _lto_entries(elf: ELFFile, data: bytes) -> Iterator[tuple[str, int]]:
    """Yield (name, kind); raises ``ValueError`` if a table ends within an entry or has an unknown kind."""
    for section in elf.iter_sections():
        if not section.name.startswith(_LTO_SECTION):
            continue
        # Each entry begins with two texts of any length, so the entries have no fixed size and must be read in order.
        table = data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
        offset = 0
        while offset < len(table):
            name_end = table.index(b"\0", offset)
            group_end = table.index(b"\0", name_end + 1)
            if group_end + _LTO_REST >= len(table):
                raise ValueError("a table of GIMPLE symbols ends within an entry")
            kind = table[group_end + 1]
            if kind > _LTO_COMMON:
                raise ValueError(f"a GIMPLE symbol of the unknown kind {kind}")
            yield table[offset:name_end].decode(errors="backslashreplace"), kind
            offset = group_end + 1 + _LTO_REST


# Weak symbols --------------------------------------------------------------------------------------------------------


def _definitions(elf: ELFFile, data: bytes, names: Collection[str]) -> dict[str, str]:
    from elftools.elf.sections import SymbolTableSection

    # GIMPLE of two definitions cannot be compared byte by byte: it contains paths and lines of the source.
    kinds = {_LTO_COMMON: SHARED, _LTO_WEAK: MERGED}
    found = {name: kinds[kind] for name, kind in _lto_entries(elf, data) if name in names and kind in kinds}
    table = elf.get_section_by_name(".symtab")
    for symbol in table.iter_symbols() if isinstance(table, SymbolTableSection) else ():
        if symbol.name not in names or symbol["st_shndx"] == "SHN_UNDEF":
            continue
        if symbol["st_shndx"] == "SHN_COMMON":
            found[symbol.name] = SHARED
        elif symbol["st_info"]["bind"] != "STB_GLOBAL":
            # An object with both GIMPLE and machine code (-ffat-lto-objects) keeps the answer of the GIMPLE, which the
            # linker uses.
            found.setdefault(symbol.name, _definition(elf, symbol))
    return found


def _definition(elf: ELFFile, symbol: Symbol) -> str:
    index = symbol["st_shndx"]
    if not isinstance(index, int):
        return MERGED  # an absolute number
    section = elf.get_section(index)
    if section["sh_flags"] & _IN_GROUP:
        return MERGED
    # In a relocatable object, st_value is the offset in the symbol's section.
    start, size = symbol["st_value"], symbol["st_size"]
    if elf["e_machine"] == "EM_ARM" and symbol["st_info"]["type"] == "STT_FUNC":
        start &= ~1  # the lowest bit marks Thumb code
    empty = section["sh_type"] == "SHT_NOBITS"
    content = bytearray(b"" if empty else section.data()[start : start + size])
    # Relocated fields contain addends only. With the names of their symbols, calls of different functions differ in
    # the hash, although the bytes are equal.
    linked = []
    for place, kind, name in _relocations(elf, index, start, size):
        linked.append(f"{place} {kind} {name}\n")
        if not name:  # an offset into the file's local data, not the data itself
            content[place : place + _WORD] = bytes(_WORD)
    return hashlib.sha256(f"{size} {empty} {''.join(sorted(linked))}".encode() + content).hexdigest()


def _relocations(elf: ELFFile, index: int, start: int, size: int) -> Iterator[tuple[int, int, str]]:
    """Yield place, type and global symbol (empty for a local one) of the relocations in a part of a section."""
    from elftools.elf.relocation import RelocationSection

    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or section["sh_info"] != index:
            continue
        symbols: Any = elf.get_section(section["sh_link"])
        # Relocations of a whole section are in one table; only those inside of the symbol belong to it.
        for relocation in section.iter_relocations():
            if start <= relocation["r_offset"] < start + size:
                target = symbols.get_symbol(relocation["r_info_sym"])
                name = "" if target["st_info"]["bind"] == "STB_LOCAL" else target.name
                yield relocation["r_offset"] - start, relocation["r_info_type"], name
