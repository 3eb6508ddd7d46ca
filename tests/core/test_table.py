"""Tables as plain text."""

import pytest

from mlfbuild.core import text_table


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    rows = [("kws", "53,304", "int8"), ("ad", "270", "")]
    assert text_table(rows) == "kws  53,304  int8\nad   270"
    assert text_table(rows, header=("model", "flash", "type"), align="lr", indent=2).splitlines() == [
        "  model   flash  type", "  kws    53,304  int8", "  ad        270",
    ]  # fmt: skip


def test_no_rows_give_no_lines() -> None:
    assert text_table([], header=("model",)) == ""


def test_the_last_column_is_wrapped_at_blanks() -> None:
    rows = [("target", "c -keys=cpu -mcpu=cortex-m4"), ("", "a/path/longer/than/this b")]
    assert text_table(rows, width=24).splitlines() == [
        "target  c -keys=cpu", "        -mcpu=cortex-m4", "        a/path/longer/than/this", "        b",
    ]  # fmt: skip
    assert max(map(len, text_table([("target", "word " * 50)], width=40, indent=3).splitlines())) <= 40


def test_blank_at_the_beginning_of_a_cell_is_kept() -> None:
    assert text_table([("a", "  b"), ("c", "d")], width=20) == "a    b\nc  d"


def test_names_are_text_and_not_markup() -> None:
    assert text_table([("[bold]x[/]", ":smile: [link=https://example.org]"), ("\x1b[2J\n", "\t")]).splitlines() == [
        "[bold]x[/]  :smile: [link=https://example.org]",
        "\\x1b[2J\\n   \\t",
    ]


def test_wide_characters_take_two_columns() -> None:
    assert text_table([("日本", "1"), ("abcde", "2")]) == "日本   1\nabcde  2"


@pytest.mark.parametrize("variables", [{"COLUMNS": "20"}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}])
def test_tables_do_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    rows = [("name" * 100, "text " * 100)]
    expected = text_table(rows)
    assert len(expected.splitlines()) == 1
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert text_table(rows) == expected
