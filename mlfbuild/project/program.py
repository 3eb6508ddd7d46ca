"""Programs of the project's own that compile a model: command lines with placeholders.

    command: [python3, tools/export.py, "{source}", -o, "{output}"]

A word may hold any number of placeholders; ``{{`` and ``}}`` stand for braces. No shell reads the words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlfbuild.project.problems import quoted, suggestion

PLACEHOLDERS = {
    "source": "the model file",
    "output": "the archive to write",
    "cpu": "the target's cpu",
    "name": "the model's name",
}
"""What a command may ask for, by the words in braces."""

_OUTPUT = "output"
COMMAND_SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": r"\{output\}"},
        {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "contains": {"type": "string", "pattern": r"\{output\}"},
        },
    ]
}
"""A command as JSON Schema."""

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"})


@dataclass(frozen=True)
class Program:
    """Who compiles a model in mlfbuild's place."""

    folder: Path
    """Where it runs: the folder of the project file."""
    command: tuple[str, ...] = ()
    """The words of ``compiler: command``, with placeholders."""
    interpreter: str | None = None
    """Of ``compiler: tvm``: the Python that has TVM, a path from ``folder`` on or the name of a program."""
    inputs: tuple[str, ...] = ()
    """Files, folders and patterns from ``folder`` on whose content decides the result, beside the model file."""


def split_command(value: object) -> object:
    """Return the words of ``value``: a text is split as a POSIX shell splits it, a list stays as it is.

    Raises ``ValueError`` with the reason for what is neither, and for text that only a shell understands.
    """
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise ValueError("expected text or a list of words")
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {str(error).lower()}") from None
    for word in words:
        if word in _SHELL:
            raise ValueError(f'{quoted(word)} means nothing without a shell; write [sh, -c, "..."] where it is needed')
        reason = word_problem(word)
        if reason:
            raise ValueError(reason)
    return words


def check_command(words: list[str]) -> list[str]:
    """Return ``words``; raises ``ValueError`` where they never name the archive to write."""
    if words and _OUTPUT not in asked_for(words):
        raise ValueError('never says "{output}", the archive that it must write')
    return words


def word_problem(word: str) -> str | None:
    """Return what is wrong with the placeholders of a command's word; ``None`` where they are all known."""
    for found in _BRACES.finditer(word):
        name = found[1]
        if name is not None and name not in PLACEHOLDERS:
            others = f" (known: {', '.join(PLACEHOLDERS)}); write {{{{ and }}}} for braces"
            return f"unknown placeholder {quoted(found[0])}{suggestion(name, PLACEHOLDERS) or others}"
        if found[0] in {"{", "}"}:
            return f"{quoted(found[0])} alone is no placeholder; write {found[0] * 2} for a brace"
    return None


def asked_for(command: Sequence[str]) -> set[str]:
    """Return the names of all placeholders in ``command``."""
    return {found[1] for word in command for found in _BRACES.finditer(word) if found[1] is not None}


def filled(command: Sequence[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of ``command`` with ``values`` in place of the placeholders."""
    for word in command:
        yield _BRACES.sub(lambda found: values[found[1]] if found[1] is not None else found[0][0], word)
