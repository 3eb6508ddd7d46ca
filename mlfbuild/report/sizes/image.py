"""A linked ELF image: its sections with their flash and RAM, and its symbols; from any toolchain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, sha256
from mlfbuild.library import DIGEST_LENGTH
from mlfbuild.timing import opened_image

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as ElfSection, SymbolTableSection

_WRITE, _ALLOC, _EXECUTE = 1, 2, 4  # SHF_* of the ELF specification


@dataclass(frozen=True)
class Section:
    """An output section that takes memory on the device; sizes in bytes."""

    name: str
    address: int
    """At run time."""
    size: int
    code: bool
    """Whether it holds instructions."""
    writable: bool
    """Whether code may change it."""
    zero: bool
    """Whether the file has no bytes for it, such as ``.bss``."""
    copied: bool
    """Whether start-up code copies its initial values from another address, in flash, such as ``.data``."""
    data: bytes = field(default=b"", repr=False, compare=False)
    """The bytes in the file; empty for sections without any."""
    shift: int = field(default=0, compare=False)
    """From the address at run time to that of the initial values; 0 unless ``copied``."""

    @property
    def load_address(self) -> int:
        """The address of its initial values."""
        return self.address + self.shift

    def content(self, address: int, size: int) -> str:
        """Return a hash of the bytes at ``address``; empty if the file has none.

        It has ``DIGEST_LENGTH`` hexadecimal digits, enough to compare constants of two builds.
        """
        # A symbol may reach past its section; a hash of fewer bytes would look like a change of the content.
        found = self.data[address - self.address :][:size]
        return sha256(found)[:DIGEST_LENGTH] if len(found) == size else ""

    @property
    def flash(self) -> int:
        """Bytes in flash."""
        # Also for `.data`, whose initial values are in flash until start-up code copies them.
        return 0 if self.zero else self.size

    @property
    def ram(self) -> int:
        """Bytes in RAM."""
        return self.size if self.zero or self.copied else 0


@dataclass(frozen=True)
class Symbol:
    """A function or a variable of the image.

    ``address`` of a function is that of its first instruction, without the bit that marks Thumb code.
    """

    name: str
    address: int
    size: int
    function: bool
    weak: bool = False
    """Whether another definition would replace it."""


@dataclass(frozen=True)
class Berkeley:
    """The three numbers that ``size`` prints; it counts writable constants in flash, as in TVM's code, as ``data``."""

    text: int
    """Code and constants."""
    data: int
    """Initialised variables, in flash and RAM."""
    bss: int


