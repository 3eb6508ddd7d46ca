"""The prose of README.md and docs/ keeps its limits: length of sentences, words and pages, and phrases to avoid."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documents import PAGES, REPOSITORY

MOST_WORDS, MOST_PAGES = 60_000, 40
README_LINES = 120
LONGEST = 42
AVOIDED = re.compile(r"\bof yours\b|\ban own\b|, too\.", re.IGNORECASE)
_FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"(?:[-*]|\d+\.)\s")
_END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z`*\"(]|mlfbuild\b)")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page of Markdown, without code, tables, headings and the targets of links."""
    block: list[str] = []
    for line in [*_LINK.sub(r"\1", _FENCE.sub("", text)).splitlines(), ""]:
        bare = line.strip()
        begins = bool(_ITEM.match(bare))
        if not bare or begins or bare.startswith(("|", "#", "<!--")):
            yield from _END.split(" ".join(block)) if block else ()
            block = []
        if bare and not bare.startswith(("|", "#", "<!--")):
            block.append(_ITEM.sub("", bare) if begins else bare)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_no_sentence_is_too_long_for_a_reader(page: Path) -> None:
    if page.parent.name != "reference":
        long = [sentence for sentence in sentences(page.read_text(encoding="utf-8")) if len(sentence.split()) > LONGEST]
        assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_no_page_has_an_avoided_phrase(page: Path) -> None:
    assert AVOIDED.findall(page.read_text(encoding="utf-8")) == []


def test_the_documentation_has_room_for_later_pages() -> None:
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert len(words) <= MOST_PAGES
    assert sum(words.values()) <= MOST_WORDS


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES
    assert any(line.startswith("![") for line in lines[:15])


def test_sentences_of_a_page_are_found() -> None:
    page = (
        "# A title\n\nOne *sentence* of\na [link](a.md#b). `mlfbuild` is two.\n\n```sh\nno sentence\n```\n\n"
        "| no | table |\n\n- Three, for\n  example. (Four.)\n1. Five\n"
    )
    assert list(sentences(page)) == [
        "One *sentence* of a link.",
        "`mlfbuild` is two.",
        "Three, for example.",
        "(Four.)",
        "Five",
    ]
