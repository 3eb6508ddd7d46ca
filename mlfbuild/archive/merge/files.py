"""Generated files of several archives that have one path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import Part, source_text
from mlfbuild.c_analysis import LINKED_SUFFIXES, TEXT_SUFFIXES, tokens
from mlfbuild.core import CheckFailedError
from mlfbuild.library import ArchiveFile, CodegenFile

_INCLUDED = re.compile(r'include\s*["<]([^">\n]*)[">]')


def with_unique_paths(parts: Sequence[Part]) -> list[Part]:
    """Return ``parts`` so that no two different generated files have one path; equal ones are one file.

    A source or object gets its module's name before its own, as TVM names them; a header is included by its name and
    keeps it. Raises ``CheckFailedError``, which names both archives, modules and the file.
    """
    clashing = _clashing(parts)
    return [_renamed(part, parts, clashing) for part in parts] if clashing else list(parts)


def _clashing(parts: Sequence[Part]) -> set[str]:
    """Return the paths, in lower case, that stand for more than one file."""
    known: dict[str, CodegenFile] = {}
    files = [file for part in parts for file in part.module.codegen]
    return {
        str(file.path).lower()
        for file in files
        if (first := known.setdefault(str(file.path).lower(), file)) != file and first is not file
    }


def _renamed(part: Part, parts: Sequence[Part], clashing: set[str]) -> Part:
    taken = {str(file.path).lower() for other in parts for file in other.module.codegen}
    own = {path: path.with_name(f"{part.module.name}_{path.name}") for path in _paths(part) if _is_in(path, clashing)}
    included = set(_included(part)) if own else set()

    def change(file: CodegenFile) -> CodegenFile:
        if file.path not in own or _is_named(file.path, part):
            return file
        compiled = file.path.suffix in LINKED_SUFFIXES
        if not compiled or file.path.name in included or _is_in(own[file.path], taken):
            raise _refused(part, file, parts)
        return CodegenFile(own[file.path], file.content)

    return part.with_codegen(change)


def _paths(part: Part) -> list[PurePosixPath]:
    return [file.path for file in part.module.codegen]


def _is_in(path: PurePosixPath, lowered: set[str]) -> bool:
    return str(path).lower() in lowered


def _is_named(path: PurePosixPath, part: Part) -> bool:
    return path.name.startswith(f"{part.module.name}_lib")


def _refused(part: Part, file: CodegenFile, parts: Sequence[Part]) -> CheckFailedError:
    """Return the error for a file that another part has, too, but another one."""
    lower = str(file.path).lower()
    others = [(other, own) for other in parts for own in other.module.codegen if str(own.path).lower() == lower]
    other, own = next((other, own) for other, own in others if other is not part and own != file)
    called = f"hold different files called codegen/{file.path}, which the code includes by that name"
    if own.path != file.path:
        called = f"hold codegen/{file.path} and codegen/{own.path}, which differ in case alone"
    return part.refused(other, f"they {called}; export one of them again with other file names")


def _included(part: Part) -> Iterator[str]:
    """Yield the names, without folders, of the files that the module's sources include."""
    for file in part.of_kind(*TEXT_SUFFIXES):
        for token in tokens(source_text(file, part.archive)):
            found = _INCLUDED.search(token.text[:500]) if token.kind == "directive" else None
            if found is not None:
                yield PurePosixPath(found[1]).name


def check_case(parts: Sequence[Part], others: Sequence[ArchiveFile]) -> None:
    """Refuse two paths of the merged archive that differ in case alone; raises ``CheckFailedError``."""
    seen: dict[str, tuple[str, str]] = {}
    paths = [(f"codegen/{path}", part.shown) for part in parts for path in _paths(part)]
    for path, owner in [*paths, *((str(file.path), "a file beside the modules") for file in others)]:
        first, other = seen.setdefault(path.lower(), (path, owner))
        if first != path:
            raise CheckFailedError(
                f"{first} ({other}) and {path} ({owner}): differ in case alone, so not every disk can hold both; "
                "rename one of them"
            )
