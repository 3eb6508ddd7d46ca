"""The symbols that a C or C++ source file defines, read from its tokens without compiling it.

The rules of the language are implemented as far as generated code needs them: linkage blocks, storage classes,
attributes, initialisers, tentative definitions, macros of the file itself, and conditions on C++. Header files are not
read, so a macro from a header, such as ``TVM_DLL``, is treated as a specifier without meaning, and all branches of an
unknown condition are read.

A macro of the file is expanded once; macros in the result are not expanded. A condition is known if it is a number or a
test of ``__cplusplus``, and unknown otherwise.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.c_analysis.c_declaration import Declaration, Linkage, declared_names
from mlfbuild.c_analysis.c_text import Token, tokens
from mlfbuild.c_analysis.objects import Symbols

_DEFINE = re.compile(r"#\s*define\s+(\w+)(\([^)]*\))?(.*)", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]", re.ASCII)
_COMMENTS = re.compile(r"/\*.*?\*/|//.*", re.DOTALL)
_MAX_BODY = 16 * 1024  # characters; a longer macro is not a set of specifiers
_MAX_CONDITION = 200  # characters; known conditions are shorter


@dataclass(frozen=True)
class Macro:
    """``#define``; ``parameters`` is ``None`` for an object-like macro."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


def _macro(parameters: str | None, body: str) -> Macro:
    names = None if parameters is None else tuple(name.strip() for name in parameters.strip("()").split(","))
    return Macro(names, tuple(tokens(body)))


_EXPORT = _macro("(name, function)", 'extern "C" int name(void) {}')
KNOWN_MACROS: Mapping[str, Macro] = {"TVM_DLL_EXPORT_TYPED_FUNC": _EXPORT, "TVM_DLL_EXPORT_PACKED_FUNC": _EXPORT}
"""Macros of TVM's headers that define a function (packed_func.h)."""


def defined_macro(directive: str) -> tuple[str, Macro] | None:
    """Return name and macro if the preprocessor line ``directive`` is a ``#define``, else ``None``.

    Lines that continue with a backslash count as one. A macro whose body is longer than 16 KiB is ignored: it is not a
    set of specifiers.
    """
    found = _DEFINE.match(re.sub(r"\\\r?\n", " ", directive))
    if found is None or len(found[3]) > _MAX_BODY:
        return None
    return found[1], _macro(found[2], found[3])


def arguments(call: Sequence[Token]) -> list[list[Token]]:
    """Return the arguments of a macro call; ``call`` are the tokens between the outer parentheses.

    Commas inside of parentheses, brackets and braces do not separate arguments. A call without tokens has one empty
    argument, as in C.
    """
    found: list[list[Token]] = [[]]
    depth = 0
    for token in call:
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "punctuation" else 0
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found


def expanded(macro: Macro, values: Sequence[Sequence[Token]], limit: int) -> list[Token] | None:
    """Return the body of ``macro`` with its parameters replaced by ``values``, and ``##`` applied.

    Return ``None`` if the result has more than ``limit`` tokens, because an untrusted file must not grow without
    bounds.
    """
    table = dict(zip(macro.parameters or (), values, strict=False))
    if sum(len(table.get(token.text, (token,))) for token in macro.body) > limit:
        return None
    result: list[Token] = []
    paste = False
    for token in macro.body:
        if token.text == "##":
            paste = True
            continue
        new = table.get(token.text, [token])
        if paste and result and new:
            glued = result.pop()
            result += [glued._replace(text=glued.text + new[0].text), *new[1:]]
        else:
            result += new
        paste = False
    return result


