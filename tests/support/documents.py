"""The fenced blocks of README.md and docs/, with the words of docs/blocks.yml that say how each one is tested.

The words are in a separate file, so that readers do not see them::

    docs/running.md:
      project: kws
      blocks:
        $ mlfbuild run kws.tar --inputs kws.npz -o out.npz:
          before: mlfbuild compile kws.tflite --cpu cortex-m55 -o kws.tar

A block is named by its first line. If the page has several blocks with this first line, ``first line [2]`` is the
second one; ``first words ...`` stands for a long line, or for one with figures that change.

Words of a page:

    project: digits    the folder in which its blocks run, one of document_folders.py

Words of a block:

    skip: why          the block is not tested, for this reason
    file: NAME         the block is written to that file of the folder
    merge: true        the block, YAML, is merged into mlfbuild.yml of the folder
    before: command    runs first
    run: command       prints the block, if the block does not show its command
    status: N          the exit status of the block's last command
    wrapped: true      the page breaks lines that the output does not break
    inside: function   the block, C, is the body of a function
    inside: a.b        the block, YAML, belongs under these keys of a project file
    plain: true        the block is YAML of another program, not a project file
    with: lines        lines of C that precede the block

A block without words, below a line that ends in a path in backticks and a colon, quotes that file of the repository.

A page that is generated from code is recognised by the note that docs/_ext writes below its title.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])
SIDE_FILE = REPOSITORY / "docs/blocks.yml"

_FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_GENERATED = re.compile(r"^Generated from .*; edit the code, not this page\.$", re.MULTILINE)
_KEY = re.compile(r"(?P<line>.*?)(?P<begins> \.\.\.)?(?: \[(?P<number>\d+)\])?")
_PAGE_WORDS = {"project": str, "blocks": dict}
_BLOCK_WORDS = {
    "skip": str, "file": str, "merge": bool, "before": str, "run": str, "status": int, "wrapped": bool, "inside": str,
    "plain": bool, "with": str,
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    words: dict[str, str] = field(default_factory=dict)
    quoted: str = ""
    """The file of the repository that the block quotes; tests/examples compares them."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def kind(self) -> str:
        """How the block is tested: ``console``, ``output``, its language, or ``""`` if the page does not show it."""
        if "run" in self.words:
            return "output"
        if self.language in {"", "console"}:
            return "console" if self.text.startswith("$ ") else ""
        return self.language


@dataclass(frozen=True)
class Page:
    """A page with its blocks, in order."""

    path: Path
    words: dict[str, str]
    blocks: tuple[Block, ...]
    generated: bool = False


@cache
def side_file() -> dict[str, Any]:
    """Return the content of docs/blocks.yml, by page; raises ``ValueError`` if it names a page that does not exist."""
    entries = yaml.safe_load(SIDE_FILE.read_text(encoding="utf-8"))
    unknown = set(entries) - {path.relative_to(REPOSITORY).as_posix() for path in PAGES}
    if unknown:
        raise ValueError(f"{SIDE_FILE.name}: no such page: {', '.join(sorted(unknown))}")
    return dict(entries)


def read_page(path: Path, entries: Mapping[str, Any] | None = None) -> Page:
    """Return the page at ``path`` with its words of ``entries``, by default those of docs/blocks.yml.

    Raises ``ValueError`` if an entry matches no block of the page or more than one, or has an unknown word.
    """
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(REPOSITORY).as_posix() if path.is_relative_to(REPOSITORY) else path.name
    entry = (side_file() if entries is None else entries).get(name, {})
    words = _words(entry, _PAGE_WORDS, name)
    fences = list(_FENCE.finditer(text))
    first_lines = [fence["text"].split("\n", 1)[0].strip() for fence in fences]
    of_block: dict[int, dict[str, str]] = {}
    for key, block_entry in entry.get("blocks", {}).items():
        number = _block_called(str(key), first_lines, name)
        if number in of_block:
            raise ValueError(f"{name}: two entries for one block: {key}")
        of_block[number] = _words(block_entry, _BLOCK_WORDS, f"{name}: {key}")
    blocks = []
    for number, fence in enumerate(fences):
        line = text.count("\n", 0, fence.start()) + 2
        own = of_block.get(number, {})
        quote = None if own else re.search(r"`([\w./-]+)`:\n\n$", text[: fence.start()])
        body = re.sub(rf"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
        blocks.append(Block(path, line, fence["language"], body, own, quote[1] if quote else ""))
    return Page(path, words, tuple(blocks), generated=_GENERATED.search(text) is not None)


def _block_called(key: str, first_lines: list[str], page: str) -> int:
    """Return the index of the block that ``key`` names."""
    name = _KEY.fullmatch(key)
    assert name is not None
    found = [
        number
        for number, line in enumerate(first_lines)
        if (line.startswith(name["line"]) if name["begins"] else line == name["line"].strip())
    ]
    if not found:
        raise ValueError(f"{page}: no block begins with this line: {key}")
    if name["number"] is None and len(found) > 1:
        raise ValueError(f"{page}: {len(found)} blocks begin with this line, so it needs a number such as [1]: {key}")
    wanted = int(name["number"] or 1)
    if not 1 <= wanted <= len(found):
        raise ValueError(f"{page}: only {len(found)} blocks begin with this line: {key}")
    return found[wanted - 1]


def _words(entry: Mapping[str, Any], known: Mapping[str, type], place: str) -> dict[str, str]:
    unknown = set(entry) - set(known)
    if unknown:
        raise ValueError(f"{place}: unknown word: {', '.join(sorted(unknown))}")
    wrong = [word for word, value in entry.items() if type(value) is not known[word]]
    if wrong:
        raise ValueError(f"{place}: not of type {known[wrong[0]].__name__}: {wrong[0]}")
    return {
        word: "" if value is True else str(value)
        for word, value in entry.items()
        if value is not False and word != "blocks"
    }


def pattern_of(shown: str, *, wrapped: bool = False, any_number: bool = False) -> re.Pattern[str]:
    """Return the pattern of outputs that match ``shown``.

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
    """Return whether the output ``printed`` matches ``shown`` on a page."""
    text = " ".join(printed.split()) if wrapped else printed.rstrip("\n") + "\n" if printed.strip() else ""
    if not shown.strip() and not text:
        return True
    return pattern_of(shown, wrapped=wrapped, any_number=any_number).fullmatch(text) is not None
