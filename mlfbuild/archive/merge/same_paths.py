"""Merge the generated files of several archives that have the same path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import MergedModule, source_text
from mlfbuild.c_analysis import HEADER_SUFFIXES, LINKED_SUFFIXES, TEXT_SUFFIXES, tokens
from mlfbuild.core import CheckFailedError
from mlfbuild.library import ArchiveFile, CodegenFile, device_of

_INCLUDED = re.compile(r'include\s*["<]([^">\n]*)[">]')


def with_unique_paths(parts: Sequence[MergedModule]) -> list[MergedModule]:
    """Return ``parts`` such that different generated files have different paths; equal files may share one.

    The module's name is added to the names of sources, objects and blobs, as in TVM's names. Headers are included by
    their names and keep them. Raises ``CheckFailedError``, with both modules as its place.
    """
    conflicting = _conflicting(parts)
    return [_renamed(part, parts, conflicting) for part in parts] if conflicting else list(parts)


def _conflicting(parts: Sequence[MergedModule]) -> set[str]:
    """Return the paths, in lower case, of more than one file."""
    known: dict[str, CodegenFile] = {}
    files = [file for part in parts for file in part.module.codegen]
    return {
        str(file.path).lower()
        for file in files
        if (first := known.setdefault(str(file.path).lower(), file)) != file and first is not file
    }


def _renamed(part: MergedModule, parts: Sequence[MergedModule], conflicting: set[str]) -> MergedModule:
    taken = {str(file.path).lower() for other in parts for file in other.module.codegen}
    own = {
        path: path.with_name(f"{part.module.name}_{path.name}") for path in _paths(part) if _is_in(path, conflicting)
    }
    included = set(_included(part)) if own else set()

    def change(file: CodegenFile) -> CodegenFile:
        if file.path not in own or _is_named(file.path, part):
            return file
        blob = device_of(file.path) is not None and file.path.suffix not in HEADER_SUFFIXES
        movable = (blob or file.path.suffix in LINKED_SUFFIXES) and file.path.name not in included
        if not movable or _is_in(own[file.path], taken):
            raise _refused(part, file, parts)
        return CodegenFile(own[file.path], file.content)

    return part.with_codegen(change)


def _paths(part: MergedModule) -> list[PurePosixPath]:
    return [file.path for file in part.module.codegen]


def _is_in(path: PurePosixPath, lowered: set[str]) -> bool:
    return str(path).lower() in lowered


def _is_named(path: PurePosixPath, part: MergedModule) -> bool:
    return path.name.startswith(f"{part.module.name}_lib")


def _refused(part: MergedModule, file: CodegenFile, parts: Sequence[MergedModule]) -> CheckFailedError:
    """Return the error for a file of ``part`` if another part has a different file with the same path."""
    lower = str(file.path).lower()
    others = [(other, own) for other in parts for own in other.module.codegen if str(own.path).lower() == lower]
    other, own = next((other, own) for other, own in others if other is not part and own != file)
    reason = f"they have different files codegen/{file.path}, which the code includes by that name"
    if own.path != file.path:
        reason = f"they have codegen/{file.path} and codegen/{own.path}, which differ only in case"
    return part.refused(other, "merge-file-conflict", reason, "export one of them again with other file names")


def _included(part: MergedModule) -> Iterator[str]:
    """Yield the names, without folders, of the files that the module's sources include."""
    for file in part.of_kind(*TEXT_SUFFIXES):
        for token in tokens(source_text(file, part.archive)):
            found = _INCLUDED.search(token.text[:500]) if token.kind == "directive" else None
            if found is not None:
                yield PurePosixPath(found[1]).name


def check_case(parts: Sequence[MergedModule], others: Sequence[ArchiveFile]) -> None:
    """Raise ``CheckFailedError`` if two paths of the merged archive differ only in case."""
    seen: dict[str, tuple[str, str]] = {}
    paths = [(f"codegen/{path}", part.shown) for part in parts for path in _paths(part)]
    for path, owner in [*paths, *((str(file.path), "a file of no module") for file in others)]:
        first, other = seen.setdefault(path.lower(), (path, owner))
        if first != path:
            raise CheckFailedError(
                "merge-paths-differ-in-case",
                place=f"{first} ({other}) and {path} ({owner})",
                reason="the paths differ only in case, so some file systems cannot hold both",
                hint="rename one of them",
            )
