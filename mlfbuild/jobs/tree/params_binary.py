"""Read the constants of a linked image as raw bytes, to be programmed into external flash."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import InputFileError, listed, read_bytes

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

PARAMS_SECTION = ".mlf_params"
"""The default section for constants in external flash."""
_ALLOCATED = 2  # SHF_ALLOC of the ELF specification


@dataclass(frozen=True)
class LinkedSection:
    """The bytes of a section of an image."""

    name: str
    address: int
    """The address to which the loader of the image, or a flash programmer, writes them."""
    data: bytes


def linked_section(image: Path, name: str = PARAMS_SECTION) -> LinkedSection:
    """Return the section ``name`` of the linked ELF ``image``, of any processor.

    Raises ``InputFileError`` if the file is not a linked ELF image or has no bytes in such a section.
    """
    return _section(read_bytes(image, "firmware image"), name, str(image))


def has_symbol(image: Path, symbol: str) -> bool | None:
    """Return whether ``image`` defines ``symbol``; ``None`` if it was stripped. Raises as ``linked_section``."""
    from elftools.elf.sections import SymbolTableSection

    table = _open(read_bytes(image, "firmware image"), str(image)).get_section_by_name(".symtab")
    return bool(table.get_symbol_by_name(symbol)) if isinstance(table, SymbolTableSection) else None


def section_names(image: Path) -> list[str]:
    """Return the names of the sections of ``image`` that occupy memory; raises as ``linked_section``."""
    return _allocated(_open(read_bytes(image, "firmware image"), str(image)))


def _section(data: bytes, name: str, where: str) -> LinkedSection:
    from elftools.common.exceptions import ELFError

    elf = _open(data, where)
    if elf["e_type"] not in {"ET_EXEC", "ET_DYN"}:
        raise InputFileError(
            "image-not-linked",
            place=where,
            reason="was not linked, so that its sections have no addresses",
            hint="name the linked image",
        )
    try:
        section = elf.get_section_by_name(name)
        if section is None or not _takes_memory(section):
            known = listed(_allocated(elf)) or "none, because its section headers were stripped"
            raise InputFileError(
                "image-without-section",
                place=where,
                reason=f"has no section {name} (sections: {known})",
                hint="link a model that places its constants there",
            )
        offset = section["sh_offset"]
        if section["sh_type"] == "SHT_NOBITS":
            raise InputFileError(
                "section-without-bytes",
                place=f"{where}: {name}",
                reason="is memory without initial bytes",
                hint="name a section with constants",
            )
        content = data[offset : offset + section["sh_size"]]
        if len(content) < section["sh_size"]:
            raise _damaged(where)
        return LinkedSection(name, _load_address(elf, section["sh_addr"], offset), content)
    except (ELFError, UnicodeDecodeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
        raise _damaged(where) from None


def _open(data: bytes, where: str) -> ELFFile:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    check_elf_image(data, where)
    try:
        return ELFFile(io.BytesIO(data))
    except (ELFError, UnicodeDecodeError, ValueError, KeyError, IndexError, OverflowError):
        raise _damaged(where) from None


def _allocated(elf: ELFFile) -> list[str]:
    return [section.name for section in elf.iter_sections() if _takes_memory(section)]


def _takes_memory(section: Section) -> bool:
    return bool(section["sh_flags"] & _ALLOCATED and section["sh_size"])


def _load_address(elf: ELFFile, address: int, offset: int) -> int:
    """Return the load address of bytes at ``offset`` of the file, which differs if start-up code copies them."""
    for segment in elf.iter_segments():
        inside = segment["p_offset"] <= offset < segment["p_offset"] + segment["p_filesz"]
        if segment["p_type"] == "PT_LOAD" and inside:
            return int(segment["p_paddr"] + offset - segment["p_offset"])
    return address


def _damaged(where: str) -> InputFileError:
    return InputFileError("image-damaged", place=where, reason="is a damaged ELF image", hint="link it again")
