"""Write an archive in another version of the format, repaired, or with other module names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.archive import moved_fields, open_archive, open_dated_archive, rename_modules, write_archive
from mlfbuild.archive.repair import RepairedLibrary, repaired
from mlfbuild.core import UsageError, listed
from mlfbuild.jobs import check_output
from mlfbuild.library import Library


@dataclass(frozen=True)
class Conversion:
    """The size of a written archive in bytes, and what was repaired, or ``None`` if that was not requested."""

    size: int
    repair: RepairedLibrary | None = None
    moved: tuple[str, ...] = ()
    """Places of fields that the format does not define and that the version can hold only in the key ``mlfbuild``."""


def convert_archive(
    path: Path, version: int, output: Path, names: Sequence[str] = (), params: str = "params", *, repair: bool = False
) -> Conversion:
    """Write the archive ``path`` to ``output`` in ``version`` of the format, with parameters in the form ``params``.

    ``version`` is 1 to 7, ``params`` is ``params``, ``json`` or ``bson``. ``names`` renames modules: ``OLD=NEW``, or
    ``NEW`` if the archive has one module. ``repair`` first corrects what its exporter is known to have written wrongly.
    The output is written whole or not at all. Raises ``InputFileError``, ``UsageError`` for content that the version or
    the form cannot hold and for invalid names, ``ToolNotFoundError`` without the package that writes BSON,
    ``ConflictError`` if ``output`` is another kind of file, and ``StorageError``.
    """
    check_output(output, path)
    result = repaired(*open_dated_archive(path)) if repair else None
    library = open_archive(path) if result is None else result.library
    new_names = _new_names(library, names, path)
    try:
        library = rename_modules(library, new_names)
    except UsageError as error:
        raise error.within(path) from None
    write_archive(library, output, version, params)
    return Conversion(output.stat().st_size, result, moved_fields(library, version))


def _new_names(library: Library, names: Sequence[str], path: Path) -> dict[str, str]:
    known = [module.name for module in library.modules]
    new: dict[str, str] = {}
    for text in names:
        old, equals, name = text.rpartition("=")
        if not equals and len(known) > 1:
            reason = f"the archive has several modules ({listed(known)})"
            hint = f"name the module to rename: --module-name OLD={text}"
            raise UsageError("module-not-chosen", place=path, reason=reason, hint=hint)
        new[old if equals else known[0]] = name
    return new
