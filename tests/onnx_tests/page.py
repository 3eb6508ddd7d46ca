"""Write the outcomes as a table, a line per test, and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnx_tests.runner import Result

TABLE = Path(__file__).with_name("outcomes.txt")


def line(result: Result) -> str:
    """Return the line of a test; the outcome with constant inputs follows if it is another one."""
    words = [str(result.test), result.shipped.word]
    if result.constant.word != result.shipped.word:
        words.append(result.constant.word)
    return "\t".join(words)


def changes(results: Sequence[Result]) -> list[str]:
    """Return the lines of ``results`` that differ from the committed table, with the committed ones."""
    known = {text.split("\t")[0]: text for text in TABLE.read_text().splitlines()} if TABLE.exists() else {}
    lines = {str(result.test): line(result) for result in results}
    return [f"- {known.get(name, name)}\n+ {text}" for name, text in lines.items() if known.get(name) != text]


def write(results: Sequence[Result]) -> None:
    """Write the table and the page."""
    TABLE.write_text("".join(f"{line(result)}\n" for result in results))
