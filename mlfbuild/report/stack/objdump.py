"""Disassemble an image with objdump of GNU binutils, which is installed with GCC; run once for each image."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import ToolNotFoundError, find_tool, read_bytes, run, sha256, tool_variable
from mlfbuild.report.sizes.image import damaged_image
from mlfbuild.report.stack import arm, riscv
from mlfbuild.report.stack.listing import Disassembly
from mlfbuild.report.stack.steps import Decoder, Words

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_SECONDS = 120
_COMPILERS: dict[str, tuple[str, Decoder]] = {
    "EM_ARM": ("arm-none-eabi-gcc", arm.decode),
    "EM_RISCV": ("riscv64-unknown-elf-gcc", riscv.decode),
}
_ALLOC = 2  # SHF_ALLOC
_V8_1_M = 21
"""Tag_CPU_arch of Armv8.1-M Mainline (ABI for Arm, addenda32); objdump assumes that it has no MVE."""


@dataclass(frozen=True)
class ImageCode:
    """The code of an image."""

    listing: Disassembly
    decode: Decoder
    words: Words
    thumb: bool
    """Whether pointers to functions are odd."""


def read_program(path: Path) -> ImageCode | None:
    """Return the code of the image ``path``; ``None`` if it is not for 32-bit Arm or RISC-V.

    Raises ``ToolNotFoundError`` without objdump for the processor, ``InputFileError`` for a damaged image, and
    ``ProcessFailedError`` if objdump fails.
    """
    machine, words, options = _contents(path)
    if machine not in _COMPILERS:
        return None
    compiler, decode = _COMPILERS[machine]
    listing = _listing(_objdump(compiler), tuple(options), path, sha256(read_bytes(path, "image")))
    return ImageCode(listing, decode, words, thumb=machine == "EM_ARM")


@functools.lru_cache(maxsize=1)
def _listing(objdump: Path, options: tuple[str, ...], path: Path, _content: str) -> Disassembly:
    """Return the listing of ``path``, cached for the parts of a report; ``_content`` is its hash."""
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
        beside = found.with_name(re.sub(r"gcc([^/]*)$", r"objdump\1", found.name))
        if beside != found and beside.is_file():
            return beside
    return find_tool(name)


def _contents(path: Path) -> tuple[str, Words, list[str]]:
    """Return the processor of an image, a function that reads its words, and options for objdump.

    The processor is empty if the image is big-endian.
    """
    import io

    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(read_bytes(path, "image")))
        parts = [
            (section["sh_addr"], section.data())
            for section in elf.iter_sections()
            if section["sh_flags"] & _ALLOC and section["sh_size"] and section["sh_type"] != "SHT_NOBITS"
        ]
        helium = _architecture(elf) >= _V8_1_M
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, AssertionError) as error:
        raise damaged_image(path, str(error)) from None

    def words(address: int) -> int | None:
        found = next(((start, data) for start, data in parts if start <= address <= start + len(data) - 4), None)
        if found is None:
            return None
        start, data = found
        return int.from_bytes(data[address - start : address - start + 4], "little")

    return (
        elf["e_machine"] if elf.little_endian else "",
        words,
        ["-m", "armv8.1-m.main", "-M", "force-thumb"] if helium else [],
    )


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
