"""Read Markdown with a real parser, as GitHub and GitLab do."""

import itertools

from markdown_it import MarkdownIt

Cell = list[tuple[str, str]]
"""The kind and content of each part of a cell."""


def cells(text: str) -> list[Cell]:
    """Return the cells in the bodies of all tables in ``text``, row by row."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [
        [(child.type, child.content) for child in inline.children or ()]
        for opening, inline in itertools.pairwise(tokens)
        if opening.type == "td_open" and inline.type == "inline"
    ]


def rows(text: str, width: int) -> list[list[str]]:
    """Return the text of the cells of tables with ``width`` columns, row by row."""
    found = ["".join(content for _, content in cell) for cell in cells(text)]
    return [found[at : at + width] for at in range(0, len(found), width)]
