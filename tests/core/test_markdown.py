"""Text from outside stays text in Markdown: a real parser finds the same characters in a code span."""

import re

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mlfbuild.cli.output.markdown import error_markdown, verify_markdown
from mlfbuild.core import OverBudgetError, ProcessFailedError, markdown_block, markdown_code, markdown_table, printable
from mlfbuild.core.errors import Diagnostic
from support.markdown import cells

PARSER = MarkdownIt("commonmark").enable("table")


def parsed(text: str) -> list[Token]:
    return PARSER.parse(text)


@pytest.mark.parametrize(
    "text",
    ["kws", "a|b", "`", "``a`b``", "<img src=x onerror=alert(1)>", "@someone #12 !3", "**bold** _it_", "a\\|b", "\\",
     "[x](javascript:y)", "| --- |", "&amp;", "/close", "trailing\\"],
)  # fmt: skip
def test_text_stays_text_in_a_table(text: str) -> None:
    assert cells(markdown_table(("name", "bytes"), [(markdown_code(text), "1")])) == [
        [("code_inline", text)], [("text", "1")],
    ]  # fmt: skip


@given(st.text(min_size=1, max_size=40))
def test_any_text_stays_text(text: str) -> None:
    clean = printable(" ".join(text.split()))
    expected = [[("code_inline", clean)] if clean else [], [("text", "1")]]
    assert cells(markdown_table(("name", "bytes"), [(markdown_code(text), "1")])) == expected
    (paragraph,) = [token for token in parsed(f"- {markdown_code(text)}x") if token.type == "inline"]
    parts = [(child.type, child.content) for child in paragraph.children or ()]
    assert parts == [*([("code_inline", clean)] if clean else []), ("text", "x")]


@given(st.text(alphabet="`a~\n|\x1b<", max_size=40))
def test_a_block_ends_with_its_fence(text: str) -> None:
    tokens = parsed(f"{markdown_block(text)}\n\nafter")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_columns_are_aligned() -> None:
    assert markdown_table(("a", "b"), [("1", "2")], align="lr") == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_an_error_is_its_problems_and_the_output_of_a_program() -> None:
    problems = [Diagnostic("size-over-budget", place="app|x", reason="takes 5 bytes", hint="use `less`")]
    text = error_markdown(OverBudgetError(problems))
    items = [token.content for token in parsed(text) if token.type == "inline"]
    assert len(items) == 1 and "app" in items[0] and "less" in items[0]
    failed = error_markdown(
        ProcessFailedError("link-failed", "line\n" * 100 + "```\nlast", place="ld", reason="failed")
    )
    (block,) = [token.content for token in parsed(failed) if token.type == "fence"]
    assert block.splitlines()[-1] == "last" and len(block.splitlines()) == 40
    assert re.search(r"\*\*mlfbuild:\*\* `ld: failed`", failed)


def test_without_cases_the_table_of_verify_is_empty() -> None:
    assert cells(verify_markdown([])) == []
