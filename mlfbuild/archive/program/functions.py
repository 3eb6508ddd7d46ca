"""Find the C functions of a module in its sources and objects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from mlfbuild.c_analysis import (
    HEADER_SUFFIXES,
    MAX_TEXT,
    OBJECT_SUFFIXES,
    TEXT_SUFFIXES,
    defined_functions,
    object_symbols,
)
from mlfbuild.core import InputFileError
from mlfbuild.library import CodegenFile, Module


@dataclass(frozen=True)
class CodeFunction:
    """A C function, and where it is defined."""

    name: str
    file: str
    """Path in the archive; empty if no file defines the function."""
    line: int | None
    """From 1; ``None`` in an object."""


KnownFiles: TypeAlias = dict[PurePosixPath, list[CodeFunction]]
"""The functions of each file of one archive that was read before; modules may share headers."""


def code_functions(module: Module, known: KnownFiles) -> dict[str, CodeFunction]:
    """Return the functions that ``module`` defines, by name; of several with one name, that of a source.

    Files larger than ``MAX_TEXT``, and objects that cannot be read, are left out. Files are added to ``known``.
    """
    found: dict[str, CodeFunction] = {}
    # Sources before headers: the first definition of a name is kept.
    for file in sorted(module.codegen, key=lambda each: each.path.suffix in HEADER_SUFFIXES):
        if file.path not in known:
            known[file.path] = _functions(file)
        for function in known[file.path]:
            found.setdefault(function.name, function)
    return found


def _functions(file: CodegenFile) -> list[CodeFunction]:
    path = f"codegen/{file.path}"
    if len(file.content) > MAX_TEXT:
        return []
    if file.path.suffix in TEXT_SUFFIXES:
        return [CodeFunction(each.name, path, each.line) for each in defined_functions(_text(file))]
    if file.path.suffix not in OBJECT_SUFFIXES:
        return []
    try:
        symbols = object_symbols(file.data, path)
    except InputFileError:
        return []  # validate reports it (MLF712)
    return [CodeFunction(name, path, None) for name in sorted(symbols.defined | symbols.weak)]


def function_text(module: Module, function: CodeFunction) -> bytes | None:
    """Return the definition of ``function``, one of ``code_functions``; ``None`` if it is in an object.

    The bytes are those of the file, whatever its encoding. The comment before the function is not part of it.
    """
    for file in module.codegen:
        if f"codegen/{file.path}" == function.file and function.line is not None:
            text = _text(file)
            for each in defined_functions(text):
                if (each.name, each.line) == (function.name, function.line):
                    return text[each.start : each.end].encode("latin-1")
    return None


def _text(file: CodegenFile) -> str:
    return file.data.decode("latin-1")
