"""The memories of a target from a linker script: ``memories: firmware.ld``.

The script's ``MEMORY`` gives names, in lower case, origins and sizes; a memory without ``w`` among its attributes is
read-only. Read are the forms that scripts of vendors have::

    MEMORY
    {
      FLASH (rx)      : ORIGIN = 0x08000000, LENGTH = 2048K
      DTCMRAM (xrw)   : ORIGIN = 0x20000000, LENGTH = 128K
      RAM (xrw)       : ORIGIN = ORIGIN(DTCMRAM) + 0x4000000, LENGTH = 512K - 16
    }

Numbers are added, subtracted, multiplied and divided, and ``ORIGIN`` and ``LENGTH`` of earlier regions are known. What
a preprocessor or a symbol decides is not: such a script is refused, because a guess would place an arena nowhere. The
region behind the output section ``.bss`` is the main RAM, in which arenas need no section of their own.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlfbuild.core import InputFileError, Mistake, StorageError, in_quotes, read_bytes
from mlfbuild.project.problems import KeyPath

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MEMORY = re.compile(r"^\s*MEMORY\s*\{", re.MULTILINE)
_REGION = re.compile(
    r"\s*([A-Za-z_.$][\w.$-]*)\s*(?:\(([^)]*)\))?\s*:\s*"
    r"(?:ORIGIN|org|o)\s*=\s*([^,\n]+?)\s*,\s*(?:LENGTH|len|l)\s*=\s*([^\n;}]+?)\s*(?=[\n;}])"
)
# The output section up to its region: braces do not nest there, except those of a few linkers that are not read.
_BSS = re.compile(r"(?<![\w.*(])\.bss(?![\w.])[^{}]*\{[^{}]*\}\s*>\s*([A-Za-z_.$][\w.$-]*)")
_SUFFIXED = re.compile(r"\b(0[xX][0-9a-fA-F]+|[0-9]+)([KkMm]?)\b")
_OF_REGION = re.compile(r"\b(ORIGIN|LENGTH)\s*\(\s*([\w.$-]+)\s*\)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_LARGEST = 1 << 20
_BY_HAND = "write the memories with their sizes instead of the script"


@dataclass(frozen=True)
class MemoryScript:
    """Facts about memories in a linker script, besides the values that keys have."""

    path: Path
    regions: Mapping[str, str] = field(default_factory=dict)
    """The names in the script by those of the memories."""
    main: str = ""
    """The memory that has the output section ``.bss``; empty if the script does not say."""


def read_memory_scripts(document: Document, root: Path) -> dict[str, MemoryScript]:
    """Replace each ``memories`` that names a linker script by the script's memories; return the scripts by target.

    Scripts are relative to ``root``. Mistakes are added to the problems of ``document``, at the name of the script.
    """
    found = {}
    for name, entry in document.entries("targets"):
        text = entry.get("memories")
        if not isinstance(text, str) or not isinstance(entry, dict) or not text.strip():
            continue
        path: KeyPath = ("targets", name, "memories")
        try:
            script, memories = _read((root / text).absolute())
        except Mistake as mistake:
            document.refuse(path, mistake)
            continue
        found[name] = script
        entry["memories"] = memories
        position = document.value_position(path)
        for memory, keys in memories.items():
            document.values.update(dict.fromkeys([(*path, memory), *((*path, memory, key) for key in keys)], position))
    return found


def _read(path: Path) -> tuple[MemoryScript, dict[str, dict[str, Any]]]:
    """Return the script at ``path``, and the keys of its memories by their names; raises ``Mistake``."""
    try:
        data = read_bytes(path, "linker script")
    except (InputFileError, StorageError) as error:
        reason = f"{path.name}: {error.reason}"
        raise Mistake("linker-script-missing", reason=reason, hint="correct the path") from None
    text = data[:_LARGEST].decode(errors="replace")
    # Comments become blanks of the same lines, so that places stay right.
    text = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text.replace("\r\n", "\n"))
    begin = _MEMORY.search(text)
    if begin is None:
        reason = f"{path.name}: the script has no MEMORY command"
        raise Mistake("linker-script-without-memory", reason=reason, hint=f"name the script that has it, or {_BY_HAND}")
    end = text.find("}", begin.end())
    inside = text[begin.end() : end if end >= 0 else len(text)] + "\n"
    memories, names = _regions(inside, f"{path.name}:", text.count("\n", 0, begin.end()) + 1)
    bss = _BSS.search(text)
    main = next((memory for memory, name in names.items() if bss is not None and name == bss[1]), "")
    return MemoryScript(path, names, main), memories


def _regions(text: str, place: str, line: int) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the keys of the memories in ``text``, the inside of MEMORY, and the names in the script, by memory."""
    memories: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    known: dict[tuple[str, str], int] = {}
    at = 0
    while text[at:].strip(" \t\n;"):
        at += len(text[at:]) - len(text[at:].lstrip(" \t\n;"))
        where = f"{place}{line + text.count(chr(10), 0, at)}"
        found = _REGION.match(text, at)
        if found is None:
            shown = in_quotes(text[at:].partition("\n")[0].strip())
            reason = f"{where}: {shown} is not NAME (ATTRIBUTES) : ORIGIN = ADDRESS, LENGTH = SIZE"
            raise Mistake("linker-script-not-understood", reason=reason, hint=_BY_HAND)
        region, attributes, *values = found.groups()
        origin, size = (_number(value, known, where) for value in values)
        memory = re.sub(r"[^a-z0-9_]", "_", region.lower())
        known |= {("ORIGIN", region): origin, ("LENGTH", region): size}
        # A region without attributes may contain anything; size 0 is one that the product does not have.
        if size > 0:
            memories[memory] = {"size": size, "origin": origin}
            names[memory] = region
            if attributes is not None and not {"w", "W"} & {*attributes.partition("!")[0]}:
                memories[memory]["read-only"] = True
        at = found.end()
    return memories, names


def _number(text: str, known: Mapping[tuple[str, str], int], where: str) -> int:
    """Return the value of an expression of a script; raises ``Mistake`` if it is more than numbers and operators."""
    plain = _OF_REGION.sub(lambda each: str(known.get((each[1], each[2]), each[0])), text)
    plain = _SUFFIXED.sub(lambda each: str(_digits(each[1]) * _UNITS[each[2].lower()]), plain)
    try:
        return _value(ast.parse(plain.replace("/", "//").strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        reason = f"{where}: {in_quotes(text.strip())} is not a number that mlfbuild can compute"
        raise Mistake("linker-script-not-understood", reason=reason, hint=_BY_HAND) from None


def _digits(text: str) -> int:
    # ld reads 010 as an octal number, as C does.
    base = 16 if text[:2] in {"0x", "0X"} else 8 if text[0] == "0" else 10
    return int(text, base)


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError
