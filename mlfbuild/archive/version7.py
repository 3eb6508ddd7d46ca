"""Reading version 7 of Model Library Format: the files of an archive, sorted into modules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.call_order import in_call_order
from mlfbuild.archive.layout import CODEGEN, METADATA, bears_name, graph_path, params_path, source_path
from mlfbuild.errors import InputFileError
from mlfbuild.library import ArchiveFile, CodegenFile, Content, Library, Module
from mlfbuild.library.fields import Fields
from mlfbuild.library.metadata import ModuleRecord, read_modules
from mlfbuild.library.params import load_params

_MODULE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def read_library(document: Fields, files: Mapping[str, Content], where: str) -> Library:
    """Return the library whose archive holds ``files``; ``document`` is its parsed metadata.

    Files of no module, whatever they are, are kept as they are. Raises ``InputFileError`` where a file is missing or
    not what its name says.
    """
    records = read_modules(document)
    for record in records:
        if not _MODULE_NAME.fullmatch(record.module.name):
            raise InputFileError(f"{document.where}: module name {record.module.name!a}: cannot be part of a file name")
    owners = {path: _owners(PurePosixPath(path), records, where) for path in files if path.startswith(f"{CODEGEN}/")}
    modules = tuple(_read_module(record, files, owners, where) for record in records)
    used = {METADATA, *owners, *(path for module in modules for path in _own_paths(module))}
    others = tuple(ArchiveFile(PurePosixPath(path), data) for path, data in files.items() if path not in used)
    return Library(modules, other_files=others)


def _owners(path: PurePosixPath, records: Sequence[ModuleRecord], where: str) -> frozenset[str]:
    """Return the names of the modules that the codegen file at ``path`` belongs to."""
    names = frozenset(record.module.name for record in records)
    bearing = {name for name in names if bears_name(path, name)}
    recording = {record.module.name for record in records if str(path.relative_to(CODEGEN)) in record.shared}
    if bearing or recording:
        return frozenset(bearing | recording)
    if len(names) == 1 or "include" in path.parts:
        return names
    raise InputFileError(f"{where}: member {str(path)!a}: belongs to none of the modules {', '.join(sorted(names))}")


def _own_paths(module: Module) -> list[str]:
    graph = [] if module.graph_json is None else [graph_path(module.name)]
    return [params_path(module.name), source_path(module.name), *graph]


def _read_module(
    record: ModuleRecord, files: Mapping[str, Content], owners: Mapping[str, frozenset[str]], where: str
) -> Module:
    name = record.module.name
    own = [path for path in owners if name in owners[path]]
    params = params_path(name)
    module = replace(
        record.module,
        codegen=tuple(CodegenFile(PurePosixPath(path).relative_to(CODEGEN), files[path]) for path in own),
        params=load_params(bytes(_member(files, params, where)), f"{where}: {params}"),
        graph_json=_member(files, graph_path(name), where) if record.module.executor == "graph" else None,
        source_text=files.get(source_path(name), b""),
    )
    module = replace(module, interface=_interface(module))
    return module if record.ordered else in_call_order(module, where)


def _interface(module: Module) -> str:
    header = any(file.path.name == f"tvmgen_{module.name.lower()}.h" for file in module.codegen)
    return "" if module.executor != "aot" else "c" if header else "packed"


def _member(files: Mapping[str, Content], path: str, where: str) -> Content:
    if path not in files:
        raise InputFileError(f"{where}: member {path}: is missing; export the archive again")
    return files[path]
