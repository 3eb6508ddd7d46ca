"""C text as tokens, including text that is not C."""

import tarfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.c_analysis.c_text import Token, string_value, tokens
from support.steps import assert_linear


def shown(source: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokens(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("int x_1 = 0x1fU;", "identifier:int identifier:x_1 punctuation:= number:0x1fU punctuation:;"),
        ("1.5e-3f .5 1e+2 0x1p-3", "number:1.5e-3f number:.5 number:1e+2 number:0x1p-3"),
        ("a+-1", "identifier:a punctuation:+ punctuation:- number:1"),
        ("p->q++ <<= ...", "identifier:p punctuation:-> identifier:q punctuation:++ punctuation:<<= punctuation:..."),
        ("a/* b */c // d\ne", "identifier:a identifier:c identifier:e"),
        ("a // d \\\n still\nb", "identifier:a identifier:b"),
        ("a // d \\\r\n still\r\nb", "identifier:a identifier:b"),
        ("/* // */ a /* \" */ b", "identifier:a identifier:b"),
        ('"/* no */" "a\\"b" \'"\' \'\\\'\'', 'string:"/* no */" string:"a\\"b" character:\'"\' character:\'\\\'\''),
        ("a \\\n b", "identifier:a identifier:b"),
        ("größe", "identifier:größe"),
        ("@`", "punctuation:@ punctuation:`"),
        ("a # b ## c", "identifier:a punctuation:# identifier:b punctuation:## identifier:c"),  # no directives
        ("", ""),
        # Not terminated.
        ("a /* b", "identifier:a"),
        ('"abc\nd', 'string:"abc identifier:d'),
        ("'a\nd", "character:'a identifier:d"),
        ('"abc\\', 'string:"abc\\'),
        ("#define A \\", "directive:#define A \\"),
        ("#define /* A\nb", "directive:#define /* A\nb"),
        ('#define "A\nb', 'directive:#define "A identifier:b'),
        ("// a \\", ""),
    ],
)  # fmt: skip
def test_tokens_of_a_line(source: str, expected: str) -> None:
    assert " ".join(f"{kind}:{text}" for kind, text in shown(source)) == expected


@pytest.mark.parametrize(
    ("source", "directive"),
    [
        ("#define A 1\nb", "#define A 1"),
        ("  /* first */ # define A 1\nb", "# define A 1"),
        ("#define A \\\n  0x01, \\\n  0x02\nb", "#define A \\\n  0x01, \\\n  0x02"),
        ("#define A \\\r\n  1\r\nb", "#define A \\\r\n  1\r"),
        ("#define A 1 /* over \n lines */ + 2\nb", "#define A 1 /* over \n lines */ + 2"),
        ('#define A "/*"\nb', '#define A "/*"'),
        ("#define A 1 // why\nb", "#define A 1 // why"),
        ("#error don't\nb", "#error don't"),
        ("#include <a/b.h>\nb", "#include <a/b.h>"),
        ("##\nb", "##"),
    ],
)
def test_a_directive_is_one_token(source: str, directive: str) -> None:
    assert shown(source) == [("directive", directive), ("identifier", "b")]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ('"plain"', "plain"), ('""', ""), (r'"a\"b"', 'a"b'), (r'"\\"', "\\"),
        (r'"\003\000name\0"', "\x03\x00name\x00"), (r'"\x41\x142"', "AB"), (r'"\n\t\q"', "\n\tq"), ('"a\\\nb"', "ab"),
        ('"open', "open"), ('"open\\"', 'open"'),
    ],
)  # fmt: skip
def test_the_value_of_a_string(literal: str, value: str) -> None:
    assert string_value(literal) == value


@given(st.text(st.sampled_from("ab1.#\"'\\/*\r\n \t{};=<>+-é")))
def test_tokens_are_in_the_text_in_order(source: str) -> None:
    end = 0
    for token in tokens(source):
        assert token.text
        assert token.offset >= end
        assert source[token.offset : token.end] == token.text
        end = token.end


@pytest.mark.parametrize(
    "unit", ['"', "'", "/*", "//", "\\", "#", "\n#", '#"', "#/*", "a", "1e+", "/", "*/", "\\\n", '"\\']
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        source = unit * (size // len(unit))
        assert sum(len(token.text) for token in tokens(source)) <= len(source)

    assert_linear(work, 40_000)


def test_code_of_tvm_archives_is_balanced(shared: Path) -> None:
    """TVM's C has only valid tokens and balanced brackets."""
    read = 0
    for path in sorted((shared / "archives").glob("*.tar")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.endswith((".c", ".h")):
                    file = archive.extractfile(member)
                    assert file is not None
                    found: list[Token] = list(tokens(file.read().decode()))
                    brackets = [token.text for token in found if token.text in "(){}[]"]
                    assert not any(token.text in "@`$\\" for token in found)
                    for opening, closing in ("()", "[]"):
                        assert brackets.count(opening) == brackets.count(closing)
                    read += 1
    assert read > 40
