"""The part of C's preprocessor that affects the definitions of a source file: its own macros, and conditions.

Include files are not read. A macro of the file is expanded once; macros in the result are not expanded. A condition
is known if it is a number or a test of ``__cplusplus``, and unknown otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.c_analysis.c_text import Token, tokens

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
    """Return name and macro if the preprocessor line ``directive`` is a ``#define``, else ``None``."""
    found = _DEFINE.match(re.sub(r"\\\r?\n", " ", directive))
    if found is None or len(found[3]) > _MAX_BODY:
        return None
    return found[1], _macro(found[2], found[3])


def arguments(call: Sequence[Token]) -> list[list[Token]]:
    """Return the arguments of a macro call; ``call`` are the tokens between the outer parentheses."""
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
