"""Disassemble an image with objdump of GNU binutils, which is installed with GCC; run once for each image."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import (
    InputFileError,
    ToolNotFoundError,
    find_tool,
    printable,
    read_bytes,
    run,
    sha256,
    tool_variable,
)
from mlfbuild.timing.listing import Disassembly

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

# For one image. Those with megabytes of code take some seconds; a damaged one must not hang a report.
_SECONDS = 120
_COMPILERS = {"EM_ARM": "arm-none-eabi-gcc", "EM_RISCV": "riscv64-unknown-elf-gcc"}
_ALLOC = 2  # SHF_ALLOC
_V8_1_M = 21
"""Tag_CPU_arch of Armv8.1-M Mainline (ABI for Arm, addenda32); objdump assumes that it has no MVE."""


_WIDE = 0xE800
"""The first half of a Thumb instruction of 32 bits is not less."""


@dataclass(frozen=True)
class LinkedCode:
    """An image with its listing and the bytes of its sections."""

    machine: str
    """Name of the processor in ELF's terms: ``EM_ARM``, ``EM_RISCV``."""
    listing: Disassembly
    sections: tuple[tuple[int, bytes], ...]
    """First address and content of each section with content."""

    def word(self, address: int) -> int | None:
        """Return the word at an address of the image; ``None`` if there is none.

        It is unsigned and little-endian, and may be at any alignment. Memory without content in the file, such as
        ``.bss``, has none.
        """
        return self._number(address, 4)

    def half(self, address: int) -> int | None:
        """Return the two bytes at an address of the image; ``None`` if there are none.

        They are unsigned and little-endian.
        """
        return self._number(address, 2)

    def size(self, address: int) -> int:
        """Return the bytes of the instruction at an address of the image, by its first half: 2 or 4.

        The listing does not show the width of every instruction. Thumb: Armv7-M Architecture Reference Manual, A5.1.
        """
        half = self.half(address) or 0
        return 4 if (half >= _WIDE if self.machine == "EM_ARM" else half & 3 == 3) else 2

    def _number(self, address: int, size: int) -> int | None:
        for start, data in self.sections:
            if start <= address <= start + len(data) - size:
                return int.from_bytes(data[address - start : address - start + size], "little")
        return None


def disassembled(path: Path) -> LinkedCode | None:
    """Return the code of the image ``path``; ``None`` if it is not for 32-bit Arm or RISC-V, little-endian.

    Raises ``ToolNotFoundError`` without objdump for the processor, ``InputFileError`` for a damaged image, and
    ``ProcessFailedError`` if objdump fails.
    """
    with opened_image(path) as (elf, data):
        machine = elf["e_machine"] if elf.little_endian else ""
        # Literal pools and jump tables are read from here: the listing prints them as data only if mapping symbols mark
        # them.
        sections = tuple(
            (section["sh_addr"], section.data())
            for section in elf.iter_sections()
            if section["sh_flags"] & _ALLOC and section["sh_size"] and section["sh_type"] != "SHT_NOBITS"
        )
        helium = _architecture(elf) >= _V8_1_M
    if machine not in _COMPILERS:
        return None
    # force-thumb: these cores have no Arm state, which objdump would otherwise take for possible.
    options = ("-m", "armv8.1-m.main", "-M", "force-thumb") if helium else ()
    return LinkedCode(machine, _listing(_objdump(_COMPILERS[machine]), options, path, sha256(data)), sections)


@contextlib.contextmanager
def opened_image(path: Path) -> Iterator[tuple[ELFFile, bytes]]:
    """Open the ELF file ``path`` for the block, which gets its content as well.

    Raises ``InputFileError`` if it is missing or no ELF file, or if the block finds it to be damaged.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    data = read_bytes(path, "image")
    check_elf_image(data, path)
    try:
        yield ELFFile(io.BytesIO(data)), data
    except InputFileError:
        raise
    # pyelftools checks little: damaged files end in errors of all these types.
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputFileError(
            "image-damaged", place=path, reason=f"the ELF image is damaged ({printable(reason)})", hint="build it again"
        ) from None


@functools.lru_cache(maxsize=1)
def _listing(objdump: Path, options: tuple[str, ...], path: Path, _content: str) -> Disassembly:
    """Return the listing of ``path``, cached for the parts of a report; ``_content`` is its hash."""
    # -z: runs of zeros are also listed, because they may be instructions. -w: an instruction never takes two lines.
    # LC_ALL=C: the words of objdump are translated.
    command: list[str | Path] = [objdump, "-d", "-z", "-w", "--no-show-raw-insn", *options, path]
    return Disassembly(run(command, env={**os.environ, "LC_ALL": "C"}, timeout=_SECONDS))


def _objdump(compiler: str) -> Path:
    """Return the objdump in the compiler's folder, unless its environment variable names another one."""
    name = compiler.removesuffix("gcc") + "objdump"
    if not os.environ.get(tool_variable(name)):
        try:
            found = find_tool(compiler)
        except ToolNotFoundError:
            return find_tool(name)
        # Of the same release: an older objdump in ``PATH`` may not know the instructions that this compiler writes.
        beside = found.with_name(re.sub(r"gcc([^/]*)$", r"objdump\1", found.name))
        if beside != found and beside.is_file():
            return beside
    return find_tool(name)


def _architecture(elf: ELFFile) -> int:
    """Return Tag_CPU_arch of the image's build attributes; 0 if it has none."""
    from elftools.elf.sections import ARMAttributesSection

    section = elf.get_section_by_name(".ARM.attributes")
    attributes = (
        attribute
        for part in (section.iter_subsections() if isinstance(section, ARMAttributesSection) else ())
        for scope in part.iter_subsubsections()
        for attribute in scope.iter_attributes("TAG_CPU_ARCH")
    )
    return max((int(attribute.value) for attribute in attributes), default=0)
