"""What stands behind the weak symbols of an object: whether the linker may take any of several definitions.

It takes the first and drops the others, whatever they hold. That is right for what is made to be merged (COMDAT groups:
inline functions and templates of C++) and for what is equal anyway (helpers that LLVM adds to every module). It is not
for C functions that happen to have one name and are marked ``__attribute__((weak))``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mlfbuild.c_analysis.gimple import COMMON, WEAK, gimple_symbols
from mlfbuild.c_analysis.symbols import damaged_object, opened_object
from mlfbuild.core import InputFileError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Symbol

SHARED = "common"
"""A common symbol: one variable for every object that has it."""
MERGED = "merged"
"""Made to be merged, or GIMPLE, which does not tell."""
_FUNCTION = "STT_FUNC"
_ARM = "EM_ARM"
_IN_GROUP = 0x200  # SHF_GROUP of the ELF specification
_WORD = 4  # bytes


def weak_definitions(data: bytes, names: Collection[str], where: str) -> Mapping[str, str]:
    """Return for each of ``names`` that is weak or common in the object ``data``: ``SHARED``, ``MERGED``, or a hash.

    The hash is of the bytes that stand behind the name and of the global symbols that the linker puts into them.
    ``where`` names the object in messages. Raises ``InputFileError`` where it is none, or is damaged.
    """
    try:
        return _definitions(opened_object(data, where), data, names)
    except InputFileError:
        raise
    except Exception as error:  # noqa: BLE001 - pyelftools raises whatever happens
        raise damaged_object(where, f"{type(error).__name__} while its weak symbols were read") from None


def _definitions(elf: ELFFile, data: bytes, names: Collection[str]) -> dict[str, str]:
    from elftools.elf.sections import SymbolTableSection

    kinds = {COMMON: SHARED, WEAK: MERGED}
    found = {name: kinds[kind] for name, kind in gimple_symbols(elf, data) if name in names and kind in kinds}
    table = elf.get_section_by_name(".symtab")
    for symbol in table.iter_symbols() if isinstance(table, SymbolTableSection) else ():
        if symbol.name not in names or symbol["st_shndx"] == "SHN_UNDEF":
            continue
        if symbol["st_shndx"] == "SHN_COMMON":
            found[symbol.name] = SHARED
        elif symbol["st_info"]["bind"] != "STB_GLOBAL":
            found.setdefault(symbol.name, _definition(elf, symbol))
    return found


def _definition(elf: ELFFile, symbol: Symbol) -> str:
    index = symbol["st_shndx"]
    if not isinstance(index, int):
        return MERGED  # an absolute number
    section = elf.get_section(index)
    if section["sh_flags"] & _IN_GROUP:
        return MERGED
    start, size = symbol["st_value"], symbol["st_size"]
    if elf["e_machine"] == _ARM and symbol["st_info"]["type"] == _FUNCTION:
        start &= ~1  # says that the code is Thumb
    empty = section["sh_type"] == "SHT_NOBITS"
    content = bytearray(b"" if empty else section.data()[start : start + size])
    linked = []
    for place, kind, name in _relocations(elf, index, start, size):
        linked.append(f"{place} {kind} {name}\n")
        if not name:  # how far into the file's own data says nothing of what lies there
            content[place : place + _WORD] = bytes(_WORD)
    return hashlib.sha256(f"{size} {empty} {''.join(sorted(linked))}".encode() + content).hexdigest()


def _relocations(elf: ELFFile, index: int, start: int, size: int) -> Iterator[tuple[int, int, str]]:
    """Yield place, type and global symbol (empty for a local one) of what is linked into some bytes of a section."""
    from elftools.elf.relocation import RelocationSection

    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or section["sh_info"] != index:
            continue
        symbols: Any = elf.get_section(section["sh_link"])
        for relocation in section.iter_relocations():
            if start <= relocation["r_offset"] < start + size:
                target = symbols.get_symbol(relocation["r_info_sym"])
                name = "" if target["st_info"]["bind"] == "STB_LOCAL" else target.name
                yield relocation["r_offset"] - start, relocation["r_info_type"], name
