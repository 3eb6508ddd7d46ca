"""Facts of a generated C file from its tokens; includes and macros are not expanded.

``c_symbols`` follows the rules of the language to find the symbols for a linker. This module returns what the file
contains, even if it is invalid, for example members of structs that are not C names, or a wrong count of a registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.c_analysis.c_text import Token, string_value, tokens

_INCLUDE = re.compile(r'#\s*include\s*[<"]([^>"]*)[>"]')
# `(?![\w(])`: a parenthesis that follows the name directly makes it a macro with parameters (C99 6.10.3).
_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(?![\w(])[ \t]*([^\n]*)")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)|//.*")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
# The two types of TVM's C runtime whose initialisers hold the names and the functions of a system library.
_REGISTRY_TYPES = frozenset({"TVMFuncRegistry", "TVMBackendPackedCFunc"})
# Bounds the memory for hostile files: constants of a large network are one statement with millions of tokens.
_MAX_STATEMENT = 100_000  # tokens; a registry has three per function
KEYWORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool", "_Complex",
    "_Imaginary",
})  # fmt: skip
"""The keywords of C99, 6.4.1."""
_NO_FUNCTION = KEYWORDS | {"__attribute__", "__declspec", "__asm__", "_Static_assert", "_Alignas"}


@dataclass(frozen=True)
class Function:
    """A function declared or defined at the top level of a file."""

    name: str
    parameters: tuple[str, ...]
    """The type of each parameter, without its name."""


@dataclass(frozen=True)
class Registry:
    """A function registry of TVM's system library: ``TVMFuncRegistry`` and its array of functions."""

    count: int
    """The number of functions that the registry states."""
    names: tuple[str, ...]
    functions: tuple[str, ...]
    """The functions of the array, in its order."""


@dataclass(frozen=True)
class CFile:
    """The facts of one C file."""

    path: str
    """Relative to the archive's root."""
    includes: tuple[str, ...]
    """In order."""
    macros: tuple[tuple[str, str], ...]
    """(name, value as written) of each ``#define`` without parameters, in order, including repeated ones."""
    functions: tuple[Function, ...]
    structs: Mapping[str, tuple[str, ...]]
    """Members of each struct by its name, including invalid identifiers."""
    registry: Registry | None


def read_c_file(path: str, source: Iterable[Token]) -> CFile:
    """Return the facts of the C file with the tokens ``source``, which may be invalid; the time is linear.

    ``path`` is only recorded. Pass ``tokens(text)``, or the first of them if the file may be large.
    """
    directives: list[str] = []
    functions: list[Function] = []
    structs: dict[str, tuple[str, ...]] = {}
    names: list[str] = []
    array: list[str] = []
    for statement in _statements(_without_directives(source, directives)):
        # The order matters: the registry's array is also a declaration with a parenthesis, and a struct may have
        # members that are pointers to functions.
        words = [token.text for token in statement]
        if "TVMFuncRegistry" in words:
            names += ["".join(string_value(token.text) for token in statement if token.kind == "string")]
        elif "TVMBackendPackedCFunc" in words:
            array += _cast_names(words)
        elif struct := _struct(statement):
            structs[struct[0]] = struct[1]
        elif function := _function(words):
            functions.append(function)
    return CFile(
        path=path,
        includes=_included(directives),
        macros=tuple((found[1], _value(found[2])) for line in directives if (found := _DEFINE.match(line))),
        functions=tuple(functions),
        structs=structs,
        registry=_registry(names[0], array) if names else None,
    )


@dataclass(frozen=True)
class DefinedFunction:
    """A function with a body; ``text[start:end]`` is its definition, without comments before it."""

    name: str
    start: int
    end: int
    line: int
    """From 1."""


def defined_functions(text: str) -> Iterator[DefinedFunction]:
    """Yield the functions that the C file ``text`` defines, in its order; the time is linear.

    Declarations are left out. ``static`` and ``inline`` functions are yielded like any other.
    """
    line, at = 1, 0
    for statement in _statements(_without_directives(tokens(text), [])):
        function = _function([token.text for token in statement]) if statement and statement[-1].text == "}" else None
        if function is not None:
            start = _start(statement, text)
            line, at = line + text.count("\n", at, start), start
            yield DefinedFunction(function.name, start, statement[-1].end, line)


def _start(statement: Sequence[Token], text: str) -> int:
    """Return the offset of a definition, without an ``extern "C"`` before it that is only for C++."""
    if [token.text for token in statement[:2]] == ["extern", '"C"']:
        after = statement[2].offset
        if "#endif" in text[statement[1].end : after]:
            return after
    return statement[0].offset


def included_files(source: Iterable[Token]) -> tuple[str, ...]:
    """Return the names that the C file with the tokens ``source`` includes, in order.

    They are as written between the quotes or angle brackets, and a name may occur twice. Includes under ``#if`` are
    returned whatever the condition is.
    """
    return _included(token.text for token in source if token.kind == "directive")


def _included(directives: Iterable[str]) -> tuple[str, ...]:
    return tuple(found[1] for line in directives if (found := _INCLUDE.match(line)))


def _value(text: str) -> str:
    return _COMMENT.sub("", text).strip()


def _without_directives(found: Iterable[Token], directives: list[str]) -> Iterator[Token]:
    for token in found:
        if token.kind == "directive":
            directives.append(token.text)
        else:
            yield token


