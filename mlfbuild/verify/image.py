"""The self-description of a test-firmware image, read from an untrusted ELF file."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import InputFileError, UsageError, quoted, read_bytes
from mlfbuild.jobs.tree import HOST, SYMBOL, Subject
from mlfbuild.project import TRANSPORTS
from mlfbuild.targets import BOARDS

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

# Bytes: the image may come from someone else, and its tables may claim any size.
_LARGEST_SUBJECT = 1 << 20
_LARGEST_TENSOR = 1 << 30
_ELEMENTS = {
    "bool": 1,
    **{f"{kind}{8 * size}": size for kind in ("int", "uint") for size in (1, 2, 4, 8)},
    **{f"float{8 * size}": size for size in (2, 4, 8)},
}
"""Bytes of an element, by numpy's name of its type."""


def read_subject(image: Path) -> Subject:
    """Return the module that the test firmware ``image`` runs, and its board.

    Raises ``InputFileError`` if the file is not an ELF image, not test firmware, or damaged. Time and memory are
    bounded by the length of the file, regardless of what its tables claim.
    """
    where = str(image)
    content = _constant(read_bytes(image, "image"), where)
    subject = Subject.from_json(content, f"{where}: {SYMBOL}")
    # Test firmware for a device has the way in which the device is reached as its board (Device.name).
    if subject.board in TRANSPORTS:
        reason = f"the image was linked for the device of a target with the runner {quoted(subject.board)}"
        hint = "verify the target: mlfbuild verify --target NAME"
        raise UsageError("image-for-a-device", place=where, reason=reason, hint=hint)
    if subject.board != HOST and subject.board not in BOARDS:
        raise InputFileError(
            "unknown-board-in-image",
            place=where,
            reason=f"this version of mlfbuild does not know the board {quoted(subject.board)}",
            hint="use the version of mlfbuild that built the image",
        )
    check_tensors(subject, f"{where}: {SYMBOL}")
    return subject


def check_tensors(subject: Subject, where: str) -> None:
    """Raise ``InputFileError`` if a name, size or shape of ``subject``, from the file ``where``, is not possible.

    Sizes are in bytes and at most 1 GiB; a tensor's size must be that of its shape and type. The name must be an
    identifier because it becomes part of paths and C names.
    """
    if not subject.name.isidentifier() or not subject.inputs or not subject.outputs:
        raise InputFileError(
            "test-firmware-damaged",
            place=where,
            reason="it names no module with inputs and outputs",
            hint="build it again",
        )
    for tensor in (*subject.inputs, *subject.outputs):
        size = _ELEMENTS.get(tensor.dtype, 0)
        whole = size > 0 and 0 < tensor.size <= _LARGEST_TENSOR and tensor.size % size == 0
        if not whole or (tensor.shape is not None and _bytes(tensor.shape, size) != tensor.size):
            raise InputFileError(
                "test-firmware-damaged",
                place=f"{where}: tensor {quoted(tensor.name)}",
                reason=f"{tensor.size} bytes do not fit its shape and type {quoted(tensor.dtype)}",
                hint="build it again",
            )


def _bytes(shape: tuple[int, ...], itemsize: int) -> int:
    size = itemsize
    for extent in shape:
        size *= extent
        if size > _LARGEST_TENSOR:  # too large in any case, and the numbers stay small
            break
    return size


# ELF -----------------------------------------------------------------------------------------------------------------

_LAYOUTS = {32: ("IIIBBH", (1, 2, 5)), 64: ("IBBHQQ", (4, 5, 3))}
"""Of a symbol, by the class of the file: its fields, and the positions of st_value, st_size and st_shndx."""


def _constant(data: bytes, where: str) -> bytes:
    """Return the content of the constant ``SYMBOL``, without the final zero byte."""
    from elftools.elf.elffile import ELFFile

    check_elf_image(data, where)
    try:
        found = _found(ELFFile(io.BytesIO(data)), data, where)
    except InputFileError:
        raise
    except Exception as error:  # noqa: BLE001 - pyelftools raises KeyError, AttributeError, its own errors, ...
        raise _damaged(where, f"{type(error).__name__} while its symbols were read") from None
    if found is None:
        raise InputFileError(
            "not-test-firmware",
            place=where,
            reason=f"the image is not test firmware of mlfbuild, or is stripped (it has no symbol {SYMBOL})",
            hint="build the target mlf_<model>_verify of a tree from `mlfbuild build --tree FOLDER --with-verify`",
        )
    return found.rstrip(b"\0")


def _found(elf: ELFFile, data: bytes, where: str) -> bytes | None:
    """Return the content of the constant ``SYMBOL``; ``None`` if the image does not define it."""
    # pyelftools would read as many headers as the field claims.
    if elf.num_sections() * elf["e_shentsize"] > len(data):
        raise _damaged(where, "its section table is larger than the file")
    fields, (at_value, at_size, at_section) = _LAYOUTS[elf.elfclass]
    layout, wanted = struct.Struct(("<" if elf.little_endian else ">") + fields), SYMBOL.encode() + b"\0"
    # The description is a constant with a known symbol: it needs no section of its own in the user's linker script.
    for table in elf.iter_sections("SHT_SYMTAB"):
        names, entries = _content(data, elf.get_section(table["sh_link"]), where), _content(data, table, where)
        # Not pyelftools' own symbols: it reads each name to its zero byte, however far that is.
        for symbol in layout.iter_unpack(entries[: len(entries) // layout.size * layout.size]):
            if names[symbol[0] : symbol[0] + len(wanted)] != wanted:
                continue
            section, size = elf.get_section(symbol[at_section]), symbol[at_size]
            start = symbol[at_value] - section["sh_addr"]
            # A constant in .bss has no bytes in the file.
            if size > _LARGEST_SUBJECT or section["sh_type"] == "SHT_NOBITS":
                raise _damaged(where, f"its symbol {SYMBOL} is not a constant")
            if not 0 <= start <= start + size <= section["sh_size"]:
                raise _damaged(where, f"its symbol {SYMBOL} is outside its section")
            return _content(data, section, where)[start : start + size]
    return None


def _content(data: bytes, section: Section, where: str) -> bytes:
    offset, size = section["sh_offset"], section["sh_size"]
    if offset + size > len(data):
        raise _damaged(where, "a table or symbol is outside the file")
    return data[offset : offset + size]


def _damaged(where: str, reason: str) -> InputFileError:
    return InputFileError(
        "image-damaged", place=where, reason=f"the ELF image is damaged ({reason})", hint="build it again"
    )
