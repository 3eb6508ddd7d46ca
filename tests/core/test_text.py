"""Names and numbers in messages are on one line, even if a name has control characters."""

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.text import counted, listed, printable, quoted, shown, terminal_text


@pytest.mark.parametrize(("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1000, "1,000 files")])
def test_numbers_have_their_noun(number: int, text: str) -> None:
    assert counted(number, "file") == text


def test_long_lists_are_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(9)]) == "0, 1, 2, 3, 4, 5, 6, 7, ..."


def test_plain_names_are_unchanged() -> None:
    assert (printable("kws"), shown("kws"), quoted("kws")) == ("kws", "kws", "'kws'")
    assert (shown("x" * 200, 3), quoted("x" * 200, 3)) == ("xxx...", "'xxx'...")


@given(st.text(st.characters(), max_size=300))
def test_any_name_is_one_line_that_a_terminal_can_show(name: str) -> None:
    assert printable(name).isprintable()
    assert shown(name).isprintable() and len(shown(name)) < 2000
    assert quoted(name).isprintable() and quoted(name).isascii()


@given(st.text(st.characters(), max_size=300))
def test_any_text_is_harmless_on_a_terminal(text: str) -> None:
    harmless = terminal_text(text)
    assert all(one.isprintable() or one in "\n\t" for one in harmless)
    assert terminal_text(harmless) == harmless
    assert text != harmless or all(one.isprintable() or one in "\n\t" for one in text)


@pytest.mark.parametrize(
    ("text", "shown_as"),
    [
        ("kws: 3 KiB\n\tüöä", "kws: 3 KiB\n\tüöä"),
        ("a\r\nb\rc", "a\nb\\rc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("abc\u202edef\u2066", "abc\\u202edef\\u2066"),
        ("\x9b2J\x85", "\\x9b2J\\x85"),
    ],
)
def test_what_a_terminal_gets(text: str, shown_as: str) -> None:
    assert terminal_text(text) == shown_as