def _statements(found: Iterable[Token]) -> Iterator[list[Token]]:
    """Yield the statements at the top level and in ``extern "C" {``; they end at ``;`` or after a function body.

    Tokens in braces are omitted, except in structs and in TVM's function registry.
    """
    statement = _Statement()
    for token in found:
        mark = token.text if token.kind == "punctuation" else ""
        # A `}` at depth 0 closes an `extern "C" {`, whose opening was taken for the end of a statement.
        if statement.depth == 0 and (mark in {";", "}"} or (mark == "{" and statement.is_linkage())):
            yield statement.tokens
            statement = _Statement()
            continue
        statement.take(token, mark)
        if statement.is_body and statement.depth == 0:
            yield statement.tokens
            statement = _Statement()
    yield statement.tokens


class _Statement:
    """A statement at the top level that is being read."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.depth = 0
        """The number of open parentheses, brackets and braces."""
        self.is_body = False
        """Whether the last braces are those of a function."""
        self._skips = False
        self._is_registry = False

    def is_linkage(self) -> bool:
        """Return whether this is the ``extern "C"`` before a brace.

        Its brace does not begin a body: the statements in it are at top level.
        """
        return len(self.tokens) == 2 and [token.text for token in self.tokens] == ["extern", '"C"']

    def take(self, token: Token, mark: str) -> None:
        """Add or skip ``token``; ``mark`` is its text if it is punctuation."""
        opens = self.depth == 0 and mark == "{"
        if opens:
            before = [item.text for item in self.tokens[-2:]]
            self.is_body = before[-1:] == [")"]
            # Members of structs and entries of the registry are facts that the caller needs; bodies and initialisers
            # are not, and without them the memory for a statement stays small.
            self._skips = self.is_body or not (self._is_registry or before[:1] == ["struct"])
        self.depth += (mark in _OPENING) - (mark in _CLOSING and self.depth > 0)
        if opens or self.depth == 0 or not self._skips:
            self._add(token)
        self._skips = self._skips and self.depth > 0

    def _add(self, token: Token) -> None:
        self._is_registry = self._is_registry or token.text in _REGISTRY_TYPES
        if len(self.tokens) < _MAX_STATEMENT:
            self.tokens.append(token)


def _struct(statement: Sequence[Token]) -> tuple[str, tuple[str, ...]] | None:
    """Return name and members of ``struct name { ... }``; the name of a member is the last word of its declaration."""
    words = [token.text for token in statement]
    at = words.index("{") if "{" in words else 0
    if at < 2 or words[at - 2] != "struct":
        return None
    members: list[str] = []
    depth, last = 0, ""
    for token in statement[at + 1 :]:
        if depth == 0 and token.text == "}":
            break
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0 and token.text == ";":
            members.append(last)
        # Numbers as well: a tensor called 0 becomes a member of this name, which C refuses and `validate` reports
        # (MLF304).
        # `__attribute__` may follow the name of a member, and is not the name itself.
        elif depth == 0 and token.kind in {"identifier", "number"} and token.text != "__attribute__":
            last = token.text
    return words[at - 1], tuple(members)


def _function(words: Sequence[str]) -> Function | None:
    """Return the function that ``words`` declare or define, or ``None``."""
    at = 0
    # The first parenthesis after an identifier begins the parameters. An `=` or `{` before it means that the
    # parenthesis belongs to a value, as in `int a = f(1);`.
    for at in range(1, len(words)):
        if words[at] in {"=", "{"}:
            return None
        if words[at] == "(" and (words[at - 1].isidentifier() and words[at - 1] not in _NO_FUNCTION):
            break
    else:
        return None
    if at < 2 or words[0] == "typedef":
        return None
    return Function(words[at - 1], parameter_types(words[at + 1 :]))


def parameter_types(words: Sequence[str]) -> tuple[str, ...]:
    """Return the types of parameters from the words after the opening parenthesis.

    The last word of each parameter is taken for its name if there are others before it: ``const void* a`` is
    ``const void *``. A parameter of one word, such as ``void``, is a type. Words after the closing parenthesis are
    ignored; brackets in a parameter, as in ``int a[3]``, stay with it.
    """
    parameters: list[list[str]] = [[]]
    depth = 0
    for word in words:
        if depth == 0 and word == ")":
            break
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth == 0 and word == ",":
            parameters.append([])
        else:
            parameters[-1].append(word)
    return tuple(" ".join(words[:-1] if len(words) > 1 and words[-1].isidentifier() else words) for words in parameters)


def _cast_names(words: Sequence[str]) -> list[str]:
    """Return the functions in ``{ (TVMBackendPackedCFunc)name, ... }``."""
    return [words[at + 2] for at in range(len(words) - 2) if words[at : at + 2] == ["TVMBackendPackedCFunc", ")"]]


def _registry(text: str, functions: Sequence[str]) -> Registry:
    """Return the registry with the names ``text``: a count of two bytes (one in TVM 0.8) and NUL-terminated names."""
    # The high byte of a count of two bytes is below 0x30, the digit 0, if there are fewer than 12,288 functions. The
    # first letter of a name in TVM 0.8 is not.
    high = text[1:2] if text[1:2] and not (text[1].isalnum() or text[1] == "_") else ""
    names = text[1 + len(high) :].split("\0")
    count = ord(text[0]) + 256 * ord(high or "\0") if text else 0
    return Registry(count, tuple(name for name in names if name), tuple(functions))
