"""Which names a C or C++ file mentions, and where: in a function's body, in a macro, or in what is always compiled.

All branches of all conditions count, and no macro is expanded: what is found is no less than what any compiler with
any options takes from the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlfbuild.c_analysis.c_declaration import Declaration, Linkage, declared_names
from mlfbuild.c_analysis.c_macros import directive_name
from mlfbuild.c_analysis.c_text import Token, tokens

_INCLUDE = re.compile(r'#\s*(?:include|include_next|import)\s*([<"])([^>"]*)[>"]')
_DEFINE = re.compile(r"#\s*define\s+(\w+)(?:\(([^)]*)\))?((?:.|\n)*)")
_WORD = re.compile(r"[^\W\d]\w*")
_SPLICE = re.compile(r"\\\r?\n")
_MAX_BODIES = 64
"""Braces in one declaration of which any may open a function; text that has more is none that somebody wrote."""
ANYTHING = "*"
"""What stands for a macro's parameter in the names that it makes."""
COMPUTED = ""
"""What stands for an include whose file a macro names."""


@dataclass(frozen=True)
class Include:
    """``#include``, or what an assembler calls so."""

    path: str
    """As written; ``COMPUTED`` where a macro says it."""
    quoted: bool
    """Whether the folder of the file that says it is looked into first."""


@dataclass(frozen=True)
class MacroBody:
    """What a ``#define`` puts in place of its name."""

    names: frozenset[str]
    pasted: tuple[str, ...]
    """Patterns of the identifiers that ``##`` makes; a parameter stands as ``*``."""
    is_function: bool
    """Whether it takes arguments."""


@dataclass(frozen=True)
class Mentions:
    """The names in a file."""

    includes: tuple[Include, ...]
    names: frozenset[str]
    """Outside of functions: in initialisers and in the bodies of types."""
    functions: Mapping[str, frozenset[str]]
    """In the body of each function."""
    macros: Mapping[str, MacroBody]
    """Of several with one name, all together."""
    heads: tuple[frozenset[str], ...]
    """The words of each declaration at file scope: a macro among them may make anything of them."""


def c_mentions(source: str, *, cplusplus: bool = False) -> Mentions:
    """Return what the C text ``source`` mentions; takes any text, and time that is linear in its length."""
    reader = _Reader(cplusplus)
    for token in tokens(source):
        if token.kind == "directive":
            reader.directive(token.text)
        else:
            reader.take(token)
    return reader.mentions()


def words_in(text: str) -> frozenset[str]:
    """Return every word of ``text`` that could be an identifier."""
    return frozenset(_WORD.findall(text))


def includes_in(source: str) -> tuple[Include, ...]:
    """Return the files that the C text ``source`` includes, without reading more than that of it."""
    if "#" not in source:
        return ()
    found = (_include(token.text) for token in tokens(source) if token.kind == "directive")
    return tuple(include for include in found if include is not None)


