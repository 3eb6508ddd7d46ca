"""Checks of a firmware image before anything is written to a device: its CPU, and the size of its memories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlfbuild.core import ProcessFailedError, UnsupportedModelError, read_bytes
from mlfbuild.runners.firmware import Firmware, read_firmware
from mlfbuild.targets import CPUS, Board, Cpu, MemoryRegion

_ARCHITECTURES = {"EM_ARM": "arm", "EM_RISCV": "riscv"}
"""Begin of GDB's name of the architecture by the machine of an ELF file."""
_NOT_DESCRIBED = "i386"
"""GDB's architecture if the server does not describe the device; GDB takes it from the image then."""
_ARM, _BITS = 0x41, 32
"""The implementer in CPUID, and the size of addresses."""
_V6M, _V7M, _V7EM = {11: "Armv6-M", 12: "Armv6S-M"}, {10: "Armv7-M"}, {13: "Armv7E-M"}
_V8M_BASE, _V8M, _V81M = {16: "Armv8-M.baseline"}, {17: "Armv8-M.mainline"}, {21: "Armv8.1-M.mainline"}
_NAMES = {**_V6M, **_V7M, **_V7EM, **_V8M_BASE, **_V8M, **_V81M}
"""Values of Tag_CPU_arch ("Addenda to, and Errata in, the ABI for the Arm Architecture")."""
# An M33 and later also run Armv6-M and Armv7-M code, because each profile contains the instructions of the older ones;
# the baseline cores lack what Armv7-M adds.
_CORES = {
    0xC20: ("Cortex-M0", _V6M),
    0xC60: ("Cortex-M0+", _V6M),
    0xC23: ("Cortex-M3", _V6M | _V7M),
    0xC24: ("Cortex-M4", _V6M | _V7M | _V7EM),
    0xC27: ("Cortex-M7", _V6M | _V7M | _V7EM),
    0xD20: ("Cortex-M23", _V6M | _V8M_BASE),
    0xD21: ("Cortex-M33", _V6M | _V7M | _V7EM | _V8M_BASE | _V8M),
    0xD22: ("Cortex-M55", _NAMES),
    0xD23: ("Cortex-M85", _NAMES),
}
"""Name, and the architectures whose code it runs, by the part number in CPUID (technical reference manuals)."""
MVFR0 = 0xE000EF40
"""The register that describes the FPU: bits 7-4 are 0 without single precision, bits 11-8 without double precision.
It reads as zero without an FPU (Armv7-M and Armv8-M Architecture Reference Manuals)."""
_REGION = re.compile(r"^\d+\s+y\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s+(.*)", re.MULTILINE)


def check_image(image: Firmware, architecture: str, cpuid: int | None, mvfr0: int | None, device: str) -> None:
    """Raise ``UnsupportedModelError`` if ``device`` has another CPU than ``image`` is for, or a smaller FPU.

    ``architecture`` is GDB's name of the device's architecture (``arm``), ``cpuid`` and ``mvfr0`` are the registers
    CPUID and MVFR0 of an M-profile core, ``None`` for others. Cores that are not in the table pass: a new part must not
    be refused because mlfbuild does not know it.
    """
    _refuse(image.path, device, _flaws(image, architecture, cpuid, mvfr0))


def check_fpu(image: Path, cpu: Cpu) -> None:
    """Raise ``UnsupportedModelError`` if ``image`` is for an FPU that no core like ``cpu`` has; files but ELF pass.

    Whether a core has its optional FPU is known only to the device: ``check_image`` asks it.
    """
    # The base core, not the CPU of the target: flags of a CPU may switch the FPU off although the part has one.
    core = CPUS[cpu.core]
    if core.machine != "arm" or read_bytes(image, "image")[:4] != b"\x7fELF":
        return
    single = any(flag.endswith("-sp-d16") for flag in core.flags)
    found = "" if "fpu" not in core.features else "single" if single else "double"
    _refuse(image, core.name, _fpu_flaw(read_firmware(image).fpu, found, core.name))


def check_for_board(image: Path, cpu: Cpu, board: Board) -> None:
    """Raise ``UnsupportedModelError`` if ``image`` is for another core than ``cpu``, or for other memories.

    ``board`` is emulated, and its core runs code for ``cpu``. The memories are those of the board.
    """
    firmware, core = read_firmware(image), CPUS[cpu.core]
    architecture = "arm" if core.machine == "arm" else "riscv"
    part = next((number for number, (name, _) in _CORES.items() if name.lower().replace("+", "plus") == core.name), 0)
    _refuse(image, core.name, _flaws(firmware, architecture, _ARM << 24 | part << 4, None))
    check_fpu(image, cpu)
    check_size(firmware, (board.flash, board.ram, *board.others), board.name, all_memory=True)


