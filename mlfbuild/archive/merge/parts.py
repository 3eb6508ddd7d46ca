"""The modules of all archives to merge, each with the archive that it comes from, and their symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mlfbuild.c_analysis import (
    CXX_SUFFIXES,
    LINKED_SUFFIXES,
    OBJECT_SUFFIXES,
    SOURCE_SUFFIXES,
    Symbols,
    c_symbols,
    object_symbols,
)
from mlfbuild.core import CheckFailedError
from mlfbuild.library import CodegenFile, Content, Module

MAX_TEXT = 64 * 1024 * 1024
"""Largest source, in bytes, that is searched for symbols."""


@dataclass(frozen=True)
class MergedModule:
    """A module, and the name of its archive."""

    archive: str
    module: Module

    @property
    def shown(self) -> str:
        """The module and its archive, for errors."""
        return f"module {self.module.name} of {self.archive}"

    def of_kind(self, *suffixes: str) -> list[CodegenFile]:
        """Return the module's generated files that have one of ``suffixes``."""
        return [file for file in self.module.codegen if file.path.suffix in suffixes]

    def with_codegen(self, change: Callable[[CodegenFile], CodegenFile | None]) -> MergedModule:
        """Return the part with ``change`` applied to each generated file; ``None`` removes the file."""
        files = (change(file) for file in self.module.codegen)
        return replace(self, module=replace(self.module, codegen=tuple(file for file in files if file is not None)))

    def with_sources(self, edit: Callable[[str], str]) -> MergedModule:
        """Return the part with ``edit`` applied to the text of each C and C++ file; see ``source_text``."""

        def change(file: CodegenFile) -> CodegenFile:
            if file.path.suffix not in SOURCE_SUFFIXES:
                return file
            text = source_text(file, self.archive)
            new = edit(text)
            return file if new == text else CodegenFile(file.path, source_bytes(new))

        return self.with_codegen(change)

    def refused(self, other: MergedModule, code: str, reason: str, hint: str) -> CheckFailedError:
        """Return the error for this part and ``other``, which cannot be in the same archive."""
        return CheckFailedError(code, place=f"{self.shown} and {other.shown}", reason=reason, hint=hint)


def source_text(file: CodegenFile, archive: str) -> str:
    """Return a source file as text with one character per byte; raises ``CheckFailedError`` if it is too large."""
    if len(file.content) > MAX_TEXT:
        raise CheckFailedError(
            "merge-source-too-large",
            place=f"{archive}: codegen/{file.path}",
            reason=f"is larger than {MAX_TEXT >> 20} MiB, too large to search it for conflicting names",
            hint="export the model again without link-params",
        )
    return file.data.decode("latin-1")


def source_bytes(text: str) -> bytes:
    """Return the bytes of a text from ``source_text``, which may have been edited."""
    return text.encode("latin-1")


class SymbolTable:
    """The symbols of each source and object of all parts, by path.

    A file that several modules share is read once and has the same value in all of them, and files of the table
    ``earlier`` are not read again.
    """

    def __init__(self, parts: Sequence[MergedModule], earlier: SymbolTable | None = None) -> None:
        self.known: dict[PurePosixPath, list[tuple[Content, Symbols]]] = earlier.known if earlier else {}
        self.of_part = [
            {file.path: self._of_file(file, part.archive) for file in part.of_kind(*LINKED_SUFFIXES)} for part in parts
        ]

    def _of_file(self, file: CodegenFile, archive: str) -> Symbols:
        same_path = self.known.setdefault(file.path, [])
        for content, symbols in same_path:
            if content == file.content:
                return symbols
        same_path.append((file.content, _symbols(file, archive)))
        return same_path[-1][1]


def _symbols(file: CodegenFile, archive: str) -> Symbols:
    if file.path.suffix in OBJECT_SUFFIXES:
        return object_symbols(file.data, f"{archive}: codegen/{file.path}")
    return c_symbols(source_text(file, archive), cplusplus=file.path.suffix in CXX_SUFFIXES)
