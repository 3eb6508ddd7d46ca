"""Merge the definitions of ``__tvm_module_ctx``, the pointer to the module in code for TVM's C++ runtime.

The loader sets the variable once for a shared library (``runtime::symbol::tvm_module_ctx``), and each source that calls
packed functions by name defines it (``CodeGenCHost::InitGlobalContext``). In one image they must be the same variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mlfbuild.archive.merge.parts import MergedModule, SymbolTable
from mlfbuild.c_analysis import Token, tokens
from mlfbuild.library import MODULE_CONTEXT

_WEAK = "__attribute__((weak)) "
_WEAKENED = re.compile(rf"{re.escape(_WEAK)}(?=void\s{{0,9}}\*\s{{0,9}}{MODULE_CONTEXT}\b)")


def with_one_context(parts: Sequence[MergedModule], table: SymbolTable) -> list[MergedModule]:
    """Return ``parts`` with the variable weak in all sources, so that the linker keeps one definition.

    The parts do not change if at most one of them defines it.
    """
    defining = {number for number in range(len(parts)) if _defines(table, number)}
    if len(defining) < 2:
        return list(parts)
    return [part.with_sources(_weakened) if number in defining else part for number, part in enumerate(parts)]


def with_strong_context(part: MergedModule) -> MergedModule:
    """Return ``part``, the only module of an image, with the variable as it was before ``with_one_context``."""
    return part.with_sources(lambda text: _WEAKENED.sub("", text))


def _defines(table: SymbolTable, number: int) -> bool:
    return any(MODULE_CONTEXT in symbols.defined for symbols in table.of_part[number].values())


def _weakened(text: str) -> str:
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """Yield ``text`` with the attribute before each ``void* __tvm_module_ctx`` that precedes a value or ``;``."""
    at = 0
    before: list[Token] = []  # the last four tokens
    for token in tokens(text):
        words = [item.text for item in before[-4:]]
        declared = token.text in {"=", ";"} and words[-3:] == ["void", "*", MODULE_CONTEXT]
        if declared and words[0] not in {"extern", "static"}:
            yield text[at : before[-3].offset]
            yield _WEAK
            at = before[-3].offset
        before = [*before[-3:], token]
    yield text[at:]
