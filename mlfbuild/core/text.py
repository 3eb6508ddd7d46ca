"""Text for messages: counts, lists, and names from untrusted files on one printable line."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Items of a list that usually fit on one line of a message.
_LISTED = 8
_LINE_OR_TAB = re.compile(r"([\n\t])")


def counted(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``, ``1,000 files``.

    Only an ``s`` is added, so the plural of ``noun`` must be regular.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def change_text(before: int, now: int, unit: str = "") -> str:
    """Return the change of a figure, with its share of what it was: ``+1,024 bytes (+3.1 %)``.

    ``unit`` follows the number and begins with a space. Without a change it is ``same``; growth from 0 has no share.
    """
    if now == before:
        return "same"
    return f"{now - before:+,}{unit}" + (f" ({100 * (now - before) / before:+.1f} %)" if before else "")


def listed(names: Sequence[str]) -> str:
    """Return ``names`` with commas between them, at most the first eight.

    Their order is kept, so put those first that help most: ``, ...`` stands for all after the eighth.
    """
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")


def printable(text: str) -> str:
    """Return ``text`` with escapes in place of control characters.

    A text with nothing to escape is returned as it is, also with letters beyond ASCII; otherwise these letters become
    escapes as well. Line feeds and tabs are escaped: ``terminal_text`` keeps them.
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def terminal_text(text: str) -> str:
    r"""Return ``text``, which may have several lines, without anything that steers a terminal or reorders text.

    Names in model files and archives may contain such characters: escape sequences that repaint lines, and marks of
    writing direction that make a text read as another one. They become escapes such as ``\x1b`` and ``\u202e``.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    # Line ends of Windows become plain ones first: a lone carriage return would let the next words overwrite the line.
    parts = _LINE_OR_TAB.split(text.replace("\r\n", "\n"))
    return "".join(part if part in "\n\t" or part.isprintable() else "".join(map(printable, part)) for part in parts)


def shown(name: object, longest: int = 160) -> str:
    """Return a name on one line: cut after ``longest`` characters, in quotes if it has escapes.

    For names that are usually harmless and read better without quotes, such as paths and versions: ``v4.1.0`` stays
    ``v4.1.0``. Letters beyond ASCII stay as well, unless the name has control characters.
    """
    text = str(name)
    text = text if len(text) <= longest else f"{text[:longest]}..."
    return text if text.isprintable() else ascii(text)


def quoted(name: str, longest: int = 120) -> str:
    """Return a name in quotes and in ASCII, cut after ``longest`` characters.

    Every letter beyond ASCII is an escape, so that a name that only looks like another one is seen to be different.
    """
    return ascii(name) if len(name) <= longest else f"{name[:longest]!a}..."


def in_quotes(text: str) -> str:
    """Return a value of the user's own file in double quotes, cut after 60 characters, with escapes.

    Unlike ``quoted``, it keeps letters beyond ASCII: the reader wrote them and must recognise them. A name from an
    archive or model is untrusted, and ``quoted`` shows whether a letter only looks like another one.
    """
    text = text if len(text) <= 60 else f"{text[:60]}..."
    return f'"{"".join(map(printable, text))}"'