@dataclass(frozen=True)
class Image:
    """The sections and symbols of the file ``path``."""

    path: Path
    sha256: str
    sections: tuple[Section, ...]
    """Sections that take memory, in the file's order."""
    symbols: tuple[Symbol, ...]
    """Sorted by address."""
    labels: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Values of global symbols without a size, such as those that linker scripts define: ``_end``."""

    @property
    def flash(self) -> int:
        """Bytes of flash, without the padding between sections."""
        return sum(section.flash for section in self.sections)

    @property
    def ram(self) -> int:
        """Bytes of RAM that the linker assigned, including the stack."""
        return sum(section.ram for section in self.sections)

    @property
    def berkeley(self) -> Berkeley:
        """The numbers that ``arm-none-eabi-size`` prints for the image."""
        bss = sum(section.size for section in self.sections if section.zero)
        data = sum(section.size for section in self.sections if section.writable and not section.zero)
        return Berkeley(sum(section.size for section in self.sections) - data - bss, data, bss)


def read_image(path: Path) -> Image:
    """Return the sections and symbols of the ELF file ``path``.

    Raises ``InputFileError`` if the file is missing, damaged, stripped, or not a linked image.
    """
    with opened_image(path) as (elf, data):
        found = list(_sections(elf))
        sections = tuple(_apart(found))
        hidden = {section.name for section in found} - {section.name for section in sections}
        table = _symbol_table(elf, path)
        # Names decide between aliases, so that always the same one counts.
        symbols = tuple(sorted(_symbols(elf, table, hidden), key=lambda symbol: (symbol.address, symbol.name)))
        labels = dict(_labels(table))
    if elf["e_type"] not in {"ET_EXEC", "ET_DYN"}:
        reason = "the file is an object file or a core dump, not a linked image"
        raise InputFileError("image-not-linked", place=path, reason=reason, hint="name the ELF file of the firmware")
    return Image(path, sha256(data), sections, symbols, labels)


def _sections(elf: ELFFile) -> Iterator[Section]:
    places = [
        (segment["p_vaddr"], segment["p_memsz"], segment["p_paddr"] - segment["p_vaddr"])
        for segment in elf.iter_segments()
        if segment["p_type"] == "PT_LOAD" and segment["p_memsz"]
    ]
    # Only sections with SHF_ALLOC exist at run time; debug information takes no memory on the device.
    for section in elf.iter_sections():
        if section["sh_flags"] & _ALLOC and section["sh_size"]:
            # A load address other than the run address means that start-up code copies the section: its bytes take
            # flash and RAM.
            shift = next((by for start, size, by in places if start <= section["sh_addr"] < start + size), 0)
            yield _section(section, shift)


def _apart(sections: Sequence[Section]) -> Iterator[Section]:
    """Yield ``sections`` without arenas at addresses of a larger one: models that take turns share these bytes."""
    arenas = [section for section in sections if section.zero and section.writable]
    largest: dict[int, Section] = {}
    for section in arenas:
        # Of equal ones the first, which is that of a model.
        if section.address not in largest or section.size > largest[section.address].size:
            largest[section.address] = section
    yield from (each for each in sections if each not in arenas or each is largest[each.address])


def _section(section: ElfSection, shift: int) -> Section:
    flags = section["sh_flags"]
    zero = section["sh_type"] == "SHT_NOBITS"
    return Section(
        name=section.name,
        address=section["sh_addr"],
        size=section["sh_size"],
        code=bool(flags & _EXECUTE),
        writable=bool(flags & _WRITE),
        zero=zero,
        copied=shift != 0 and not zero,
        data=b"" if zero else section.data(),
        shift=0 if zero else shift,
    )


def _symbol_table(elf: ELFFile, path: Path) -> SymbolTableSection:
    from elftools.elf.sections import SymbolTableSection

    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        raise InputFileError(
            "image-stripped",
            place=path,
            reason="the image has no symbol table (it is stripped)",
            hint="name the ELF file that the linker wrote",
        )
    return table


def _symbols(elf: ELFFile, table: SymbolTableSection, hidden: Collection[str]) -> Iterator[Symbol]:
    """Yield the functions and variables of the image, except for those in the sections ``hidden``."""
    thumb = elf["e_machine"] == "EM_ARM"
    left_out = {at for at, section in enumerate(elf.iter_sections()) if section.name in hidden} if hidden else set()
    for symbol in table.iter_symbols():
        kind = symbol["st_info"]["type"]
        # pyelftools returns special section indices, such as SHN_UNDEF and SHN_ABS, as strings; those symbols have no
        # bytes here.
        if kind in {"STT_FUNC", "STT_OBJECT"} and symbol["st_size"] and isinstance(symbol["st_shndx"], int):
            if symbol["st_shndx"] in left_out:
                continue
            function = kind == "STT_FUNC"
            # Bit 0 of a function's value marks Thumb code (ELF for the Arm Architecture).
            address = symbol["st_value"] & ~1 if function and thumb else symbol["st_value"]
            weak = symbol["st_info"]["bind"] == "STB_WEAK"
            yield Symbol(symbol.name, address, symbol["st_size"], function, weak)


def _labels(table: SymbolTableSection) -> Iterator[tuple[str, int]]:
    for symbol in table.iter_symbols():
        information = symbol["st_info"]
        # Symbols with a size are functions and variables; a linker script gives its own none.
        if not symbol["st_size"] and information["bind"] != "STB_LOCAL" and symbol["st_shndx"] != "SHN_UNDEF":
            yield symbol.name, symbol["st_value"]
