"""Microcontrollers that a project describes in a file of its own: ``mcu: parts/mychip.toml``.

The file has the keys of an entry of ``data/mcus_*.toml``, at its top level or in one table, and the same reader checks
them. Without ``memories`` and ``based-on``, the part has no cycle model, as a row of the table of parts.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlfbuild.core import Mistake, parsed_toml, unknown
from mlfbuild.core.keys import read_keys, spelled
from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.mcu_types import Mcu
from mlfbuild.targets.mcus import MCUS, part_of_keys
from mlfbuild.targets.part_keys import PartKeys

PACK_MARK = "#"
"""Between the path of a CMSIS-Pack and the name of a device, in the ``mcu`` of a target that was completed."""
_SUFFIX = ".toml"
_LARGEST = 1 << 20
_HEADER = re.compile(r"\s*\[\s*([\w.\-\"' ]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w\-\"'][\w.\-\"' ]*?)\s*=")


@dataclass(frozen=True)
class PartFile:
    """A microcontroller as its file describes it."""

    path: Path
    keys: PartKeys
    cpu: str
    """Name in the table of CPUs."""
    model: Mcu | None
    """The cycle model; ``None`` without memories."""

    def place(self, keys: tuple[str | int, ...]) -> str:
        """Return the place of the value at ``keys`` for messages: ``parts/mychip.toml:7``, or that of what has it."""
        return f"{self.path.name}:{_line(self.path.read_text(encoding='utf-8'), [spelled(str(key)) for key in keys])}"


def is_part_file(mcu: str) -> bool:
    """Return whether a target's ``mcu`` is the name of a file of the project that describes it."""
    return mcu.endswith(_SUFFIX)


def described_in(mcu: str) -> Path | None:
    """Return the file that describes a target's ``mcu``: a part file, or the pack of ``vendor.pack#NAME``.

    ``None`` for names of the tables. The file may be missing.
    """
    if is_part_file(mcu):
        return Path(mcu)
    pack, mark, _ = mcu.rpartition(PACK_MARK)
    return Path(pack) if mark else None


def part_file(name: str) -> PartFile | None:
    """Return the part in the file ``name``, an absolute path; ``None`` if it is not the name of a file of this kind.

    Raises ``Mistake``, whose reason begins with file and line.
    """
    if not is_part_file(name):
        return None
    path = Path(name)
    try:
        state = path.stat()
    except OSError as error:
        hint = "write it as in docs/latency.md, or correct the path"
        raise Mistake("part-file-missing", reason=f"{path.name}: {error.strerror}", hint=hint) from None
    return _read(path, state.st_mtime_ns, state.st_size)


@cache
def _read(path: Path, _changed: int, size: int) -> PartFile:
    """Read ``path``, again if it has changed."""
    if size > _LARGEST:
        raise Mistake("part-file-invalid", reason=f"{path.name} is larger than {_LARGEST >> 20} MiB")
    try:
        text = path.read_bytes().decode("utf-8")
        values = parsed_toml(text)
    except (OSError, ValueError) as error:  # TOMLDecodeError has line and column in its message
        hint = "write it in TOML, as UTF-8"
        raise Mistake("part-file-invalid", reason=f"{path.name}: {_first_line(error)}", hint=hint) from None
    # An entry of mlfbuild's tables is a table with the part's name.
    if len(values) == 1 and isinstance(table := next(iter(values.values())), dict):
        values = table
    try:
        keys = read_keys(PartKeys, values)
        return _part(path, keys)
    except Mistake as mistake:
        way, separator, _ = mistake.reason.partition(": ")
        quoted = re.match(r'.*?key "([^"]+)"', mistake.reason)
        words = [each for each in (way if separator else "").split(".") if each] + ([quoted[1]] if quoted else [])
        reason = f"{path.name}:{_line(text, words)}: {mistake.reason}"
        raise Mistake(mistake.code, reason=reason, hint=mistake.hint) from None


def _part(path: Path, keys: PartKeys) -> PartFile:
    if keys.based_on is not None and keys.based_on not in MCUS:
        raise _at("based-on", unknown("mcu", keys.based_on, MCUS))
    base = MCUS[keys.based_on] if keys.based_on else None
    cpu = keys.cpu or (base.cpu if base else "")
    if not cpu:
        raise Mistake("missing-key", reason='missing key "cpu"', hint="add cpu, or based-on")
    if cpu not in CPUS:
        raise _at("cpu", unknown("cpu", cpu, CPUS))
    model = part_of_keys(path.stem, keys, base) if keys.memories or base else None
    return PartFile(path, keys, cpu, model)


def _at(key: str, mistake: Mistake) -> Mistake:
    return Mistake(mistake.code, reason=f"{key}: {mistake.reason}", hint=mistake.hint)


def _line(text: str, keys: list[str]) -> int:
    """Return the line of the key at the end of ``keys``, or of the nearest one around it; 1 without any."""
    table: list[str] = []
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _words(header[1])
            found = table
        elif key := _KEY.match(line):
            found = [*table, *_words(key[1])]
        else:
            continue
        # The table of the whole part has a name that is not among the keys.
        common = max(len(os.path.commonprefix([names, keys])) for names in (found, found[1:]))  # noqa: RUF071 - lists
        if common > depth:
            best, depth = number, common
    return best


def _words(dotted: str) -> list[str]:
    return [word.strip(" \"'") for word in dotted.split(".")]


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def model_called(name: str) -> Mcu | None:
    """Return the cycle model with the exact ``name``, or that of the part in the file ``name``; ``None`` without one.

    Raises ``Mistake`` for mistakes in the file.
    """
    found = part_file(name)
    return found.model if found else MCUS.get(name)
