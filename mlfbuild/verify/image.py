"""The self-description of a test-firmware image, read from an untrusted ELF file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.build.tree import HOST, SYMBOL, Subject
from mlfbuild.core import InputFileError, quoted, read_bytes
from mlfbuild.targets import BOARDS

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
    _check(subject, where)
    return subject


def _check(subject: Subject, where: str) -> None:
    if subject.board != HOST and subject.board not in BOARDS:
        raise InputFileError(
            "unknown-board-in-image",
            place=where,
            reason=f"this version of mlfbuild does not know the board {quoted(subject.board)}",
            hint="use the version of mlfbuild that built the image",
        )
    if not subject.name.isidentifier() or not subject.inputs or not subject.outputs:
        raise InputFileError(
            "test-firmware-damaged",
            place=f"{where}: {SYMBOL}",
            reason="it names no module with inputs and outputs",
            hint="build the image again",
        )
    for tensor in (*subject.inputs, *subject.outputs):
        size = _ELEMENTS.get(tensor.dtype, 0)
        whole = size > 0 and 0 < tensor.size <= _LARGEST_TENSOR and tensor.size % size == 0
        if not whole or (tensor.shape is not None and _bytes(tensor.shape, size) != tensor.size):
            raise InputFileError(
                "test-firmware-damaged",
                place=f"{where}: {SYMBOL}: tensor {quoted(tensor.name)}",
                reason=f"{tensor.size} bytes do not fit its shape and type {quoted(tensor.dtype)}",
                hint="build the image again",
            )


def _bytes(shape: tuple[int, ...], itemsize: int) -> int:
    size = itemsize
    for extent in shape:
        size *= extent
        if size > _LARGEST_TENSOR:  # too large in any case, and the numbers stay small
            break
    return size


# ELF -----------------------------------------------------------------------------------------------------------------

_SYMTAB, _NOBITS = 2, 8  # SHT_*
_IDENT = 16  # bytes


@dataclass(frozen=True)
class _Layout:
    """The structures of a class of ELF files, in the format of ``struct``."""

    header: str
    section: str
    symbol: str
    symbol_fields: tuple[int, int, int]
    """Positions of st_value, st_size and st_shndx in a symbol; st_name comes first."""


_LAYOUTS = {
    1: _Layout("HHIIIIIHHHHHH", "10I", "IIIBBH", (1, 2, 5)),
    2: _Layout("HHIQQQIHHHHHH", "IIQQQQIIQQ", "IBBHQQ", (4, 5, 3)),
}


@dataclass(frozen=True)
class _Section:
    kind: int
    address: int
    offset: int
    size: int
    link: int


def _constant(data: bytes, where: str) -> bytes:
    """Return the content of the constant ``SYMBOL``, without the final zero byte."""
    if not data.startswith(b"\x7fELF"):
        raise InputFileError(
            "not-an-elf-image",
            place=where,
            reason="the file is not an ELF image",
            hint="name the ELF file that the linker wrote, not a .bin or .hex file",
        )
    if len(data) < 64 or data[4] not in _LAYOUTS or data[5] not in {1, 2}:
        raise _damaged(where, "its header cannot be read")
    layout, order = _LAYOUTS[data[4]], "<" if data[5] == 1 else ">"
    sections = _sections(data, layout, order, where)
    for table in sections:
        if table.kind == _SYMTAB:
            found = _symbol(data, table, sections, layout, order, where)
            if found is not None:
                return found.rstrip(b"\0")
    raise InputFileError(
        "not-test-firmware",
        place=where,
        reason=f"the image is not test firmware of mlfbuild, or is stripped (it has no symbol {SYMBOL})",
        hint="build the target mlf_<model>_verify of a tree from `mlfbuild build --tree FOLDER --with-verify`",
    )


def _sections(data: bytes, layout: _Layout, order: str, where: str) -> list[_Section]:
    header = struct.unpack_from(order + layout.header, data, _IDENT)
    start, entry_size, count = header[5], header[10], header[11]
    entry = struct.Struct(order + layout.section)
    if entry_size != entry.size and count:
        raise _damaged(where, f"an entry of its section table has {entry_size} bytes")
    table = _part(data, start, entry_size * count, where)
    return [_Section(fields[1], *fields[3:7]) for fields in entry.iter_unpack(table)]


def _symbol(
    data: bytes, table: _Section, sections: list[_Section], layout: _Layout, order: str, where: str
) -> bytes | None:
    """Return the content of the constant ``SYMBOL``, or ``None`` if the symbol table does not have it."""
    entry, wanted = struct.Struct(order + layout.symbol), SYMBOL.encode() + b"\0"
    names = _content(data, _one_of(sections, table.link, where), where)
    entries = _content(data, table, where)
    for fields in entry.iter_unpack(entries[: len(entries) // entry.size * entry.size]):
        if names[fields[0] : fields[0] + len(wanted)] == wanted:
            value, size, index = (fields[place] for place in layout.symbol_fields)
            section = _one_of(sections, index, where)
            if not section.address <= value <= value + size <= section.address + section.size:
                raise _damaged(where, f"its symbol {SYMBOL} is outside its section")
            if size > _LARGEST_SUBJECT or section.kind == _NOBITS:
                raise _damaged(where, f"its symbol {SYMBOL} is not a constant")
            return _part(data, section.offset + value - section.address, size, where)
    return None


def _one_of(sections: list[_Section], index: int, where: str) -> _Section:
    if index >= len(sections):
        raise _damaged(where, f"it has no section {index}")
    return sections[index]


def _content(data: bytes, section: _Section, where: str) -> bytes:
    return _part(data, section.offset, section.size, where)


def _part(data: bytes, offset: int, size: int, where: str) -> bytes:
    if offset + size > len(data):
        raise _damaged(where, "a table or symbol is outside the file")
    return data[offset : offset + size]


def _damaged(where: str, reason: str) -> InputFileError:
    return InputFileError(
        "image-damaged", place=where, reason=f"the ELF image is damaged ({reason})", hint="build it again"
    )
