"""What is done with archives alone: look into them, judge, compare, convert and merge them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlfbuild.archive import open_archive, rename_modules, tar, write_archive
from mlfbuild.archive.compare import LibraryComparison, compare, comparison_text
from mlfbuild.archive.describe import describe, describe_text
from mlfbuild.archive.merge import merge
from mlfbuild.archive.validate import Report, validate
from mlfbuild.core import InputFileError, UsageError, listed, open_binary, read_bytes
from mlfbuild.library import Identity, Library, identities
from mlfbuild.project import suggestion

__all__ = [
    "Identity",
    "compare_archives",
    "comparison_text",
    "convert_archive",
    "inspect",
    "inspect_text",
    "merge_archives",
    "models_in_image",
    "validate_archive",
]


def models_in_image(path: Path) -> list[Identity] | None:
    """Return the ids of the models in the image ``path``, an ELF or the bytes of its flash; ``None`` for no image.

    Raises ``InputFileError`` where the file cannot be read, and for an ELF without any.
    """
    if tar.looks_like_archive(path):
        return None
    data = read_bytes(path, "archive or image")
    found = identities(data)
    if not found and data.startswith(b"\x7fELF"):
        raise InputFileError(f"{path}: calls no model that mlfbuild compiled; link one, or name another image")
    return found or None


def inspect(path: Path, modules: Collection[str] = ()) -> dict[str, Any]:
    """Return what the archive ``path`` holds, as plain JSON values; only ``modules`` where some are named.

    Raises ``InputFileError``, and ``UsageError`` for a module that the archive does not have.
    """
    return describe(_chosen(open_archive(path), modules, path))


def inspect_text(path: Path, modules: Collection[str] = (), *, verbose: bool = False) -> str:
    """Return what the archive ``path`` holds, as lines for people; ``verbose`` cuts no list. Raises as ``inspect``."""
    return describe_text(_chosen(open_archive(path), modules, path), verbose=verbose)


def _chosen(library: Library, names: Collection[str], path: Path) -> Library:
    known = [module.name for module in library.modules]
    for name in names:
        if name not in known:
            raise UsageError(f"{path}: has no module {name!r}{suggestion(name, known) or f' (it has {listed(known)})'}")
    if not names:
        return library
    return replace(library, modules=tuple(module for module in library.modules if module.name in names))


def validate_archive(path: Path) -> Report:
    """Return what is wrong with the archive ``path``; raises ``InputFileError`` where it cannot be read."""
    return validate(tar.members(open_binary(path, "archive"), str(path)), str(path))


def compare_archives(left: Path, right: Path) -> LibraryComparison:
    """Return in what the archive ``right`` differs from ``left``, by meaning; raises ``InputFileError``."""
    return compare(open_archive(left), open_archive(right))


def convert_archive(path: Path, version: int, output: Path, names: Sequence[str] = ()) -> int:
    """Write the archive ``path`` to ``output`` in ``version`` of the format; returns the bytes written.

    ``names`` gives modules other names: ``OLD=NEW``, or ``NEW`` for that of an archive with one module. The output
    appears whole or not at all. Raises ``InputFileError``, ``UsageError`` for what the version cannot hold and for
    names that modules cannot have, and ``StorageError``.
    """
    library = open_archive(path)
    new_names = _new_names(library, names, path)
    try:
        library = rename_modules(library, new_names)
    except UsageError as error:
        raise error.within(path) from None
    write_archive(library, output, version)
    return output.stat().st_size


def _new_names(library: Library, names: Sequence[str], path: Path) -> dict[str, str]:
    known = [module.name for module in library.modules]
    new: dict[str, str] = {}
    for text in names:
        old, equals, name = text.rpartition("=")
        if not equals and len(known) > 1:
            raise UsageError(f"{path}: holds several modules ({listed(known)}); say which: --module-name OLD={text}")
        new[old if equals else known[0]] = name
    return new


def merge_archives(paths: Sequence[Path], output: Path) -> list[str]:
    """Write the archives ``paths`` as one to ``output``, in version 7; returns the names of its modules.

    The output appears whole or not at all. Raises ``InputFileError``, ``CheckFailedError`` where they do not fit
    together, and ``StorageError``.
    """
    merged = merge([(str(path), open_archive(path)) for path in paths])
    write_archive(merged, output)
    return [module.name for module in merged.modules]
