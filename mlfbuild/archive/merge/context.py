"""``__tvm_module_ctx``: where code for TVM's C++ runtime finds the module that it is part of.

The loader sets it, once for a shared library (``runtime::symbol::tvm_module_ctx``), and every source that calls packed
functions by name defines it (``CodeGenCHost::InitGlobalContext``). In one image they have to be one variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.archive.merge.parts import SOURCE_SUFFIXES, Part, SymbolTable, source_bytes, source_text
from mlfbuild.code.c_text import Token, tokens
from mlfbuild.library import CodegenFile

CONTEXT = "__tvm_module_ctx"
_WEAK = "__attribute__((weak)) "


def with_one_context(parts: Sequence[Part], table: SymbolTable) -> list[Part]:
    """Return ``parts`` with the variable weak in every source, so that the linker makes one of them all.

    Parts stay as they are where no more than one defines it.
    """
    defining = {number for number in range(len(parts)) if _defines(table, number)}
    if len(defining) < 2:
        return list(parts)
    return [_with_weak_context(part) if number in defining else part for number, part in enumerate(parts)]


def _defines(table: SymbolTable, number: int) -> bool:
    return any(CONTEXT in symbols.defined for symbols in table.of_part[number].values())


def _with_weak_context(part: Part) -> Part:
    def change(file: CodegenFile) -> CodegenFile:
        if file.path.suffix not in SOURCE_SUFFIXES:
            return file
        text = source_text(file, part.archive)
        new = "".join(_pieces(text))
        return file if new == text else CodegenFile(file.path, source_bytes(new))

    return part.with_codegen(change)


def _pieces(text: str) -> Iterator[str]:
    """Yield ``text`` with the attribute before each ``void* __tvm_module_ctx`` that a value or ``;`` follows."""
    at = 0
    before: list[Token] = []  # the last four tokens
    for token in tokens(text):
        words = [item.text for item in before[-4:]]
        if token.text in {"=", ";"} and words[-3:] == ["void", "*", CONTEXT] and words[0] not in {"extern", "static"}:
            yield text[at : before[-3].offset]
            yield _WEAK
            at = before[-3].offset
        before = [*before[-3:], token]
    yield text[at:]
