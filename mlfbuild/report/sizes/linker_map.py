"""The map that GNU ld writes (``-Map``): the object file that each byte of an image comes from.

Its part "Memory Configuration" lists the regions, the part "Linker script and memory map" files and sections. A line of
an output section begins at the left margin, that of an input section with one space; a name of more than fifteen
characters is on a separate line. Before input sections is the pattern of the script that selected them; a section that
no pattern selected, an orphan, gets an output section without patterns (binutils, ldlang.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlfbuild.core import InputFileError, read_bytes

_MEMORY = "Memory Configuration"
_BEGIN = "Linker script and memory map"
_END = "Cross Reference Table"
_UNLOADED = re.compile(r"\.(debug|stab|comment|(ARM|riscv|gnu)\.attributes)")
"""Output sections that are only in the file."""
# An input section begins with one space. Names that begin with `*` are patterns of the script, except for *fill*.
_PLACED = re.compile(r"^( ?)(\*fill\*|[^\s*(][^\s(]*)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+(\S.*))?$")
_NAME = re.compile(r"^( ?)([^\s*(][^\s(]*)$")
_CONTINUED = re.compile(r"^\s{2,}0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+(\S.*))?$")
_PATTERN = re.compile(r"^ \S*\(.*\)$")
# NXP's scripts and CMSIS write tables for start-up code this way.
_WRITTEN = re.compile(r"^\s{2,}0x([0-9a-f]+)\s+0x([0-9a-f]+) (BYTE|SHORT|LONG|S?QUAD) ")
"""Bytes that the script itself writes."""
# Attributes of the region may follow, with `!` before those that it excludes (ld, MEMORY command).
_REGION = re.compile(r"^(\S+) +0x([0-9a-f]+) +0x([0-9a-f]+)(?: +([a-z]*)(?:![a-z]*)?)?$", re.MULTILINE)
_ALL = "*default*"
"""The region of a script without regions: the whole address space."""
_LOADED = re.compile(r"^LOAD (.+)$", re.MULTILINE)
_MEMBER = re.compile(r"(.*\.a)\(([^()]*)\)")
_OPTIMISED = re.compile(r"\.(ltrans\d+\.ltrans|lto)\.o")
"""Suffixes of the object files that link-time optimisation makes of many others (gcc, lto-wrapper.cc)."""
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
    orphan: bool = False
    """Whether the linker script does not mention it; the linker then chose an output section of the same name."""

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

    @property
    def optimised(self) -> bool:
        """Whether link-time optimisation made the object file of many others."""
        return _OPTIMISED.search(self.member) is not None


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Region:
    """A memory region of the linker script."""

    name: str
    start: int
    size: int
    read_only: bool = False
    """Whether the script gives it attributes, and among them none for writing."""

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.start + self.size


@dataclass(frozen=True)
class LinkerMap:
    """The content of a linker map."""

    path: Path
    sections: tuple[InputSection, ...] = field(repr=False)
    """In the order of the image, without empty ones."""
    regions: tuple[Region, ...] = ()
    """Empty if the script has no ``MEMORY``."""
    files: tuple[str, ...] = ()
    """The objects and static libraries that were passed to the linker."""

    def inputs(self) -> Iterator[tuple[InputSection, Path | None]]:
        """Yield each of ``files`` as the source of an empty section, and its path; ``None`` if it does not exist.

        Linkers run in the folder of the map or in one above it.
        """
        folder = self.path.parent.absolute()
        for name in self.files:
            part = InputSection("", "", 0, 0, f"{name}()" if name.endswith(".a") else name)
            # The map has names relative to the folder in which the linker ran, which it does not record.
            candidates = (*(above / name for above in (folder, *folder.parents)), Path(name))
            yield part, next((path for path in candidates if path.is_file()), None)


def read_map(path: Path) -> LinkerMap:
    """Return the content of the map ``path``; raises ``InputFileError`` if it is missing or not a map of GNU ld.

    The file may be large: its text is read at once, but only the parts with regions, input sections and LOAD lines are
    parsed.
    """
    # Names of files may be in any encoding; only the numbers matter.
    text = read_bytes(path, "linker map").decode(errors="replace").replace("\r\n", "\n")
    begin = text.find(f"\n{_BEGIN}\n")
    if begin < 0:
        other = next((name for name, begins in _OTHERS.items() if begins.search(text)), "")
        raise InputFileError(
            "not-a-gnu-ld-map",
            place=path,
            reason=f"the file is a map of {other}, not of GNU ld" if other else "the file is not a map of GNU ld",
            hint="link the image with GNU ld and -Wl,-Map=FILE",
        )
    # Regions are listed before the sections, whose lines could look the same.
    memory = text.find(f"\n{_MEMORY}\n", 0, begin)
    regions = _REGION.findall(text, memory, begin) if memory >= 0 else []
    return LinkerMap(
        path,
        tuple(_without_overlaps(_sections(text[begin + len(_BEGIN) + 2 :]))),
        tuple(
            Region(name, int(start, 16), int(size, 16), bool(attributes) and "w" not in attributes)
            for name, start, size, attributes in regions
            if name != _ALL
        ),
        # A library that is passed to the linker several times is listed as often.
        tuple(dict.fromkeys(name.rstrip() for name in _LOADED.findall(text, begin))),
    )


def _without_overlaps(sections: Iterable[InputSection]) -> Iterator[InputSection]:
    """Shorten sections that reach into the next one: of merged strings, maps may list the size before merging."""
    before: InputSection | None = None
    for section in sections:
        if before is not None and before.output == section.output and before.address <= section.address:
            before = replace(before, size=min(before.size, section.address - before.address))
        # Only now is its size final, because the following section may have shortened it.
        if before is not None and before.size:
            yield before
        before = section
    if before is not None:
        yield before


def _sections(text: str) -> Iterator[InputSection]:
    output, orphan, end = "", True, 0
    # A name that is too long for its column waits here for the line with its numbers.
    pending: tuple[bool, str] | None = None
    for line in map(str.rstrip, text.splitlines()):
        if line == _END:
            return
        placed = _PLACED.match(line)
        if placed is not None and placed[2]:
            inside, name, numbers = bool(placed[1]), placed[2], placed.group(3, 4, 5)
        elif pending is not None and (continued := _CONTINUED.match(line)) is not None:
            (inside, name), numbers = pending, continued.group(1, 2, 3)
        elif (written := _WRITTEN.match(line)) is not None:
            inside, name, numbers = True, written[3], (written[1], written[2], None)
        else:
            orphan = orphan and not _PATTERN.match(line)
            found = _NAME.match(line)
            pending = (bool(found[1]), found[2]) if found else None
            continue
        pending = None
        address, size = int(numbers[0], 16), int(numbers[1], 16)
        if not inside:
            output, orphan, end = name, True, address + size
            continue
        # Merged strings that are the last of their output section have no neighbour that shows their end.
        size = min(size, end - address)
        if size > 0 and not _UNLOADED.match(output):
            yield InputSection(output, name, address, size, numbers[2] or "", orphan)
