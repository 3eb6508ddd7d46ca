"""A linked image: its sections, what each costs in flash and RAM, and its symbols, read from an ELF of any origin."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, read_bytes, sha256

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as ElfSection

_WRITE, _ALLOC, _EXECUTE = 1, 2, 4  # SHF_* of the ELF specification


@dataclass(frozen=True)
class Section:
    """An output section that takes memory on the device; sizes in bytes."""

    name: str
    address: int
    size: int
    code: bool
    """Whether it holds instructions."""
    writable: bool
    zero: bool
    """Whether the file has no bytes of it: the firmware clears it, or nobody does."""
    copied: bool
    """Whether its first values lie at another address, in flash, from where start-up code copies them."""

    @property
    def flash(self) -> int:
        """Bytes in flash."""
        return 0 if self.zero else self.size

    @property
    def ram(self) -> int:
        """Bytes in RAM."""
        return self.size if self.zero or self.copied else 0


@dataclass(frozen=True)
class Symbol:
    """A function or an object of the image."""

    name: str
    address: int
    size: int
    function: bool


@dataclass(frozen=True)
class Berkeley:
    """The three numbers of ``size``; writable constants in flash, as TVM's code has them, are ``data`` there."""

    text: int
    data: int
    bss: int


@dataclass(frozen=True)
class Image:
    """What the file ``path`` holds."""

    path: Path
    sha256: str
    sections: tuple[Section, ...]
    """Those that take memory, in the file's order."""
    symbols: tuple[Symbol, ...]
    """Sorted by address."""

    @property
    def flash(self) -> int:
        """Bytes of flash that the image takes, without what aligns one section behind another."""
        return sum(section.flash for section in self.sections)

    @property
    def ram(self) -> int:
        """Bytes of RAM that the image takes before it runs, stack and all."""
        return sum(section.ram for section in self.sections)

    @property
    def berkeley(self) -> Berkeley:
        """What ``arm-none-eabi-size`` prints of the image."""
        bss = sum(section.size for section in self.sections if section.zero)
        data = sum(section.size for section in self.sections if section.writable and not section.zero)
        return Berkeley(sum(section.size for section in self.sections) - data - bss, data, bss)


def read_image(path: Path) -> Image:
    """Return what the ELF ``path`` holds.

    Raises ``InputFileError`` where it is missing, damaged, stripped, or no linked image.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    data = read_bytes(path, "image")
    if not data.startswith(b"\x7fELF"):
        raise InputFileError(f"{path}: is no ELF image; name what the linker wrote, not a .bin or .hex of it")
    try:
        elf = ELFFile(io.BytesIO(data))
        sections = tuple(_sections(elf))
        symbols = tuple(sorted(_symbols(elf, path), key=lambda symbol: (symbol.address, symbol.name)))
    except InputFileError:
        raise
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputFileError(f"{path}: is a damaged ELF image: {reason}; build it again") from None
    if elf["e_type"] not in {"ET_EXEC", "ET_DYN"}:
        raise InputFileError(f"{path}: is no linked image, but an object or a core; name the firmware's ELF")
    return Image(path, sha256(data), sections, symbols)


def _sections(elf: ELFFile) -> Iterator[Section]:
    places = [
        (segment["p_vaddr"], segment["p_memsz"], segment["p_paddr"] - segment["p_vaddr"])
        for segment in elf.iter_segments()
        if segment["p_type"] == "PT_LOAD" and segment["p_memsz"]
    ]
    for section in elf.iter_sections():
        if section["sh_flags"] & _ALLOC and section["sh_size"]:
            shift = next((by for start, size, by in places if start <= section["sh_addr"] < start + size), 0)
            yield _section(section, copied=shift != 0)


def _section(section: ElfSection, *, copied: bool) -> Section:
    flags = section["sh_flags"]
    zero = section["sh_type"] == "SHT_NOBITS"
    return Section(
        name=section.name,
        address=section["sh_addr"],
        size=section["sh_size"],
        code=bool(flags & _EXECUTE),
        writable=bool(flags & _WRITE),
        zero=zero,
        copied=copied and not zero,
    )


def _symbols(elf: ELFFile, path: Path) -> Iterator[Symbol]:
    from elftools.elf.sections import SymbolTableSection

    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        raise InputFileError(f"{path}: has no symbols (stripped); name the ELF that the linker wrote")
    thumb = elf["e_machine"] == "EM_ARM"
    for symbol in table.iter_symbols():
        kind = symbol["st_info"]["type"]
        if kind in {"STT_FUNC", "STT_OBJECT"} and symbol["st_size"] and isinstance(symbol["st_shndx"], int):
            function = kind == "STT_FUNC"
            address = symbol["st_value"] & ~1 if function and thumb else symbol["st_value"]
            yield Symbol(symbol.name, address, symbol["st_size"], function)
