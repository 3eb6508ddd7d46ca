"""The map that GNU ld writes (``-Map``): which object each byte of an image comes from.

Only the part "Linker script and memory map" is read. A line of an output section begins at the left margin, one of an
input section with one space; a name of more than fifteen characters has a line of its own (binutils, ldlang.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import InputFileError, read_bytes

_BEGIN = "Linker script and memory map"
_END = re.compile(r"OUTPUT\(")
_PLACED = re.compile(r"^( ?)(\*fill\*|[^\s*(][^\s(]*)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+(\S.*))?$")
_NAME = re.compile(r"^( ?)([^\s*(][^\s(]*)$")
_CONTINUED = re.compile(r"^\s{2,}0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+(\S.*))?$")
_MEMBER = re.compile(r"(.*\.a)\(([^()]*)\)")
_OTHERS = {
    "lld": re.compile(r"\A *VMA +LMA +Size +Align +Out +In +Symbol$", re.MULTILINE),
    "armlink": re.compile(r"^Component: .*Tool: armlink", re.MULTILINE),
    "IAR's linker": re.compile(r"^# +IAR ELF Linker ", re.MULTILINE),
}
"""How the maps of other linkers begin."""
FILL = "*fill*"


@dataclass(frozen=True)
class InputSection:
    """A part of an output section; sizes in bytes."""

    output: str
    """The output section: ``.text``."""
    name: str
    """The section in the object, ``*fill*`` for what aligns the next one."""
    address: int
    size: int
    source: str
    """The object: ``main.c.obj``, ``libmlf_kws.a(kws_lib0.c.obj)``; empty where the linker itself put it there."""

    @property
    def archive(self) -> str:
        """File name of the static library that the object is a member of; empty where it is of none."""
        found = _MEMBER.fullmatch(self.source)
        return _file_name(found[1]) if found else ""

    @property
    def member(self) -> str:
        """File name of the object."""
        found = _MEMBER.fullmatch(self.source)
        return _file_name(found[2] if found else self.source)


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def read_map(path: Path) -> list[InputSection]:
    """Return what the map ``path`` says of each byte, in the order of the image; sections without bytes are left out.

    Raises ``InputFileError`` where the file is missing or is no map of GNU ld.
    """
    text = read_bytes(path, "linker map").decode(errors="replace")
    begin = text.find(f"\n{_BEGIN}\n")
    if begin < 0:
        raise InputFileError(f"{path}: {_no_map(text)}")
    return list(_sections(text[begin + len(_BEGIN) + 2 :]))


def _no_map(text: str) -> str:
    """Return what is wrong with a file that GNU ld did not write."""
    for name, begins in _OTHERS.items():
        if begins.search(text):
            return (
                f"is the map of {name}, and only that of GNU ld can be read; link the image with GNU ld, -Wl,-Map=FILE"
            )
    return "is no map of GNU ld; link the image with GNU ld, -Wl,-Map=FILE"


def _sections(text: str) -> Iterator[InputSection]:
    output = ""
    pending: tuple[bool, str] | None = None
    for line in map(str.rstrip, text.splitlines()):
        if _END.match(line):
            return
        placed = _PLACED.match(line)
        if placed is not None and placed[2]:
            inside, name, numbers = bool(placed[1]), placed[2], placed.group(3, 4, 5)
        elif pending is not None and (continued := _CONTINUED.match(line)) is not None:
            (inside, name), numbers = pending, continued.group(1, 2, 3)
        else:
            found = _NAME.match(line)
            pending = (bool(found[1]), found[2]) if found else None
            continue
        pending = None
        if not inside:
            output = name
        elif int(numbers[1], 16) > 0:
            yield InputSection(output, name, int(numbers[0], 16), int(numbers[1], 16), numbers[2] or "")
