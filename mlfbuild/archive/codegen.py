"""Which module a generated file belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from mlfbuild.c_analysis import HEADER_SUFFIXES, LINKED_SUFFIXES
from mlfbuild.core import InputFileError, listed
from mlfbuild.library import header_names
from mlfbuild.library.metadata import ModuleRecord

CODEGEN = "codegen/"
_LIBRARY_NAME = re.compile(r"(.+)_lib\d+\.\w+", re.ASCII)
_SHARED_LIBRARY = re.compile(r".+\.(?:so(?:\.\d+)*|dylib|dll)", re.ASCII)
_MAX_SHARES = 1_000_000
"""Pairs of a file and a module that owns it; a thousand modules share a few dozen headers."""


def bears_name(path: PurePosixPath, module: str) -> bool:
    """Whether the file name alone tells which module the codegen file at ``path`` belongs to."""
    return _borne_name(path) in {module, *header_names(module)}


def _borne_name(path: PurePosixPath) -> str:
    """Return the module's name that a file name has before ``_lib<n>``, or else the file name."""
    found = _LIBRARY_NAME.fullmatch(path.name)
    return found[1] if found else path.name


def check_no_shared_library(paths: Iterable[str], where: str) -> None:
    """Refuse generated code for the C++ runtime; raises ``InputFileError``."""
    for path in paths:
        if path.startswith(CODEGEN) and _SHARED_LIBRARY.fullmatch(path):
            raise InputFileError(
                f"{where}: member {path!a}: is a shared library for TVM's C++ runtime, which firmware cannot "
                "link; export the model with the c or llvm target for the C runtime (crt)"
            )


def owners(paths: Iterable[str], records: Sequence[ModuleRecord], where: str) -> Mapping[str, Sequence[str]]:
    """Return the names of the modules that each generated file of an archive belongs to, by path.

    One module owns all; of several, a file belongs to the one whose name it bears, to those that record it, and a
    header of neither to all. Files that are no code and nobody's are left out. Raises ``InputFileError`` for code of
    no module.
    """
    generated = [PurePosixPath(path) for path in paths if path.startswith(CODEGEN)]
    names = [record.module.name for record in records]
    if len(names) == 1:
        return {str(path): names for path in generated}
    claims = _claims(records)
    found = {str(path): _owners(path, names, claims, where) for path in generated}
    if sum(map(len, found.values())) > _MAX_SHARES:
        raise InputFileError(
            f"{where}: {len(names)} modules share too many of the {len(found)} files in {CODEGEN}, refused; give "
            "headers the name of their module, tvmgen_<module>.h"
        )
    return {path: modules for path, modules in found.items() if modules}


def _claims(records: Sequence[ModuleRecord]) -> dict[str, list[str]]:
    """Return the modules that a name or a recorded path stands for."""
    claims: dict[str, list[str]] = {}
    for record in records:
        name = record.module.name
        recorded = {CODEGEN + path for path in record.extension.codegen}
        for claim in {name} | header_names(name) | recorded:
            claims.setdefault(claim, []).append(name)
    return claims


def _owners(path: PurePosixPath, names: Sequence[str], claims: Mapping[str, list[str]], where: str) -> Sequence[str]:
    claimed = [*claims.get(_borne_name(path), ()), *claims.get(str(path), ())]
    if claimed:
        return sorted(set(claimed))
    if path.suffix in HEADER_SUFFIXES:
        return names
    if path.suffix in LINKED_SUFFIXES:
        raise InputFileError(
            f"{where}: member {str(path)!a}: belongs to none of the modules {listed(names)}; rename it to "
            f"<module>_lib<n>{path.suffix}, or remove it"
        )
    return ()
