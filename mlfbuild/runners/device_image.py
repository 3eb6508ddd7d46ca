"""Firmware images as a loader sees them: segments, the memory they occupy, and the CPU they are for."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import InputFileError, read_bytes

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_ALLOC = 2  # SHF_ALLOC

_FPV5 = 7
"""The first value of Tag_FP_arch for FPv5."""


@dataclass(frozen=True)
class DeviceImage:
    """The loadable part of an ELF image."""

    path: Path
    machine: str
    """Name in the ELF specification: ``EM_ARM``."""
    little_endian: bool
    bits: int
    entry: int
    architecture: int | None
    """Tag_CPU_arch of Arm's build attributes; ``None`` without them."""
    fpu: str
    """The FPU that its code may use: ``single`` or ``double`` precision; empty for none."""
    segments: tuple[tuple[int, bytes], ...]
    """Load address and content of each segment that is not empty."""
    sections: tuple[tuple[int, int], ...]
    """First address and size of each section that occupies memory of the device, in ascending order."""

    @property
    def size(self) -> int:
        """Bytes that are written to the device."""
        return sum(len(content) for _, content in self.segments)


def device_image(path: Path) -> DeviceImage:
    """Read what a loader needs of the ELF executable ``path``.

    Debug information and symbols are not decoded: ``read_firmware`` does that. Sizes are in bytes; addresses are those
    of the device.

    Raises ``InputFileError`` if it cannot be read, is not an ELF executable, is damaged, or has nothing to load.
    """
    from elftools.elf.elffile import ELFFile

    data = read_bytes(path, "firmware image")
    check_elf_image(data, path)
    try:
        elf = ELFFile(io.BytesIO(data))
        image = DeviceImage(
            path,
            str(elf["e_machine"]),
            elf.little_endian,
            elf.elfclass,
            int(elf["e_entry"]),
            # There may be several subsections of attributes; code for the newest of their architectures is in the
            # image.
            max(_attributes(elf, "TAG_CPU_ARCH"), default=None),
            _fpu(elf),
            tuple(
                # The physical address, not the virtual one: initialised data is loaded into flash (p_paddr) and copied
                # to RAM (p_vaddr) by the startup code.
                (int(segment["p_paddr"]), bytes(segment.data()))
                for segment in elf.iter_segments("PT_LOAD")
                if segment["p_filesz"]
            ),
            _sections(elf),
        )
    except Exception as error:  # noqa: BLE001 - pyelftools raises KeyError, AttributeError, its own errors, ...
        reason = f"damaged ELF image: {type(error).__name__} while it was read"
        raise InputFileError("image-damaged", place=path, reason=reason, hint="link it again") from None
    if not image.segments:
        reason = "the ELF file has nothing to load"
        raise InputFileError("image-empty", place=path, reason=reason, hint="name the linked image, not an object file")
    return image


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


def _sections(elf: ELFFile) -> tuple[tuple[int, int], ...]:
    sections = (
        (int(section["sh_addr"]), int(section["sh_size"]))
        for section in elf.iter_sections()
        if section["sh_flags"] & _ALLOC and section["sh_size"]
    )
    return tuple(sorted(sections))
