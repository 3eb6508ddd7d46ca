"""A firmware image: its segments, the memory that they occupy, its CPU, and its symbols and lines."""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import InputFileError, read_bytes

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_ALLOC = 2  # SHF_ALLOC
_WRITABLE = 2  # PF_W

_FPV5 = 7
"""The first value of Tag_FP_arch for FPv5."""
_VECTORS = 16
"""Words at the start of a vector table that every core has: the stack pointer and exceptions 1 to 15."""


@dataclass(frozen=True)
class Firmware:
    """An ELF image: what a loader needs, and its symbols and lines. Addresses are those of the device."""

    path: Path
    machine: str
    """Name in the ELF specification: ``EM_ARM``."""
    little_endian: bool
    bits: int
    entry: int
    """Address of the first instruction, without Thumb's bit 0."""
    architecture: int | None
    """Tag_CPU_arch of Arm's build attributes; ``None`` without them."""
    fpu: str
    """The FPU that its code may use: ``single`` or ``double`` precision; empty for none."""
    segments: tuple[tuple[int, bytes], ...]
    """Load address and content of each segment that is not empty."""
    constants: tuple[tuple[int, bytes], ...]
    """The segments that the firmware does not change."""
    sections: tuple[tuple[int, int], ...]
    """First address and size of each section that occupies memory of the device, in ascending order."""
    _elf: ELFFile = field(repr=False, compare=False)

    @property
    def size(self) -> int:
        """Bytes that are written to the device."""
        return sum(len(content) for _, content in self.segments)

    @property
    def functions(self) -> Mapping[str, tuple[int, int]]:
        """Address and size of each function, without Thumb's bit 0."""
        return self._symbols[0]

    @property
    def objects(self) -> Mapping[str, int]:
        """Address of each other symbol."""
        return self._symbols[1]

    @cached_property
    def _symbols(self) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
        functions, objects = {}, {}
        with _damage(self.path, "while its symbols were read"):
            tables: Iterator[Any] = self._elf.iter_sections("SHT_SYMTAB")
            for symbol in (symbol for table in tables for symbol in table.iter_symbols()):
                if symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name:
                    continue
                if symbol["st_info"]["type"] == "STT_FUNC":
                    functions[symbol.name] = (symbol["st_value"] & ~1, symbol["st_size"])
                else:
                    objects[symbol.name] = symbol["st_value"]
        return functions, objects

    def function(self, name: str) -> int | None:
        """Return the address of the function ``name``, ``None`` if the image has no such symbol.

        The address has no Thumb bit. If several files have a static function of the name, it is that of the last
        symbol. Raises ``InputFileError`` if the symbols are damaged.
        """
        found = self.functions.get(name)
        return None if found is None else found[0]

    def vectors(self) -> tuple[int, tuple[int, ...]] | None:
        """Return the address and the first words of the vector table of an M-profile core.

        It is at the start of a segment, and its second word is the entry. ``None`` if there is none.
        """
        for address, data in self.segments:
            if len(data) >= 4 * _VECTORS:
                words = struct.unpack_from(f"<{_VECTORS}I", data)
                # The second word is the reset vector. A table of a boot loader in the same image has another one, and
                # is passed over.
                if words[1] == self.entry | 1:
                    return address, words
        return None

    def place_of(self, address: int) -> str:
        """Return the function, file and line of ``address``: ``main (main.c:12)``; the address if it has none.

        File and line need debug information, which is decoded at each call and may take seconds. Damaged information is
        ignored; damaged symbols raise ``InputFileError``.
        """
        name = next((name for name, (start, size) in self.functions.items() if start <= address < start + size), None)
        line = self._line_of(address)
        if name is None:
            return f"{address:#010x}"
        return f"{name} ({line})" if line else name

    def _line_of(self, address: int) -> str:
        try:
            return next(self._lines_around(address), "") if self._elf.has_dwarf_info() else ""
        except Exception:  # noqa: BLE001 - pyelftools raises many types, and a line is only a help
            return ""

    def _lines_around(self, address: int) -> Iterator[str]:
        dwarf = self._elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            before = None
            for entry in program.get_entries():
                state = entry.state
                if state is None:
                    continue
                if before is not None and before.address <= address < state.address:
                    # DWARF 5 counts the files of a line program from 0, earlier versions from 1.
                    first = 0 if program["version"] >= 5 else 1
                    name = program["file_entry"][before.file - first].name.decode(errors="replace")
                    yield f"{PurePosixPath(name).name}:{before.line}"
                # A row applies up to the address of the next one, and only inside its sequence: the functions of a unit
                # may be anywhere in the image.
                before = None if state.end_sequence else state