def condition(directive: str, *, cplusplus: bool) -> bool | None:
    """Return whether the code after ``#if``, ``#ifdef``, ``#ifndef`` or ``#elif`` is compiled; ``None`` if unknown."""
    words = _WORDS.findall(_COMMENTS.sub(" ", directive[:_MAX_CONDITION]))[1:8]
    match words:
        case ["ifdef", "__cplusplus"] | ["if" | "elif", "__cplusplus"]:
            return cplusplus
        case ["if" | "elif", "defined", "__cplusplus"] | ["if" | "elif", "defined", "(", "__cplusplus", ")"]:
            return cplusplus
        case ["ifndef", "__cplusplus"]:
            return not cplusplus
        case ["if" | "elif", "!", "defined", "__cplusplus"] | ["if" | "elif", "!", "defined", "(", "__cplusplus", ")"]:
            return not cplusplus
        case ["if" | "elif", number] if number.isdigit():
            return int(number[:9]) != 0
    return None


def directive_name(directive: str) -> str:
    """Return the word after the ``#``, such as ``include``, ``define`` or ``if``; empty if there is none."""
    found = re.match(r"#\s*(\w*)", directive)
    return found[1] if found else ""


_BODY = Token("punctuation", "{}", 0)
"""The token that replaces braces and their content in a declaration: members, or an initialiser."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_MAX_BODIES = 64
"""Limit for braces in one declaration that may begin a function body; real code has fewer."""
_GROWTH = 4  # limit for the tokens from macros, per token of the file


def c_symbols(source: str, *, cplusplus: bool = False) -> Symbols:
    """Return the symbols of the C source text ``source``; ``cplusplus`` reads it as C++.

    Takes any text, and time that is linear in its length; text that is not C gives some symbols or none.
    """
    reader = _Reader(cplusplus)
    for token in _compiled(source, reader, cplusplus):
        reader.take(token)
    return reader.symbols()


def _compiled(source: str, reader: _Reader, cplusplus: bool) -> Iterator[Token]:
    """Yield the tokens that are compiled, and pass macros and unknown conditions to ``reader``."""
    branches: list[bool | None] = []  # for each open #if, whether its current branch is compiled
    dead = 0  # the number of branches that are not compiled
    for token in tokens(source):
        if token.kind != "directive":
            if not dead:
                yield token
            continue
        name = directive_name(token.text)
        if name in {"if", "ifdef", "ifndef"}:
            branches.append(condition(token.text, cplusplus=cplusplus))
            dead += branches[-1] is False
            if branches[-1] is None:
                reader.fork()
        elif name in {"else", "elif"} and branches:
            dead -= branches[-1] is False
            if branches[-1] is None:
                reader.retry()
            else:
                branches[-1] = not branches[-1]
            dead += branches[-1] is False
        elif name == "endif" and branches:
            last = branches.pop()
            dead -= last is False
            if last is None:
                reader.join()
        elif name == "define" and not dead:
            reader.define(token.text)


class _Reader:
    """Collects declarations from the tokens of a file."""

    def __init__(self, cplusplus: bool) -> None:
        self._linkages = [Linkage(cplusplus)]  # of the enclosing linkage and namespace blocks
        self._tokens: list[Token] = []  # of the current declaration
        self._bodies = 0  # opened in the current declaration
        self._depth = 0  # open braces of a body
        self._function = False  # whether that body belongs to a function
        self._parentheses = 0
        self._macros: dict[str, Macro] = dict(KNOWN_MACROS)
        self._call: list[Token] = []  # of the current macro call
        self._call_depth = 0
        self._forks: list[tuple[int, int, bool, int]] = []
        self._seen = 0
        self._grown = 0
        self._names: defaultdict[str, set[str]] = defaultdict(set)

    def symbols(self) -> Symbols:
        """Return the symbols; a name that is declared local or weak once is so everywhere."""
        names = self._names
        local = names["local"]
        weak = names["weak"] - local
        weakly = (names["weakly defined"] | (names["defined"] & weak)) - local
        defined = names["defined"] - local - weak
        declared = (names["declared"] | weak) - local - weakly - defined
        return Symbols(frozenset(defined), frozenset(weakly), frozenset(local), frozenset(declared))

    # Preprocessor ----------------------------------------------------------------------------------------------------

    def define(self, directive: str) -> None:
        """Record a ``#define``."""
        found = defined_macro(directive)
        if found is not None:
            self._macros[found[0]] = found[1]

    def fork(self) -> None:
        """Save the state at the start of a branch whose condition is unknown."""
        # Each branch is read from the same state, as if it were the only one; the names of all branches are kept.
        self._forks.append((len(self._tokens), self._depth, self._function, self._parentheses))

    def retry(self) -> None:
        """Restore the state at the start of the previous branch."""
        if self._forks:
            count, self._depth, self._function, self._parentheses = self._forks[-1]
            del self._tokens[count:]

    def join(self) -> None:
        """Continue after the last branch."""
        if self._forks:
            self._forks.pop()

    # Tokens ----------------------------------------------------------------------------------------------------------

    def take(self, token: Token) -> None:
        """Process the next token of the file; macros outside of bodies are expanded."""
        self._seen += 1
        if self._call:
            self._take_argument(token)
            return
        macro = self._macros.get(token.text) if self._depth == 0 and token.kind == "identifier" else None
        if macro is None:
            self._plain(token)
        elif macro.parameters is None:
            self._expand(macro, [], [token])
        else:
            self._call.append(token)
            self._call_depth = 0

    def _take_argument(self, token: Token) -> None:
        self._call.append(token)
        if token.kind == "punctuation":
            self._call_depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if self._call_depth > 0:
            return
        call, self._call = self._call, []
        if token.text == ")":
            self._expand(self._macros[call[0].text], arguments(call[2:-1]), call)
        else:  # the name of a function-like macro without parentheses is not a call
            for word in call:
                self._plain(word)

    def _expand(self, macro: Macro, values: Sequence[Sequence[Token]], call: Sequence[Token]) -> None:
        # The limit grows with the tokens seen so far, so that a file cannot double its size with each macro; 1000 lets
        # short files begin with a long one.
        result = expanded(macro, values, _GROWTH * self._seen + 1000 - self._grown)
        self._grown += 0 if result is None else len(result)
        for token in call if result is None else result:
            self._plain(token)

    def _plain(self, token: Token) -> None:
        text = token.text if token.kind == "punctuation" else ""
        if self._depth:
            self._depth += (text == "{") - (text == "}")
            if self._depth == 0:
                self._end_of_body()
        elif text == "{" and not self._parentheses:
            self._open()
        elif text == "{":
            self._depth, self._function = 1, False
        elif text == "}":
            self._tokens.clear()
            self._bodies = 0
            if len(self._linkages) > 1:
                self._linkages.pop()
        elif text == ";" and not self._parentheses:
            self._declare(Declaration(self._tokens, self._linkages[-1], body=False))
        else:
            self._parentheses = max(0, self._parentheses + (text == "(") - (text == ")"))
            self._tokens.append(token)

    def _open(self) -> None:
        """Process the brace at the start of a linkage block, a namespace or a body."""
        self._bodies += 1
        # Each attempt reads the whole declaration so far: for text of braces alone, time would grow with the square of
        # its length.
        if self._bodies > _MAX_BODIES:
            self._depth, self._function = 1, False
            return
        block = self._linkages[-1].block(self._tokens)
        if block is not None:
            self._linkages.append(block)
            self._tokens.clear()
            self._bodies = 0
            return
        declaration = Declaration(self._tokens, self._linkages[-1], body=True)
        self._depth, self._function = 1, declaration.is_function
        if self._function:
            self._declare(declaration)

    def _end_of_body(self) -> None:
        if not self._function:
            self._tokens.append(_BODY)
        self._function = False

    def _declare(self, declaration: Declaration) -> None:
        for kind, name in declared_names(declaration):
            self._names[kind].add(name)
        self._tokens.clear()
        self._bodies = 0
