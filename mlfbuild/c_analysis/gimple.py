"""Symbols of objects that GCC leaves to link-time optimisation (``-flto``): GIMPLE instead of machine code.

Their ELF symbol table is empty. What linkers read instead are the sections ``.gnu.lto_.symtab.*``, as GCC's linker
plugin documents and reads them (``lto-plugin.c``, ``parse_table_entry``); for each symbol:

    name, zero byte; name of its COMDAT group, zero byte; kind; visibility; size (8 bytes); slot (4 bytes)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_SECTION = ".gnu.lto_.symtab."
DEFINED, WEAK, UNDEFINED, WEAKLY_UNDEFINED, COMMON = range(5)
"""The kinds of a symbol."""
_REST = 1 + 1 + 8 + 4  # bytes behind the two names


def gimple_symbols(elf: ELFFile, data: bytes) -> Iterator[tuple[str, int]]:
    """Yield (name, kind) of each symbol in the GIMPLE of ``elf``, which was read from ``data``.

    None where it has no GIMPLE. Raises ``ValueError`` where a table ends within an entry or has an unknown kind.
    """
    for section in elf.iter_sections():
        if section.name.startswith(_SECTION):
            yield from _entries(data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]])


def _entries(table: bytes) -> Iterator[tuple[str, int]]:
    offset = 0
    while offset < len(table):
        name_end = table.index(b"\0", offset)
        group_end = table.index(b"\0", name_end + 1)
        if group_end + _REST >= len(table):
            raise ValueError("a table of GIMPLE symbols ends within an entry")
        kind = table[group_end + 1]
        if kind > COMMON:
            raise ValueError(f"a GIMPLE symbol of the unknown kind {kind}")
        yield table[offset:name_end].decode(errors="backslashreplace"), kind
        offset = group_end + 1 + _REST
