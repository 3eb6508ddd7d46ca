"""The map that GNU ld writes (``-Map``): the object file that each byte of an image comes from.

Only the part "Linker script and memory map" is read. A line of an output section begins at the left margin, that of an
input section with one space; a name of more than fifteen characters is on a separate line (binutils, ldlang.c).
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
"""The first lines of maps of other linkers."""
FILL = "*fill*"


@dataclass(frozen=True)
class InputSection:
    """A part of an output section; sizes in bytes."""

    output: str
    """The output section: ``.text``."""
    name: str
    """The section in the object file; ``*fill*`` for padding."""
    address: int
    size: int
    source: str
    """The object file, such as ``main.c.obj`` or ``libmlf_kws.a(kws_lib0.c.obj)``; empty for bytes of the linker."""

    @property
    def archive(self) -> str:
        """File name of the static library that has the object file as a member; empty if there is none."""
        found = _MEMBER.fullmatch(self.source)
        return _file_name(found[1]) if found else ""

    @property
    def member(self) -> str:
        """File name of the object file."""
        found = _MEMBER.fullmatch(self.source)
        return _file_name(found[2] if found else self.source)


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def read_map(path: Path) -> list[InputSection]:
    """Return the input sections in the map ``path``, in the order of the image, without empty ones.

    Raises ``InputFileError`` if the file is missing or not a map of GNU ld.
    """
    text = read_bytes(path, "linker map").decode(errors="replace")
    begin = text.find(f"\n{_BEGIN}\n")
    if begin < 0:
        raise _not_a_map(path, text)
    return list(_sections(text[begin + len(_BEGIN) + 2 :]))


def _not_a_map(path: Path, text: str) -> InputFileError:
    other = next((name for name, begins in _OTHERS.items() if begins.search(text)), "")
    return InputFileError(
        "not-a-gnu-ld-map",
        place=path,
        reason=f"the file is a map of {other}, not of GNU ld" if other else "the file is not a map of GNU ld",
        hint="link the image with GNU ld and -Wl,-Map=FILE",
    )


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
