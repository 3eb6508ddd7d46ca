"""Assign the generated files of an archive to its modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from mlfbuild.c_analysis import HEADER_SUFFIXES, LINKED_SUFFIXES
from mlfbuild.core import InputFileError, listed, shown
from mlfbuild.library import device_of, header_names
from mlfbuild.library.metadata import ModuleRecord

CODEGEN = "codegen/"
_LIBRARY_NAME = re.compile(r"(.+)_lib\d+\.\w+", re.ASCII)
_SHARED_LIBRARY = re.compile(r".+\.(?:so(?:\.\d+)*|dylib|dll)", re.ASCII)
# Otherwise 50,000 modules and as many headers of no module would need a list entry for each pair.
_MAX_SHARES = 1_000_000
"""Largest number of pairs of a file and a module that owns it; a thousand modules share a few dozen headers."""


def bears_name(path: PurePosixPath, module: str) -> bool:
    """Return whether the name of the codegen file at ``path`` shows that it belongs to ``module``.

    That is a source or object ``<module>_lib<n>.c`` or the header ``tvmgen_<module>.h``. Other files need an entry in
    the key ``mlfbuild`` of the metadata, if an archive has several modules.
    """
    return _borne_name(path) in {module, *header_names(module)}


def _borne_name(path: PurePosixPath) -> str:
    """Return the part of a file name before ``_lib<n>``, which is a module's name, or else the whole file name."""
    found = _LIBRARY_NAME.fullmatch(path.name)
    return found[1] if found else path.name


def check_no_shared_library(paths: Iterable[str], where: str) -> None:
    """Raise ``InputFileError`` if there is generated code for TVM's C++ runtime.

    ``paths`` are those of all members, and ``where`` is the archive in messages. Such code is a shared library, which
    is recognised by its suffix: ``.so``, ``.dylib`` or ``.dll``.
    """
    for path in paths:
        if path.startswith(CODEGEN) and _SHARED_LIBRARY.fullmatch(path):
            raise InputFileError(
                "archive-shared-library",
                place=f"{where}: {shown(path)}",
                reason="is a shared library for TVM's C++ runtime, which firmware cannot link",
                hint="export the model with the c or llvm target for the C runtime (crt)",
            )


def owners(paths: Iterable[str], records: Sequence[ModuleRecord], where: str) -> Mapping[str, Sequence[str]]:
    """Return the names of the modules that own each generated file of an archive, by path.

    A single module owns all files. Otherwise a file belongs to the module whose name is in the file's name and to those
    that record the file in their metadata; other headers belong to all modules. Files of the host that are not code and
    belong to no module are left out. Raises ``InputFileError`` if code, or any file of another device, belongs to no
    module.
    """
    generated = [PurePosixPath(path) for path in paths if path.startswith(CODEGEN)]
    names = [record.module.name for record in records]
    # Names of files show no module before version 3, so a single module owns them whatever they are called.
    if len(names) == 1:
        return {str(path): names for path in generated}
    claims = _claims(records)
    found = {str(path): _owners(path, names, claims, where) for path in generated}
    if sum(map(len, found.values())) > _MAX_SHARES:
        raise InputFileError(
            "archive-too-many-owners",
            place=f"{where}: {CODEGEN}",
            reason=f"{len(names)} modules share too many of the {len(found)} files",
            hint="name each header after its module, tvmgen_<module>.h",
        )
    return {path: modules for path, modules in found.items() if modules}


def _claims(records: Sequence[ModuleRecord]) -> dict[str, list[str]]:
    """Return the modules of each name and of each recorded path."""
    claims: dict[str, list[str]] = {}
    for record in records:
        name = record.module.name
        recorded = {CODEGEN + path for path in record.extension.codegen}
        # As a set: a recorded path may also be the usual name of the header, and must not count twice.
        for claim in {name} | header_names(name) | recorded:
            claims.setdefault(claim, []).append(name)
    return claims


def _owners(path: PurePosixPath, names: Sequence[str], claims: Mapping[str, list[str]], where: str) -> Sequence[str]:
    claimed = [*claims.get(_borne_name(path), ()), *claims.get(str(path), ())]
    if claimed:
        # A file may be claimed by its name and in the metadata, in several modules.
        return sorted(set(claimed))
    # Any module may include a header without an owner.
    if path.suffix in HEADER_SUFFIXES:
        return names
    if path.suffix in LINKED_SUFFIXES or device_of(path.relative_to(CODEGEN)) is not None:
        raise InputFileError(
            "archive-code-unowned",
            place=f"{where}: {shown(path)}",
            reason=f"belongs to none of the modules {listed(names)}",
            hint=f"rename it to <module>_lib<n>{path.suffix}, or remove it",
        )
    return ()
