"""The symbols that a compiled file gives to the linker and asks it for; of ELF objects, from their symbol tables.

Objects of GCC's link-time optimisation have theirs beside the GIMPLE.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlfbuild.c_analysis.gimple import COMMON, UNDEFINED, WEAK, WEAKLY_UNDEFINED, gimple_symbols
from mlfbuild.core import InputFileError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

_MAX_NAME = 4096  # bytes; TVM's own limit of a function's name is 120
_LOCAL, _GLOBAL, _WEAK, _UNIQUE = 0, 1, 2, 10  # STB_* of the ELF specification, and GNU's
_UNDEFINED, _COMMON = 0, 0xFFF2  # SHN_*
_SECTION_TYPE = 3  # STT_SECTION; STT_FILE is 4
_SOMEWHERE = 1  # any section that is neither of the two
_AS_IN_ELF = {
    WEAK: (_WEAK, _SOMEWHERE),
    UNDEFINED: (_GLOBAL, _UNDEFINED),
    WEAKLY_UNDEFINED: (_WEAK, _UNDEFINED),
    COMMON: (_GLOBAL, _COMMON),
}
"""Binding and section for each kind of GIMPLE symbol that is not simply defined."""


@dataclass(frozen=True)
class Symbols:
    """Names of functions and objects of one file, as the linker sees them.

    A function of C++ linkage stands as ``space::name()``, without its arguments: what a compiler makes of it is more.
    """

    defined: frozenset[str] = field(default=frozenset())
    """Global and strong: two files that define one of them do not link."""
    weak: frozenset[str] = field(default=frozenset())
    """Global, but the linker drops all but one of many definitions (common symbols of objects as well)."""
    local: frozenset[str] = field(default=frozenset())
    """Known to the file alone: ``static``."""
    declared: frozenset[str] = field(default=frozenset())
    """Declared but not defined (C), or undefined (objects)."""


def object_symbols(data: bytes, where: str) -> Symbols:
    """Return the symbols of the ELF relocatable object ``data`` (``.o``), of any machine and byte order.

    ``where`` names it in messages. Raises ``InputFileError`` where it is none, or is damaged. Time and memory grow
    with the length of ``data``, whatever its tables claim.
    """
    names: dict[str, set[str]] = {"defined": set(), "weak": set(), "local": set(), "declared": set()}
    for name, binding, section in _entries(data, where):
        if section == _UNDEFINED:
            names["declared"].add(name)
        elif binding == _LOCAL:
            names["local"].add(name)
        elif binding in {_WEAK, _UNIQUE} or section == _COMMON:
            names["weak"].add(name)
        else:
            names["defined"].add(name)
    return Symbols(**{kind: frozenset(found) for kind, found in names.items()})


def _entries(data: bytes, where: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, binding, section index) of each named symbol of the object's symbol tables."""
    # pyelftools reads what it is told to read and raises whatever then happens: KeyError, AttributeError, its own.
    try:
        elf = opened_object(data, where)
        tables = [_table(elf, section, data, where) for section in elf.iter_sections() if _is_symbol_table(section)]
        gimple = list(gimple_symbols(elf, data))
    except InputFileError:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        raise damaged_object(where, f"{type(error).__name__} while its sections were read") from None
    layout = struct.Struct(("<" if elf.little_endian else ">") + ("IBBHQQ" if elf.elfclass == 64 else "IIIBBH"))
    for table, strings in tables:
        for values in layout.iter_unpack(table[: len(table) // layout.size * layout.size]):
            info, section = (values[1], values[3]) if elf.elfclass == 64 else (values[3], values[5])
            name = _name(strings, values[0], where)
            if name and info & 15 < _SECTION_TYPE:
                yield name, info >> 4, section
    for name, kind in gimple:
        yield name, *_AS_IN_ELF.get(kind, (_GLOBAL, _SOMEWHERE))


def opened_object(data: bytes, where: str) -> ELFFile:
    """Return the ELF relocatable object ``data`` with its header checked.

    Raises ``InputFileError`` where it is none, or where its section table is larger than it is. pyelftools raises
    whatever happens (``KeyError``, ``AttributeError``, its own) for damage that is not in the header.
    """
    from elftools.elf.elffile import ELFFile

    if not data.startswith(b"\x7fELF"):
        raise InputFileError(f"{where}: is no ELF object, so its symbols cannot be read; export it for an ELF target")
    elf = ELFFile(io.BytesIO(data))
    if elf["e_type"] != "ET_REL":
        raise InputFileError(f"{where}: is an ELF file of another kind, not a relocatable object; export it again")
    smallest = 64 if elf.elfclass == 64 else 40
    if elf["e_shentsize"] < smallest or elf.num_sections() * elf["e_shentsize"] > len(data):
        raise damaged_object(where, "its section table is larger than the file")
    return elf


def _is_symbol_table(section: Section) -> bool:
    return section["sh_type"] == "SHT_SYMTAB"


def _table(elf: ELFFile, section: Section, data: bytes, where: str) -> tuple[memoryview, bytes]:
    """Return the bytes of a symbol table and of the strings its names stand in."""
    strings = elf.get_section(section["sh_link"])
    for part in (section, strings):
        if part["sh_offset"] + part["sh_size"] > len(data):
            raise damaged_object(where, "its symbol table ends behind the file's end")
    content = memoryview(data)[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
    return content, data[strings["sh_offset"] : strings["sh_offset"] + strings["sh_size"]]


def _name(strings: bytes, offset: int, where: str) -> str:
    end = strings.find(b"\0", offset, offset + _MAX_NAME)
    if end < 0:
        raise damaged_object(where, "the name of a symbol does not end")
    return strings[offset:end].decode(errors="backslashreplace")


def damaged_object(where: str, reason: str) -> InputFileError:
    """Return the error that ``where`` is not what its header promises."""
    return InputFileError(f"{where}: is a damaged ELF object: {reason}; export the archive again")
