"""Write Markdown that forges and MyST render in the same way."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
UPDATE = "`make generate`"


def page(title: str, source: str, *parts: str) -> str:
    """Return a page; ``source`` is its origin, such as ``the keys in `mlfbuild/project/specification.py` ``."""
    note = f"Generated from {source} by {UPDATE}; edit the code, not this page."
    return "\n\n".join([f"# {title}", note, *parts]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def code(text: str) -> str:
    """Return ``text`` as inline code."""
    return f"`{text}`"


def fence(language: str, text: str) -> str:
    """Return a fenced block of code."""
    return f"```{language}\n{inspect.cleandoc(text)}\n```"


def prose(text: str) -> str:
    """Return plain text or the text of a docstring as Markdown, with code in backticks and HTML escaped."""
    marked = re.sub(r"(?<![\w`-])(--[a-z][\w-]*(?:=\S*\w)?)(?![^`]*`)", r"`\1`", re.sub(r"``([^`]+)``", r"`\1`", text))
    parts = re.split(r"(`[^`]+`)", marked)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", r"\*") for part in parts)


def paragraphs(text: str) -> str:
    """Return the paragraphs of a comment or docstring; indented paragraphs become blocks of code."""
    found = []
    for block in re.split(r"\n(?:[ \t]*\n)+", inspect.cleandoc(text)):
        indented = all(line.startswith("  ") for line in block.splitlines())
        found.append(fence("text", block) if indented else prose(" ".join(block.split())))
    return "\n\n".join(found).replace("\n```\n\n```text\n", "\n\n")
