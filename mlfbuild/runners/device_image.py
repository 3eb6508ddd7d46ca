"""Firmware images as a loader sees them: segments, and the checks before anything is written to a device."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import InputFileError, UnsupportedModelError, read_bytes
from mlfbuild.targets import MemoryRegion


@dataclass(frozen=True)
class DeviceImage:
    """The loadable part of an ELF image."""

    path: Path
    machine: str
    """Name in the ELF specification: ``EM_ARM``."""
    little_endian: bool
    bits: int
    entry: int
    segments: tuple[tuple[int, bytes], ...]
    """Load address and content of each segment that is not empty."""

    @property
    def size(self) -> int:
        """Bytes that are written to the device."""
        return sum(len(content) for _, content in self.segments)


def device_image(path: Path) -> DeviceImage:
    """Read the image ``path``; raises ``InputFileError`` if it is not an ELF executable."""
    from elftools.elf.elffile import ELFFile

    data = read_bytes(path, "firmware image")
    check_elf_image(data, path)
    try:
        elf = ELFFile(io.BytesIO(data))
        segments = tuple(
            (int(segment["p_paddr"]), bytes(segment.data()))
            for segment in elf.iter_segments("PT_LOAD")
            if segment["p_filesz"]
        )
        image = DeviceImage(path, str(elf["e_machine"]), elf.little_endian, elf.elfclass, int(elf["e_entry"]), segments)
    except Exception as error:  # noqa: BLE001 - pyelftools raises KeyError, AttributeError, its own errors, ...
        reason = f"damaged ELF image: {type(error).__name__} while it was read"
        raise InputFileError("image-damaged", place=path, reason=reason, hint="link it again") from None
    if not segments:
        reason = "the ELF file has nothing to load"
        raise InputFileError("image-empty", place=path, reason=reason, hint="name the linked image, not an object file")
    return image


def check_image_fits(image: DeviceImage, memory: Sequence[MemoryRegion], device: str) -> None:
    """Raise ``UnsupportedModelError`` if a segment begins in a region of ``memory`` and goes beyond its end."""
    for origin, content in image.segments:
        for region in memory:
            room = region.origin + region.size - origin
            if origin >= region.origin and 0 < room < len(content):
                raise UnsupportedModelError(
                    "image-too-large",
                    place=image.path,
                    reason=f"{len(content):,} bytes are loaded at {origin:#010x}, but the memory {region.name} of"
                    f" {device} has room for {room:,}",
                    hint="link the image for this device, or correct the memory of its runner",
                )


_ARCHITECTURES = {"EM_ARM": "arm", "EM_RISCV": "riscv"}
"""Begin of GDB's name of the architecture by the machine of an ELF file."""


def check_machine(image: DeviceImage, architecture: str, device: str) -> None:
    """Raise ``UnsupportedModelError`` if a device with GDB's ``architecture`` cannot run ``image``."""
    flaw = ""
    if not architecture.startswith(_ARCHITECTURES.get(image.machine, image.machine)):
        flaw = f"it is for {image.machine.removeprefix('EM_')}, but the device is {architecture or 'unknown'}"
    elif image.bits != 32:
        flaw = f"it is for a CPU with {image.bits} bits"
    elif not image.little_endian:
        flaw = "it is big-endian, but the device is little-endian"
    if flaw:
        raise UnsupportedModelError(
            "image-for-another-device",
            place=image.path,
            reason=f"the image cannot run on {device}: {flaw}",
            hint="build it for the CPU of this device",
        )
