"""The views that rules use: files, the metadata as written, the library, and the code and graph of each module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import TypeAlias

from mlfbuild.archive.interface.signature import header_file
from mlfbuild.archive.validate.codes import Finding
from mlfbuild.c_analysis import (
    CXX_SUFFIXES,
    LINKED_SUFFIXES,
    MAX_TEXT,
    OBJECT_SUFFIXES,
    TEXT_SUFFIXES,
    CFile,
    Symbols,
    c_symbols,
    object_symbols,
    read_c_file,
    tokens,
)
from mlfbuild.core import InputFileError
from mlfbuild.library import CodegenFile, Content, Library, Module, all_files, text_of
from mlfbuild.library.graph_json import ExecutorGraph, parse_graph
from mlfbuild.library.metadata import EXTENSION

_FUNCTIONS = "memory.functions."
_DEPENDENCIES = "external_dependencies"


@dataclass(frozen=True)
class ModuleView:
    """One module for the rules; facts that take time are computed once, on first use."""

    module: Module
    archive: ArchiveView = field(repr=False)
    fields: Mapping[str, object]
    """The module's object in the metadata, as written."""
    path: str
    """The path of that object: ``modules.kws``, or empty if it is the document."""

    @property
    def is_native(self) -> bool:
        """Whether mlfbuild compiled the module."""
        return bool(self.module.model_id)

    @property
    def name(self) -> str:
        """The module's name."""
        return self.module.name

    def place(self, key: str) -> str:
        """Return the place of a key of version 7 below the module's object, in the form of the document.

        For example, ``memory.functions.main[0]`` is ``mlfbuild.main[0]`` in version 1, and ``metadata.json:
        modules.kws.`` precedes it in version 7.
        """
        key = self._in_document(key)
        return f"{self.archive.metadata}: {self.path}.{key}" if self.path else f"{self.archive.metadata}: {key}"

    def _in_document(self, key: str) -> str:
        memory = self.fields.get("memory")
        if key.startswith(_FUNCTIONS):
            rest = key.removeprefix(_FUNCTIONS)
            if isinstance(memory, list):
                return f"{EXTENSION}.{rest}"  # version 1 has no other place
            return key if isinstance(memory, dict) and "functions" in memory else f"memory.{rest}"
        # Before version 5, dependencies are only in the key `mlfbuild`.
        moved = key.startswith(_DEPENDENCIES) and _DEPENDENCIES not in self.fields
        return f"{EXTENSION}.{key}" if moved else key

    @cached_property
    def sources(self) -> tuple[CFile, ...]:
        """The facts of C files and headers that are not too large."""
        c_files = [file for file in self.module.codegen if file.path.suffix in TEXT_SUFFIXES]
        files = [file for file in c_files if len(file.content) <= MAX_TEXT]
        return tuple(self._source(file) for file in files)

    def _source(self, file: CodegenFile) -> CFile:
        path = f"codegen/{file.path}"
        if path not in self.archive.c_files:
            self.archive.c_files[path] = read_c_file(path, tokens(text_of(file.content)))
        return self.archive.c_files[path]

    @cached_property
    def _symbols(self) -> tuple[Mapping[str, Symbols], Mapping[str, str]]:
        """The symbols of each C file and object, and the reasons why other files were not read."""
        found: dict[str, Symbols] = {}
        closed: dict[str, str] = {}
        for file in self.module.codegen:
            path = f"codegen/{file.path}"
            if file.path.suffix not in LINKED_SUFFIXES:
                continue
            # A rule must not report a symbol as missing that may be in a file that was not read.
            if len(file.content) > MAX_TEXT:
                closed[path] = f"has {len(file.content):,} bytes"
                continue
            try:
                found[path] = _symbols_of(file)
            except InputFileError as error:
                # The place of a finding already has the name of the file.
                closed[path] = error.reason.removeprefix(f"{file.path.name}: ")
        return found, closed

    @property
    def has_code(self) -> bool:
        """Whether any C file or object belongs to the module."""
        return any(file.path.suffix in LINKED_SUFFIXES for file in all_files(self.module))

    @property
    def closed(self) -> Mapping[str, str]:
        """Files of code that were not read, and the reasons."""
        return self._symbols[1]

    @cached_property
    def definitions(self) -> Mapping[str, Sequence[str]]:
        """The global symbols that files of the module define, each with the paths of these files.

        Weak and static symbols are not among them: they may exist several times.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for path, symbols in self._symbols[0].items():
            for name in symbols.defined:
                found[name].append(path)
        return found

    @cached_property
    def known(self) -> frozenset[str]:
        """All symbols that the module defines, including weak and static ones."""
        symbols = self._symbols[0].values()
        return frozenset().union(*(item.defined | item.weak | item.local for item in symbols))

    @cached_property
    def header(self) -> CFile | None:
        """The C interface's header, if the module has one."""
        file = header_file(self.module)
        return next((source for source in self.sources if file and source.path == f"codegen/{file.path}"), None)

    @cached_property
    def _graph(self) -> tuple[ExecutorGraph | None, InputFileError | None]:
        if self.module.graph_json is None:
            return None, None
        try:
            return parse_graph(bytes(self.module.graph_json), "graph"), None
        except InputFileError as error:
            return None, error

    @property
    def graph(self) -> ExecutorGraph | None:
        """The graph, if the module has one that is valid."""
        return self._graph[0]

    @property
    def graph_place(self) -> str:
        """The path of the graph."""
        return self.archive.paths.get(id(self.module.graph_json), f"the graph of {self.name}")

    @property
    def graph_error(self) -> InputFileError | None:
        """The error of an invalid graph; its place begins with ``graph``."""
        return self._graph[1]


