"""Programs of the project that compile a model: command lines with placeholders.

    command: [python3, tools/export.py, "{source}", -o, "{output}"]

A word may contain any number of placeholders; ``{{`` and ``}}`` are braces. No shell reads the words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from mlfbuild.core import Mistake, in_quotes, suggestion
from mlfbuild.core.keys import NOT_EMPTY, Convert, Rule

EXTERNAL_COMPILERS = ("command", "tvm")
"""Compilers that are programs: they read any file and write an archive."""

PLACEHOLDERS = {
    "source": "the model file",
    "output": "the archive to write",
    "cpu": "the target's cpu",
    "name": "the model's name",
}
"""Placeholders of a command, with their values in words."""

_OUTPUT = "output"
_SCHEMA: Mapping[str, Any] = {
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
# Doubled braces come first, so that `{{source}}` is text and not a placeholder in braces.
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
# Words, not characters: a `>` inside of a word may be part of a file name or an expression.
_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"})


def split_command(value: object) -> object:
    """Return the words of ``value``: a text is split as a POSIX shell splits it, a list stays as it is.

    Raises ``Mistake`` for any other value, and for text that only a shell understands.
    """
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise Mistake("wrong-type", reason="expected text or a list of words")
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise Mistake("unclosed-quote", reason=f"cannot be split into words: {str(error).lower()}") from None
    for word in words:
        # The program would receive `>` as an argument, and most exporters then fail with a message about something
        # else.
        if word in _SHELL:
            raise Mistake(
                "command-needs-shell",
                reason=f"{in_quotes(word)} has no meaning without a shell",
                hint='write [sh, -c, "..."] if it is needed',
            )
        mistake = word_problem(word)
        if mistake is not None:
            raise mistake
    return words


def word_problem(word: str) -> Mistake | None:
    """Return the mistake in the placeholders of a command's word, ``None`` if they are all known.

    Only the first mistake is returned. ``{{`` and ``}}`` are accepted as braces, single ones are not.
    """
    for found in _BRACES.finditer(word):
        name = found[1]
        if name is not None and name not in PLACEHOLDERS:
            near, known = suggestion(name, PLACEHOLDERS), f" (known: {', '.join(PLACEHOLDERS)})"
            return Mistake(
                "unknown-placeholder",
                reason=f"unknown placeholder {in_quotes(found[0])}{near or known}",
                hint="" if near else "write {{ and }} for braces",
            )
        if found[0] in {"{", "}"}:
            reason = f"a single {in_quotes(found[0])} is not a placeholder"
            return Mistake("single-brace", reason=reason, hint=f"write {found[0] * 2} for a brace")
    return None


def asked_for(command: Sequence[str]) -> set[str]:
    """Return the names of all placeholders in ``command``.

    Unknown names are included; braces that are doubled are not placeholders.
    """
    return {found[1] for word in command for found in _BRACES.finditer(word) if found[1] is not None}


def filled(command: Sequence[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of ``command`` with ``values`` in place of the placeholders.

    ``values`` must have all placeholders of the command (``KeyError`` otherwise); ``word_problem`` has refused unknown
    ones. For example, ``-o={output}`` becomes ``-o=/tmp/kws.tar``, and ``{{`` a brace.
    """
    for word in command:
        # For {{ and }}, the first character is the brace.
        yield _BRACES.sub(lambda found: values[found[1]] if found[1] is not None else found[0][0], word)


def _without_output(words: Sequence[str]) -> Mistake | None:
    if words and _OUTPUT not in asked_for(words):
        return Mistake("command-without-output", reason='never uses "{output}", the archive that it must write')
    return None


Command = Annotated[
    tuple[Annotated[str, Rule(word_problem)], ...],
    NOT_EMPTY,
    Convert(split_command, before=True),
    Rule(_without_output),
    Convert(tuple, _SCHEMA),
]
"""A command line: a list of words, or text that is split into them."""
