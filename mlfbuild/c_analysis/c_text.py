"""C source text as tokens, sufficient to find and edit structs, macros, definitions and calls.

This is a lexer, not a parser: it implements translation phases 2 and 3 of C99 (6.4), accepts any text, valid or not,
in linear time, and never raises. Include files and macros are not expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["identifier", "number", "string", "character", "punctuation", "directive"]


class Token(NamedTuple):
    """A token and where it starts: ``source[offset : offset + len(text)] == text``."""

    kind: Kind
    text: str
    offset: int

    @property
    def end(self) -> int:
        """The offset after the token."""
        return self.offset + len(self.text)


# No alternative below can fail once it has begun, so nothing is ever read twice.
_SPLICE = r"\\(?:\r\n|[\s\S]|\Z)"  # a backslash and the escaped character, which may be the end of a line
# Not nested, and up to the end of the text if it is not closed: the lexer accepts any text.
_BLOCK_COMMENT = r"/\*[\s\S]*?(?:\*/|\Z)"
_LINE_COMMENT = rf"//[^\\\n]*(?:{_SPLICE}[^\\\n]*)*"
_STRING = rf'"[^"\\\n]*(?:{_SPLICE}[^"\\\n]*)*"?'
_CHARACTER = rf"'[^'\\\n]*(?:{_SPLICE}[^'\\\n]*)*'?"
_TOKEN = re.compile(
    r"[ \t\r\n\f\v]*(?:"
    r"(?P<identifier>[^\W\d][\w$]*)"
    # A preprocessing number (C99 6.4.8), which is wider than any constant: a sign may follow an exponent.
    r"|(?P<number>\.?[0-9][\w.]*(?:(?<=[eEpP])[+-][\w.]*)*)"
    rf"|(?P<comment>{_BLOCK_COMMENT}|{_LINE_COMMENT}|\\\r?\n)"
    rf"|(?P<string>{_STRING})"
    rf"|(?P<character>{_CHARACTER})"
    r"|(?P<end>\Z)"
    # The last alternative takes any single character, so the pattern matches at every position.
    r"|(?P<punctuation>\.\.\.|->|\+\+|--|&&|\|\||(?:<<|>>|[-+*/%&|^<>=!])=?|##|[\s\S]))"
)
# Strings and comments are alternatives of their own, because a `//` or a line end in them does not count as such.
_DIRECTIVE = re.compile(rf"#(?:[^\n\\/\"']+|{_SPLICE}|{_BLOCK_COMMENT}|{_LINE_COMMENT}|{_STRING}|{_CHARACTER}|[\\/])*")


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of ``source`` in order, without white space and comments.

    A ``directive`` is a whole preprocessor line, with its continuation lines and comments but without the line end.
    Strings and character constants have their quotes and escapes as written; an unterminated one ends at the line end,
    and an unterminated comment at the end of the text. Every other character is ``punctuation``.
    """
    at, first = 0, True  # first: only white space and comments precede on this line
    while True:
        found = _TOKEN.match(source, at)
        assert found is not None  # the last alternative matches any character
        kind: Any = found.lastgroup
        text, begin = found[kind], found.start(kind)
        if kind == "end":
            return
        # A `#` begins a directive only as the first token of its line (C99 6.10); white space and comments may precede
        # it.
        if not first:
            first = "\n" in source[at:begin]
        at = found.end()
        if kind == "comment":
            continue
        if first and text.startswith("#"):
            directive = next(_DIRECTIVE.finditer(source, begin))  # from a `#` on there always is one
            kind, text, at = "directive", directive[0], directive.end()
        first = False
        yield Token(kind, text, begin)


def in_braces(source: Iterator[Token]) -> Iterator[Token]:
    """Yield the tokens up to the ``}`` of a brace that was opened before them.

    The ``}`` itself is consumed but not yielded, so ``source`` continues after it. Braces inside are yielded. If the
    text ends first, so do the tokens.
    """
    depth = 1
    for token in source:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0:
            return
        yield token


_ESCAPE = re.compile(r"\\(?:(\r?\n)|([0-7]{1,3})|x([0-9A-Fa-f]+)|([\s\S]))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def string_value(literal: str) -> str:
    """Return the value of a string literal with its quotes, as in C.

    Numeric escapes are characters modulo 256; an unknown escape is the escaped character.
    """
    body = literal[1:]
    if body.endswith('"') and not _escapes_last(body[:-1]):
        body = body[:-1]
    return _ESCAPE.sub(_unescaped, body)


def _escapes_last(text: str) -> bool:
    """Return whether ``text`` ends with a backslash that escapes the next character."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _unescaped(escape: re.Match[str]) -> str:
    splice, octal, hexadecimal, other = escape.groups()
    if splice is not None:
        return ""
    if octal is not None:
        return chr(int(octal, 8) % 256)
    if hexadecimal is not None:
        # C takes any number of hexadecimal digits, and compilers keep the low byte of a constant that does not fit.
        return chr(int(hexadecimal[-2:], 16))
    return _ESCAPED.get(other, other)