def _symbols_of(file: CodegenFile) -> Symbols:
    if file.path.suffix in OBJECT_SUFFIXES:
        return object_symbols(file.data, file.path.name)
    return c_symbols(text_of(file.content), cplusplus=file.path.suffix in CXX_SUFFIXES)


@dataclass(frozen=True)
class ArchiveView:
    """An archive, which can be read."""

    files: Mapping[str, Content]
    metadata: str
    """The path of the metadata: ``metadata.json``, or ``metadata-<n>.json`` in the first RFC."""
    document: Mapping[str, object]
    """The metadata as written."""
    library: Library
    now: datetime
    c_files: dict[str, CFile] = field(default_factory=dict, repr=False)
    """Facts of files by path, shared by all modules because some headers belong to many."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """All folders of the archive."""
        return frozenset(str(parent) for path in self.files for parent in PurePosixPath(path).parents)

    @cached_property
    def paths(self) -> Mapping[int, str]:
        """The path of each content, by the identity of its object."""
        # By identity: modules have the same objects as `files`, and comparing contents would read them all.
        return {id(content): path for path, content in self.files.items()}

    @cached_property
    def modules(self) -> tuple[ModuleView, ...]:
        """The modules in the library's order."""
        modules = self.document.get("modules")
        if not isinstance(modules, dict):
            return tuple(ModuleView(module, self, self.document, "") for module in self.library.modules)
        fields = {name: each if isinstance(each, dict) else {} for name, each in modules.items()}
        return tuple(
            ModuleView(module, self, fields.get(module.name, {}), f"modules.{module.name}")
            for module in self.library.modules
        )


Rule: TypeAlias = Callable[[ArchiveView], Iterable[Finding]]


def of_each_module(*rules: Callable[[ModuleView], Iterable[Finding]]) -> tuple[Rule, ...]:
    """Return a rule of archives for each of ``rules``, which applies it to all modules in their order."""

    def of_archive(rule: Callable[[ModuleView], Iterable[Finding]]) -> Rule:
        return lambda archive: (found for view in archive.modules for found in rule(view))

    return tuple(map(of_archive, rules))
