"""The constants of a linked image as bytes alone: what a programmer writes into external flash."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, read_bytes

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

PARAMS_SECTION = ".mlf_params"
"""Where constants lie that firmware keeps apart, unless it says otherwise."""
_ALLOCATED = 2  # SHF_ALLOC of the ELF specification


@dataclass(frozen=True)
class LinkedSection:
    """The bytes of a section of an image."""

    name: str
    address: int
    """Where the image's loader, or a programmer, writes them."""
    data: bytes


def linked_section(image: Path, name: str = PARAMS_SECTION) -> LinkedSection:
    """Return the section ``name`` of the linked ELF ``image``, of any processor.

    Raises ``InputFileError`` where the file is none, was not linked, or has no bytes in such a section.
    """
    return _section(read_bytes(image, "firmware image"), name, str(image))


def has_symbol(image: Path, symbol: str) -> bool | None:
    """Return whether ``image`` defines ``symbol``; ``None`` where it was stripped. Raises as ``linked_section``."""
    from elftools.elf.sections import SymbolTableSection

    table = _open(read_bytes(image, "firmware image"), str(image)).get_section_by_name(".symtab")
    return bool(table.get_symbol_by_name(symbol)) if isinstance(table, SymbolTableSection) else None


def section_names(image: Path) -> list[str]:
    """Return the names of the sections of ``image`` that take memory; raises as ``linked_section``."""
    return _allocated(_open(read_bytes(image, "firmware image"), str(image)))


def _section(data: bytes, name: str, where: str) -> LinkedSection:
    from elftools.common.exceptions import ELFError

    elf = _open(data, where)
    if elf["e_type"] not in {"ET_EXEC", "ET_DYN"}:
        raise InputFileError(f"{where}: was not linked, so that its sections have no addresses; name the linked image")
    try:
        section = elf.get_section_by_name(name)
        if section is None or not _takes_memory(section):
            known = ", ".join(_allocated(elf)) or "none: its section headers were stripped"
            raise InputFileError(f"{where}: has no section {name} (sections: {known}); link a model that places there")
        offset = section["sh_offset"]
        if section["sh_type"] == "SHT_NOBITS":
            raise InputFileError(f"{where}: its section {name} is memory without bytes; name one of constants")
        content = data[offset : offset + section["sh_size"]]
        if len(content) < section["sh_size"]:
            raise InputFileError(f"{where}: its section {name} is cut off; link it again")
        return LinkedSection(name, _load_address(elf, section["sh_addr"], offset), content)
    except (ELFError, UnicodeDecodeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
        raise _damaged(where) from None


def _open(data: bytes, where: str) -> ELFFile:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    if not data.startswith(b"\x7fELF"):
        raise InputFileError(f"{where}: is no ELF image; name what the linker wrote, not a .bin or .hex of it")
    try:
        return ELFFile(io.BytesIO(data))
    except (ELFError, UnicodeDecodeError, ValueError, KeyError, IndexError, OverflowError):
        raise _damaged(where) from None


def _allocated(elf: ELFFile) -> list[str]:
    return [section.name for section in elf.iter_sections() if _takes_memory(section)]


def _takes_memory(section: Section) -> bool:
    return bool(section["sh_flags"] & _ALLOCATED and section["sh_size"])


def _load_address(elf: ELFFile, address: int, offset: int) -> int:
    """Return where bytes at ``offset`` of the file are loaded: not to ``address`` where start-up code copies them."""
    for segment in elf.iter_segments():
        inside = segment["p_offset"] <= offset < segment["p_offset"] + segment["p_filesz"]
        if segment["p_type"] == "PT_LOAD" and inside:
            return int(segment["p_paddr"] + offset - segment["p_offset"])
    return address


def _damaged(where: str) -> InputFileError:
    return InputFileError(f"{where}: is a damaged ELF image; link it again")
