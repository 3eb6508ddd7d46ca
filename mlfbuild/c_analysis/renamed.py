"""Rename symbols of a compiled object, as ``objcopy --redefine-sym`` does, without that program.

Symbols point into a string table. A copy of the table with the new names is appended to the file; nothing else moves,
so that code, data and relocations stay as the exporter's compiler made them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.c_analysis.objects import damaged_object, lto_symbols, object_symbols, opened_object
from mlfbuild.core import InputFileError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

_GLOBAL = 1  # STB_GLOBAL of the ELF specification; linkers see symbols of this binding and higher


@dataclass(frozen=True)
class _Form:
    """The position of fields in the tables of an ELF class."""

    symbol: str
    info: int
    """The index of a symbol's field for its binding."""
    place: str
    """Offset and size of a section."""
    at: int
    """The position of both in a section's header."""


# Elf32_Sym, Elf64_Sym and the fields sh_offset and sh_size of the section headers (ELF specification, System V ABI).
_FORMS = {32: _Form("IIIBBH", 3, "II", 16), 64: _Form("IBBHQQ", 1, "QQ", 24)}


def renamed_object(data: bytes, names: Mapping[str, str], where: str) -> bytes:
    """Return the ELF relocatable object ``data`` with the global symbols ``names`` under their new names.

    Names that it does not have are ignored. ``where`` names it in messages. Raises ``InputFileError`` if it is not such
    an object, is damaged, or was compiled for link-time optimisation, which keeps names elsewhere.
    """
    # Checked before anything is written, because the steps below trust offsets in the file.
    object_symbols(data, where)  # every table ends within the file, and every name in its table
    elf = opened_object(data, where)
    late = next((name for name in lto_symbols(elf, data) if name in names), None)
    if late is not None:
        reason = f"{late} cannot be renamed in an object of link-time optimisation"
        raise InputFileError("object-left-to-lto", place=where, reason=reason, hint="compile it without -flto")
    try:
        return _renamed(elf, data, names)
    except (KeyError, AttributeError, struct.error) as error:  # pyelftools raises these for damage
        raise damaged_object(where, f"{type(error).__name__} while its symbols were renamed") from None


def _renamed(elf: ELFFile, data: bytes, names: Mapping[str, str]) -> bytes:
    made = bytearray(data)
    order = "<" if elf.little_endian else ">"
    form = _FORMS[elf.elfclass]
    for section in elf.iter_sections():
        if section["sh_type"] != "SHT_SYMTAB":
            continue
        # sh_link of a symbol table is the section with its names (ELF specification).
        strings = elf.get_section(section["sh_link"])
        # A copy, not an edit in place: tools may let one name be the end of another one (`bar` in `foobar`), so that a
        # changed byte could rename a second symbol.
        table = bytearray(_content(strings, data))
        for at, name in _globals(_content(section, data), table, order, form):
            if name in names:
                struct.pack_into(f"{order}I", made, section["sh_offset"] + at, len(table))
                table += names[name].encode() + b"\0"
        # The header of the string table's section is made to point to the copy behind the old end of the file.
        header = elf["e_shoff"] + section["sh_link"] * elf["e_shentsize"]
        struct.pack_into(order + form.place, made, header + form.at, len(made), len(table))
        made += table
    return bytes(made)


def _content(section: Section, data: bytes) -> bytes:
    return data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]


def _globals(symbols: bytes, strings: bytearray, order: str, form: _Form) -> Iterator[tuple[int, str]]:
    """Yield the offset in the table and the name of each symbol that linkers see."""
    layout = struct.Struct(order + form.symbol)
    for at in range(0, len(symbols) // layout.size * layout.size, layout.size):
        values = layout.unpack_from(symbols, at)
        # Symbols of sections and files are local, so they are left out as well.
        if values[form.info] >> 4 >= _GLOBAL:
            yield at, strings[values[0] : strings.index(b"\0", values[0])].decode(errors="backslashreplace")
