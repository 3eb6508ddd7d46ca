"""Check the addresses of placed sections in a linked image, and write their constants to a binary file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import CheckFailedError, InputFileError, UsageError, listed, read_bytes, unknown, write_if_changed
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.jobs.tree.placement import LINKER_SCRIPT
from mlfbuild.library.keys import CODE, CONSTANT_CLASSES, MEMORY_CLASSES, PARAMS, Placement

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
    """Return whether ``image`` defines ``symbol``; ``None`` if it was stripped. Raises as ``linked_section``.

    Local and global symbols count; C++ names must be given as the linker sees them.
    """
    from elftools.elf.sections import SymbolTableSection

    table = _open(read_bytes(image, "firmware image"), str(image)).get_section_by_name(".symtab")
    return bool(table.get_symbol_by_name(symbol)) if isinstance(table, SymbolTableSection) else None


def section_names(image: Path) -> list[str]:
    """Return the names of the sections of ``image`` that occupy memory; raises as ``linked_section``.

    They are in the order of the file; debug information and empty sections are left out.
    """
    return _allocated(_open(read_bytes(image, "firmware image"), str(image)))


def _section(data: bytes, name: str, where: str) -> LinkedSection:
    from elftools.common.exceptions import ELFError

    elf = _open(data, where)
    # ET_DYN: position-independent images, such as those of this machine.
    if elf["e_type"] not in {"ET_EXEC", "ET_DYN"}:
        reason = "was not linked, so that its sections have no addresses"
        raise InputFileError("image-not-linked", place=where, reason=reason, hint="name the linked image")
    try:
        # A section, not a symbol: an image may be stripped of symbols, and programmers of flash do not need them.
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
        # A slice beyond the end of the file is shorter without an error.
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
    # Program headers have load addresses (p_paddr); section headers have only those at run time.
    for segment in elf.iter_segments():
        inside = segment["p_offset"] <= offset < segment["p_offset"] + segment["p_filesz"]
        # By the offset in the file and not by the address, because addresses of sections are those at run time.
        if segment["p_type"] == "PT_LOAD" and inside:
            return int(segment["p_paddr"] + offset - segment["p_offset"])
    return address


def _damaged(where: str) -> InputFileError:
    return InputFileError("image-damaged", place=where, reason="is a damaged ELF image", hint="link it again")


_CLASSES = (PARAMS, *CONSTANT_CLASSES, *MEMORY_CLASSES, CODE)


@dataclass(frozen=True)
class ParamsBinary:
    """A file with the bytes of one section."""

    section: str
    address: int
    """The address for which they are linked."""
    size: int


def write_params_binary(image: Path, section: str, output: Path) -> ParamsBinary:
    """Write the constants in ``section`` of the linked ``image`` to ``output``, only if its content changes.

    Raises ``InputFileError`` if the image has no bytes in that section, and ``StorageError``.
    """
    found = linked_section(image, section)
    write_if_changed(output, found.data)
    return ParamsBinary(section, found.address, len(found.data))


def placement_of(words: Sequence[str]) -> Placement:
    """Parse ``CLASS=SECTION`` words of a command line to a placement; raises ``UsageError``.

    For example, ``["params=.mlf_params", "workspace=.bss.fast"]``. A class may be given twice with the same section.
    The classes are those of ``placement`` in a project file.
    """
    named: dict[str, Any] = {}
    for word in words:
        name, equals, section = word.partition("=")
        if not equals or not section:
            raise UsageError(
                "placement-without-section",
                place=f"--place {word}",
                reason="has no section",
                hint="write CLASS=SECTION, such as params=.mlf_params",
            )
        if name not in _CLASSES:
            raise unknown("placement class", name, _CLASSES).error(f"--place {word}")
        if named.setdefault(name, section) != section:
            raise UsageError(
                "placement-given-twice",
                place=f"--place {word}",
                reason=f"{name} is already in {named[name]}",
                hint="give it once",
            )
    placement = Placement(**named)
    # The first mistake is enough here: a command line is short, and each word has its own place.
    for name, mistake in placement.problems():
        raise mistake.error(f"--place {name}={named[name]}")
    return placement


def check_placed(job: FirmwareJob) -> None:
    """Raise ``CheckFailedError`` if a section of the image is not in the memory region that the target assigns to it.

    The linker places sections that no script mentions without a warning. The script of the tree defines symbols for
    those that it places. An image without symbols is not checked.
    """
    if not job.target.placed:
        return
    # A section is missing if --gc-sections dropped it with the model that nothing calls; then it need not be placed.
    names = section_names(job.elf)
    for section in job.target.placed:
        if not set(section.names).isdisjoint(names) and has_symbol(job.elf, section.start) is False:
            raise CheckFailedError(
                "section-not-placed",
                place=f"{job.elf.name}: {section.name}",
                reason=f"is not in memory region {section.region}, because the link does not use {LINKER_SCRIPT}",
                hint=f"link mlf::placement to {job.name}",
            )
