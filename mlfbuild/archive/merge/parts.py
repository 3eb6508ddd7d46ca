"""What merging works on: the modules of all archives, each with the archive it comes from."""

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
from mlfbuild.core import CheckFailedError, advised
from mlfbuild.library import CodegenFile, Content, Module

MAX_TEXT = 64 * 1024 * 1024
"""Bytes; larger sources are not searched for symbols."""


@dataclass(frozen=True)
class Part:
    """A module, and the name of the archive that it stands in."""

    archive: str
    module: Module

    @property
    def shown(self) -> str:
        """The module and its archive, for messages."""
        return f"module {self.module.name} of {self.archive}"

    def of_kind(self, *suffixes: str) -> list[CodegenFile]:
        """Return the module's generated files whose names end in one of ``suffixes``."""
        return [file for file in self.module.codegen if file.path.suffix in suffixes]

    def with_codegen(self, change: Callable[[CodegenFile], CodegenFile | None]) -> Part:
        """Return the part with each generated file as ``change`` returns it; ``None`` leaves it out."""
        files = (change(file) for file in self.module.codegen)
        return replace(self, module=replace(self.module, codegen=tuple(file for file in files if file is not None)))

    def with_sources(self, edit: Callable[[str], str]) -> Part:
        """Return the part with the text of each C and C++ file as ``edit`` returns it; see ``source_text``."""

        def change(file: CodegenFile) -> CodegenFile:
            if file.path.suffix not in SOURCE_SUFFIXES:
                return file
            text = source_text(file, self.archive)
            new = edit(text)
            return file if new == text else CodegenFile(file.path, source_bytes(new))

        return self.with_codegen(change)

    def refused(self, other: Part, reason: str) -> CheckFailedError:
        """Return the error that says why this part and ``other`` do not fit into one archive."""
        return CheckFailedError(advised(f"{self.shown} and {other.shown} cannot be merged: {reason}", "leave one out"))


def source_text(file: CodegenFile, archive: str) -> str:
    """Return a source file as text of one character a byte; raises ``CheckFailedError`` where it is too large."""
    if len(file.content) > MAX_TEXT:
        raise CheckFailedError(
            f"{archive}: codegen/{file.path}: is larger than {MAX_TEXT >> 20} MiB, too large to be searched for names "
            "that clash; export the parameters beside the code (link-params off) and merge again"
        )
    return file.data.decode("latin-1")


def source_bytes(text: str) -> bytes:
    """Return what ``source_text`` read, or an edited form of it, as bytes."""
    return text.encode("latin-1")


class SymbolTable:
    """The symbols of each source and object of all parts, by path.

    A file that several modules share is read once, and its value is one and the same; so is that of a file which the
    table ``earlier`` knows.
    """

    def __init__(self, parts: Sequence[Part], earlier: SymbolTable | None = None) -> None:
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
