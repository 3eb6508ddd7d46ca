"""The target of a compiled object: machine, architecture, and the registers for floats.

Arm objects record it in the section ``.ARM.attributes`` ("Addenda to, and Errata in, the ABI for the Arm
Architecture"), RISC-V objects in the flags of the ELF header ("RISC-V ELF Specification").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.c_analysis.objects import opened_object, reading

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_FILE = 1  # Tag_File: attributes of the whole object
_TEXTS = {4, 5}  # Tag_CPU_raw_name, Tag_CPU_name; above 32, odd tags have texts
_COMPATIBILITY = 32  # a number and a text
CPU_ARCH, CPU_ARCH_PROFILE, FP_ARCH, ABI_VFP_ARGS, MVE_ARCH = 6, 7, 10, 28, 48
"""Tags of ``ObjectFacts.attributes``."""
# EF_RISCV_FLOAT_ABI: two bits, of which 0 is the soft-float ABI and 1 to 3 pass single, double or quad floats in
# FPU registers.
_RISCV_FLOAT_ABI = 0x0006


@dataclass(frozen=True)
class ObjectFacts:
    """The target that an ELF object was compiled for."""

    machine: str
    """Its name in the ELF specification, such as ``EM_ARM``, ``EM_X86_64`` or ``EM_RISCV``."""
    bits: int
    attributes: dict[int, int]
    """Numbers of Arm's attributes by tag; empty if the object has none, for example because it has only data."""
    hard_float: bool | None
    """Whether functions take floats in FPU registers; ``None`` if the object does not record it or works with both."""


def object_facts(data: bytes, where: str) -> ObjectFacts:
    """Return the target that the ELF relocatable object ``data`` (``.o``) was compiled for.

    ``where`` names it in messages. Raises ``InputFileError`` if it is not such an object or is damaged.
    """
    with reading(where, "attributes"):
        elf = opened_object(data, where)
        machine, bits, flags = elf["e_machine"], elf.elfclass, elf["e_flags"]
        attributes = dict(_attributes(elf, data)) if machine == "EM_ARM" else {}
    hard_float: bool | None = None
    if machine == "EM_RISCV":
        hard_float = bool(flags & _RISCV_FLOAT_ABI)
    elif attributes:
        # 0: integer registers; 1: FPU registers; 2: toolchain-specific; 3: compatible with both
        # Tags with the value 0 may be left out of the section, so a missing one means integer registers.
        hard_float = {0: False, 1: True}.get(attributes.get(ABI_VFP_ARGS, 0))
    return ObjectFacts(str(machine), bits, attributes, hard_float)


def _attributes(elf: ELFFile, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield (tag, number) of the whole object. Each step moves forward, so the time is linear in the section's size."""
    for section in elf.iter_sections():
        if section.name != ".ARM.attributes":
            continue
        content = data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
        at = 1  # after the format's version, "A"
        while at + 4 <= len(content):
            (length,) = struct.unpack_from("<I" if elf.little_endian else ">I", content, at)
            # Sections of other vendors have their own tags.
            if content.startswith(b"aeabi\0", at + 4):
                yield from _numbers(content[at + 10 : at + length], elf.little_endian)
            # A damaged length of 0 would be read forever.
            at += max(length, 4)


def _numbers(content: bytes, little_endian: bool) -> Iterator[tuple[int, int]]:
    # Each subsection has a tag for its scope (file, section or symbol) and a length that counts both. Only those of
    # the whole file decide what the object needs; the rest are skipped by their length.
    at = 0
    while at + 5 <= len(content):
        (length,) = struct.unpack_from("<I" if little_endian else ">I", content, at + 1)
        end = min(at + length, len(content))
        inner = at + 5
        while content[at] == _FILE and inner < end:
            tag, inner = _uleb128(content, inner)
            # Values of unknown tags must be skipped exactly, or all that follow are misread: the specification fixes
            # for each number whether a number or a text follows, and only Tag_compatibility has both.
            if tag == _COMPATIBILITY or not (tag in _TEXTS or (tag > _COMPATIBILITY and tag % 2)):
                value, inner = _uleb128(content, inner)
                yield tag, value
            if tag == _COMPATIBILITY or tag in _TEXTS or (tag > _COMPATIBILITY and tag % 2):
                inner = content.index(b"\0", inner) + 1
        at += max(length, 5)


def _uleb128(content: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while shift < 64:  # longer ones are damaged
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError(at)
