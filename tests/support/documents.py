"""The fenced blocks of README.md and docs/, with what the pages say of how they are tested.

A comment before a block, which no reader sees, says what its text does not::

    <!-- docs-test: run="mlfbuild build" status=1 wrapped -->

    project=digits     in a comment that no block follows: the folder of its blocks, of document_folders.py
    skip="why"         the block is not tested, for this reason
    file=NAME          the block is written to that file of the folder
    merge              the block, YAML, is laid over mlfbuild.yml of the folder
    before="command"   runs first
    run="command"      what prints the block, where the block does not show its command
    status=N           the exit status of the block's last command
    wrapped            the page breaks lines where the output does not
    inside=function    the block, C, is the body of a function
    inside=a.b         the block, YAML, stands under these keys of a project file
    plain              the block is a file of another program: it is YAML, but no project file
    with="a|b"         lines of C that stand before the block
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])

_PIECE = re.compile(
    r"<!-- docs-test: (?P<words>.*?)\s*-->\n"
    r"|^(?P<indent>[ ]*)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_WORDS = {
    "project",
    "skip",
    "file",
    "merge",
    "before",
    "run",
    "status",
    "wrapped",
    "inside",
    "generated",
    "with",
    "plain",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    words: dict[str, str] = field(default_factory=dict)
    quoted: str = ""
    """The file of the repository that the page says it quotes; tests/examples compares them."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def kind(self) -> str:
        """How the block is tested: ``console``, ``output``, its language, or ``""`` where nobody can tell."""
        if "run" in self.words:
            return "output"
        if self.language in {"", "console"}:
            return "console" if self.text.startswith("$ ") else ""
        return self.language


@dataclass(frozen=True)
class Page:
    """A page, its blocks in order, and what it says of itself."""

    path: Path
    words: dict[str, str]
    blocks: tuple[Block, ...]


def read_page(path: Path) -> Page:
    """Return the page at ``path``; raises ``ValueError`` where a comment of it has a word that nobody knows."""
    text = path.read_text(encoding="utf-8")
    blocks: list[Block] = []
    page_words: dict[str, str] = {}
    words: dict[str, str] = {}
    for found in _PIECE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["words"] is not None:
            words = _words(found["words"], f"{path.name}:{line}")
            if "project" in words or not re.match(r"\s*```", text[found.end() :]):
                page_words, words = {**page_words, **words}, {}
            continue
        quote = re.search(r"`([\w./-]+)`:\n\n$", text[: found.start()])
        body = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        blocks.append(Block(path, line + 1, found["language"], body, words, quote[1] if quote else ""))
        words = {}
    return Page(path, page_words, tuple(blocks))


def _words(text: str, place: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in shlex.split(text)]
    unknown = {name for name, _, _ in pairs} - _WORDS
    if unknown:
        raise ValueError(f"{place}: docs-test knows no {', '.join(sorted(unknown))}")
    return {name: value for name, _, value in pairs}


def pattern_of(shown: str, *, wrapped: bool = False, any_number: bool = False) -> re.Pattern[str]:
    """Return the pattern of outputs that ``shown`` stands for.

    A line ``...`` is any number of lines, ``...`` within a line any text. ``any_number`` accepts other figures: sizes
    and counts are those of one C compiler.
    """
    if wrapped:
        parts = [_within(part.strip(), any_number) for part in " ".join(shown.split()).split("...")]
        return re.compile(".*".join(parts))
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        parts = [_within(part, any_number) for part in line.rstrip().split("...")]
        lines.append(r"(?:[^\n]*\n)*?" if line.strip() == "..." else "[^\n]*".join(parts) + r"[ ]*\n")
    return re.compile("".join(lines))


def _within(text: str, any_number: bool) -> str:
    escaped = re.escape(text)
    return re.sub(r"(?:\\ )*\d[\d,.]*(?:\\\.\d+)*", r"[ ]*[\\d,.]+", escaped) if any_number else escaped


def matches(shown: str, printed: str, *, wrapped: bool = False, any_number: bool = False) -> bool:
    """Whether a program that printed ``printed`` printed what a page shows."""
    text = " ".join(printed.split()) if wrapped else printed.rstrip("\n") + "\n" if printed.strip() else ""
    if not shown.strip() and not text:
        return True
    return pattern_of(shown, wrapped=wrapped, any_number=any_number).fullmatch(text) is not None