def _refuse(image: Path, device: str, flaws: Iterator[str]) -> None:
    flaw = next(flaws, None)
    if flaw is not None:
        reason = f"the image cannot run on {device}: {flaw}"
        hint = "build it for the CPU of this device"
        raise UnsupportedModelError("image-for-another-device", place=image, reason=reason, hint=hint)


def not_written(image: str, reason: str, device: str, output: str) -> ProcessFailedError:
    """Return the error for an image that ``device`` did not take; ``output`` is what its server or library printed."""
    return ProcessFailedError(
        "device-not-written",
        output,
        place=device,
        reason=f"{image} cannot be loaded: {reason}",
        hint="check that the image is linked for this part, and that its flash is not write-protected",
    )


def _flaws(image: Firmware, architecture: str, cpuid: int | None, mvfr0: int | None) -> Iterator[str]:
    machine = image.machine.removeprefix("EM_")
    if architecture != _NOT_DESCRIBED and not architecture.startswith(_ARCHITECTURES.get(image.machine, machine)):
        yield f"it is for {machine}, but the device is {architecture or 'unknown'}"
    if image.bits != _BITS:
        yield f"it is for a CPU with {image.bits} bits"
    if not image.little_endian:
        yield "it is big-endian, but the device is little-endian"
    if cpuid is not None and cpuid >> 24 == _ARM and (cpuid >> 4 & 0xFFF) in _CORES:
        name, runs = _CORES[cpuid >> 4 & 0xFFF]
        wanted = image.architecture
        if wanted in _NAMES and wanted not in runs:
            yield f"it is for {_NAMES[wanted]}, but the device is a {name}"
        if mvfr0 is not None:
            yield from _fpu_flaw(
                image.fpu, "double" if mvfr0 >> 8 & 0xF else "single" if mvfr0 >> 4 & 0xF else "", name
            )


def _fpu_flaw(wanted: str, found: str, name: str) -> Iterator[str]:
    """Yield why the core ``name`` with the FPU ``found`` cannot run code for the FPU ``wanted``.

    Each is ``single``, ``double``, or empty for none.
    """
    if wanted and not found:
        yield f"it is for an FPU, but the {name} has none"
    elif wanted == "double" and found == "single":
        yield f"it is for an FPU with double precision, but that of the {name} has single precision"


def check_size(image: Firmware, memory: Sequence[MemoryRegion], device: str, *, all_memory: bool = False) -> None:
    """Raise ``UnsupportedModelError`` if a part of the image goes beyond the region of ``memory`` in which it begins.

    Load addresses and run-time sections are both checked, in bytes. With ``all_memory``, whatever is loaded has to
    begin in one of the regions; otherwise parts outside of them pass. ``device`` is the name in messages.
    """
    loaded = [(origin, len(content)) for origin, content in image.segments]
    for origin, size in (*loaded, *image.sections):
        # Begin decides. What begins in no known region may be in memory that the project file does not describe, such
        # as external flash; it passes unless the list is complete.
        region = next((each for each in memory if 0 <= origin - each.origin < each.size), None)
        if region is None and all_memory and (origin, size) in loaded:
            raise _too_large(image, f"{size:,} bytes are loaded at {origin:#010x}, where {device} has no memory")
        if region is not None and origin + size > region.origin + region.size:
            room = region.origin + region.size - origin
            reason = f"{size:,} bytes begin at {origin:#010x}, but {region.name} of {device} ends after {room:,} bytes"
            raise _too_large(image, reason)


def _too_large(image: Firmware, reason: str) -> UnsupportedModelError:
    hint = "link the image for the memories of this device, or correct the memory of its runner"
    return UnsupportedModelError("image-too-large", place=image.path, reason=reason, hint=hint)


def memory_map(printed: str) -> tuple[MemoryRegion, ...]:
    """Return the regions that GDB ``printed`` for ``info mem``; adjacent ones, such as flash sectors, are joined.

    Only enabled regions count. They are called ``the flash`` or ``the memory``, because GDB knows no names. Empty if
    the server does not describe its memories.
    """
    regions: list[MemoryRegion] = []
    for low, high, attributes in _REGION.findall(printed):
        # GDB prints 0 for an end at 4 GiB.
        first, end = int(low, 16), int(high, 16) or 1 << _BITS
        name = "the flash" if "flash" in attributes else "the memory"
        if regions and regions[-1].name == name and regions[-1].origin + regions[-1].size == first:
            first = regions.pop().origin
        regions.append(MemoryRegion(name, first, end - first))
    return tuple(regions)