class _Reader:
    """Takes the tokens of a file one by one."""

    def __init__(self, cplusplus: bool) -> None:
        self._linkages = [Linkage(cplusplus)]
        self._head: list[Token] = []  # of the declaration that is being read
        self._bodies = 0  # that have been opened in it
        self._depth = 0  # braces of a body around
        self._parentheses = 0
        self._body: set[str] = set()
        self._owners: tuple[str, ...] = ()  # the functions whose body that is
        self._forks: list[tuple[int, int, int]] = []
        self._includes: list[Include] = []
        self._names: set[str] = set()
        self._functions: dict[str, set[str]] = {}
        self._macros: dict[str, tuple[set[str], dict[str, None], list[bool]]] = {}
        self._heads: dict[frozenset[str], None] = {}

    def mentions(self) -> Mentions:
        """Return what has been found."""
        self._close(self._body)
        self._end_head()
        functions = {name: frozenset(words) for name, words in self._functions.items()}
        macros = {
            name: MacroBody(frozenset(names), tuple(pasted), any(is_function))
            for name, (names, pasted, is_function) in self._macros.items()
        }
        return Mentions(tuple(self._includes), frozenset(self._names), functions, macros, tuple(self._heads))

    def directive(self, text: str) -> None:
        """Take a line of the preprocessor."""
        name = directive_name(text)
        include = _include(text)
        if include is not None:
            self._includes.append(include)
        elif name == "define":
            self._define(_SPLICE.sub(" ", text))
        elif name in {"if", "ifdef", "ifndef"}:
            self._forks.append((len(self._head), self._depth, self._parentheses))
        elif name in {"else", "elif", "elifdef", "elifndef"} and self._forks:
            count, self._depth, self._parentheses = self._forks[-1]
            self._note(self._head[count:])
            del self._head[count:]
        elif name == "endif" and self._forks:
            self._forks.pop()

    def _define(self, text: str) -> None:
        found = _DEFINE.match(text)
        if found is None:
            return
        parameters = frozenset(_WORD.findall(found[2] or "")) | {"__VA_ARGS__"}
        body = list(tokens(found[3]))
        names, pasted, is_function = self._macros.setdefault(found[1], (set(), {}, []))
        names.update(_words(body) - parameters)
        pasted.update(dict.fromkeys(_pasted(body, parameters)))
        is_function.append(found[2] is not None)

    def take(self, token: Token) -> None:
        """Take the next token of the file."""
        mark = token.text if token.kind == "punctuation" else ""
        if self._depth:
            self._depth += (mark == "{") - (mark == "}")
            self._body |= _words([token])
            if self._depth == 0:
                self._close(self._body)
        elif mark == "{":
            self._open()
        elif mark == "}":
            self._end_head()
            if len(self._linkages) > 1:
                self._linkages.pop()
        elif mark == ";" and not self._parentheses:
            self._end_head()
        else:
            self._parentheses = max(0, self._parentheses + (mark == "(") - (mark == ")"))
            self._head.append(token)

    def _open(self) -> None:
        self._bodies += 1
        if self._bodies > _MAX_BODIES:
            self._depth = 1
            return
        block = None if self._parentheses else self._linkages[-1].block(self._head)
        if block is not None:
            self._linkages.append(block)
            self._end_head()
            return
        self._depth = 1
        declaration = Declaration(self._head, self._linkages[-1], body=True)
        if declaration.is_function and not self._parentheses:
            names = (name for _, name in declared_names(declaration))
            self._owners = tuple(part for name in names for part in _WORD.findall(name))
            self._end_head()

    def _close(self, body: set[str]) -> None:
        """Give a body to the functions that it is of."""
        for name in self._owners:
            self._functions.setdefault(name, set()).update(body)
        if not self._owners:
            self._names |= body
        self._owners = ()
        self._body = set()

    def _end_head(self) -> None:
        self._note(self._head)
        self._head.clear()
        self._bodies = 0
        self._parentheses = 0

    def _note(self, head: list[Token]) -> None:
        words = _words(head)
        if any(token.text == "=" for token in head):
            self._names |= words
        elif words:
            self._heads[words] = None


def _words(found: Iterable[Token]) -> frozenset[str]:
    """Return identifiers, and the words of strings: inline assembly names functions in them."""
    words: set[str] = set()
    for token in found:
        if token.kind == "identifier":
            words.add(token.text)
        elif token.kind == "string":
            words.update(_WORD.findall(token.text))
    return frozenset(words)


def _pasted(body: list[Token], parameters: frozenset[str]) -> Iterable[str]:
    """Yield a pattern for each chain of tokens that ``##`` joins."""
    chain: list[str] = []
    for position, token in enumerate(body):
        if token.text == "##":
            continue
        joined = position > 0 and body[position - 1].text == "##"
        if not joined:
            if len(chain) > 1:
                yield "".join(chain)
            chain = []
        chain.append(ANYTHING if token.text in parameters else token.text)
    if len(chain) > 1:
        yield "".join(chain)


def _include(directive: str) -> Include | None:
    if directive_name(directive) not in {"include", "include_next", "import"}:
        return None
    found = _INCLUDE.match(directive)
    return Include(COMPUTED, False) if found is None else Include(found[2], found[1] == '"')