def read_firmware(path: Path) -> Firmware:
    """Return the content of the ELF executable ``path``.

    Symbols are decoded when they are first used, and line numbers when ``Firmware.place_of`` is called, because that
    takes seconds for large images.

    Raises ``InputFileError`` if it cannot be read, is not an ELF executable, is damaged, or has nothing to load; the
    symbols raise it if they are damaged.
    """
    from elftools.elf.elffile import ELFFile

    data = read_bytes(path, "firmware image")
    check_elf_image(data, path)
    with _damage(path, "while it was read"):
        elf = ELFFile(io.BytesIO(data))
        loaded = [segment for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"]]
        # The physical address, not the virtual one: initialised data is loaded into flash (p_paddr) and copied to RAM
        # (p_vaddr) by the startup code.
        segments = tuple((int(segment["p_paddr"]), bytes(segment.data())) for segment in loaded)
        # A writable segment that is not copied elsewhere has changed since it was loaded.
        changing = [
            bool(segment["p_flags"] & _WRITABLE) and segment["p_paddr"] == segment["p_vaddr"] for segment in loaded
        ]
        sections = tuple(
            sorted(
                (int(section["sh_addr"]), int(section["sh_size"]))
                for section in elf.iter_sections()
                if section["sh_flags"] & _ALLOC and section["sh_size"]
            )
        )
        image = Firmware(
            path,
            str(elf["e_machine"]),
            elf.little_endian,
            elf.elfclass,
            int(elf["e_entry"]) & ~1,
            # There may be several subsections of attributes; code for the newest of their architectures is in the
            # image.
            max(_attributes(elf, "TAG_CPU_ARCH"), default=None),
            _fpu(elf),
            segments,
            tuple(segment for segment, changes in zip(segments, changing, strict=True) if not changes),
            sections,
            elf,
        )
    if not segments:
        reason = "the ELF file has nothing to load"
        raise InputFileError("image-empty", place=path, reason=reason, hint="name the linked image, not an object file")
    return image


@contextlib.contextmanager
def _damage(path: Path, when: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - pyelftools raises KeyError, AttributeError, its own errors, ...
        reason = f"damaged ELF image: {type(error).__name__} {when}"
        raise InputFileError("image-damaged", place=path, reason=reason, hint="link it again") from None


def _attributes(elf: ELFFile, tag: str) -> list[int]:
    """Return the values of ``tag`` in Arm's build attributes."""
    from elftools.elf.sections import ARMAttributesSection

    section = elf.get_section_by_name(".ARM.attributes")
    return [
        int(attribute.value)
        for part in (section.iter_subsections() if isinstance(section, ARMAttributesSection) else ())
        for scope in part.iter_subsubsections()
        for attribute in scope.iter_attributes(tag)
    ]


def _fpu(elf: ELFFile) -> str:
    """Return the precision of the FPU that the build attributes describe.

    Tag_FP_arch is 0 without FPU, and 7 or 8 for FPv5, the only FPU of M-profile cores that may have double precision.
    Tag_ABI_HardFP_use is 1 for code that uses single precision alone (Addenda to the ABI for the Arm Architecture).
    """
    fpu = max(_attributes(elf, "TAG_FP_ARCH"), default=0)
    if fpu >= _FPV5 and 1 not in _attributes(elf, "TAG_ABI_HARDFP_USE"):
        return "double"
    return "single" if fpu else ""
