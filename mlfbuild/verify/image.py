"""What an image of test firmware says of itself, read from an ELF file that nobody vouches for."""

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
_NOT_ONE = (
    f"is no test firmware of mlfbuild (no symbol {SYMBOL}, or stripped); build the target mlf_<model>_verify of a tree "
    "that `mlfbuild build --tree <folder> --with-verify` wrote"
)


def read_subject(image: Path) -> Subject:
    """Return what the test firmware ``image`` checks.

    Raises ``InputFileError`` where the file is no ELF image, no test firmware, or damaged. Time and memory grow with
    the length of the file, whatever its tables claim.
    """
    where = str(image)
    content = _constant(read_bytes(image, "image"), where)
    subject = Subject.from_json(content, f"{where}: {SYMBOL}")
    _check(subject, where)
    return subject


def _check(subject: Subject, where: str) -> None:
    if subject.board != HOST and subject.board not in BOARDS:
        known = ", ".join(BOARDS)
        raise InputFileError(
            f"{where}: is for the board {quoted(subject.board)}, which this mlfbuild does not know ({known}); "
            "install the mlfbuild that built it"
        )
    if not subject.name.isidentifier() or not subject.inputs or not subject.outputs:
        raise InputFileError(f"{where}: {SYMBOL}: names no module with inputs and outputs; build the image again")
    for tensor in (*subject.inputs, *subject.outputs):
        size = _ELEMENTS.get(tensor.dtype, 0)
        whole = size > 0 and 0 < tensor.size <= _LARGEST_TENSOR and tensor.size % size == 0
        if not whole or (tensor.shape is not None and _bytes(tensor.shape, size) != tensor.size):
            raise InputFileError(
                f"{where}: {SYMBOL}: tensor {quoted(tensor.name)} cannot have {tensor.size} bytes of "
                f"{quoted(tensor.dtype)}; build the image again"
            )


def _bytes(shape: tuple[int, ...], itemsize: int) -> int:
    size = itemsize
    for extent in shape:
        size *= extent
        if size > _LARGEST_TENSOR:  # enough to know, and the numbers stay small
            break
    return size


# ELF -----------------------------------------------------------------------------------------------------------------

_SYMTAB, _NOBITS = 2, 8  # SHT_*
_IDENT = 16  # bytes


@dataclass(frozen=True)
class _Layout:
    """Where the numbers of a class of ELF files stand."""

    header: str
    section: str
    symbol: str
    symbol_fields: tuple[int, int, int]
    """Places of st_value, st_size and st_shndx in a symbol; st_name comes first."""


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
    """Return the content of the constant ``SYMBOL``, without the zero byte behind it."""
    if not data.startswith(b"\x7fELF"):
        raise InputFileError(f"{where}: is no ELF image; name what the linker wrote, not a .bin or .hex of it")
    if len(data) < 64 or data[4] not in _LAYOUTS or data[5] not in {1, 2}:
        raise _damaged(where, "its header cannot be read")
    layout, order = _LAYOUTS[data[4]], "<" if data[5] == 1 else ">"
    sections = _sections(data, layout, order, where)
    for table in sections:
        if table.kind == _SYMTAB:
            found = _symbol(data, table, sections, layout, order, where)
            if found is not None:
                return found.rstrip(b"\0")
    raise InputFileError(f"{where}: {_NOT_ONE}")


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
    """Return the content of the constant ``SYMBOL`` where the symbol table has it."""
    entry, wanted = struct.Struct(order + layout.symbol), SYMBOL.encode() + b"\0"
    names = _content(data, _one_of(sections, table.link, where), where)
    entries = _content(data, table, where)
    for fields in entry.iter_unpack(entries[: len(entries) // entry.size * entry.size]):
        if names[fields[0] : fields[0] + len(wanted)] == wanted:
            value, size, index = (fields[place] for place in layout.symbol_fields)
            section = _one_of(sections, index, where)
            if not section.address <= value <= value + size <= section.address + section.size:
                raise _damaged(where, f"its symbol {SYMBOL} lies outside its section")
            if size > _LARGEST_SUBJECT or section.kind == _NOBITS:
                raise _damaged(where, f"its symbol {SYMBOL} is no constant")
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
        raise _damaged(where, "a table or symbol lies outside the file")
    return data[offset : offset + size]


def _damaged(where: str, reason: str) -> InputFileError:
    return InputFileError(f"{where}: is a damaged ELF image: {reason}; build it again")
