"""Write each module of an archive as an archive of its own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.archive import open_archive, tar, write_archive
from mlfbuild.archive.describe import is_written_archive
from mlfbuild.archive.split import split
from mlfbuild.core import ConflictError, InputFileError, make_folder, open_binary, storage_error
from mlfbuild.jobs import check_output, check_replaced, chosen_modules
from mlfbuild.library import Library


@dataclass(frozen=True)
class SplitModule:
    """An archive that was written: its module, its path, and its size in bytes."""

    module: str
    archive: Path
    size: int


def split_archive(path: Path, output: Path, names: Collection[str] = ()) -> list[SplitModule]:
    """Write the modules of the archive ``path``, limited to ``names`` if there are any, each to an archive.

    One name is written to the file ``output``; otherwise ``output`` is a folder, which is created, and gets
    ``<module>.tar``. All archives are written or none::

        split_archive(Path("all.tar"), Path("parts"))            # parts/kws.tar, parts/vww.tar
        split_archive(Path("all.tar"), Path("kws.tar"), ["kws"])  # kws.tar

    Raises ``InputFileError``, ``UsageError`` for unknown names, ``CheckFailedError`` if the code cannot be divided,
    ``ConflictError`` if a file is in the way that mlfbuild did not write, and ``StorageError``.
    """
    library = open_archive(path)
    # Checked before the output, so that an unknown name is reported and not a conflict.
    chosen = [module.name for module in chosen_modules(library, names, path).modules]
    if len(names) == 1:
        check_output(output, path)
        write_archive(split(library, str(path))[chosen[0]], output)
        return [SplitModule(chosen[0], output, output.stat().st_size)]
    # All paths are checked before any archive is written.
    places = _places(path, output, chosen)
    libraries = split(library, str(path))
    _write_all({places[name]: libraries[name] for name in chosen}, output)
    return [SplitModule(name, place, place.stat().st_size) for name, place in places.items()]


def _places(path: Path, folder: Path, names: Collection[str]) -> dict[str, Path]:
    """Return the path of each module's archive in ``folder``, after checks that all can be written."""
    if folder.exists() and not folder.is_dir():
        raise ConflictError(
            "output-not-a-folder",
            place=folder,
            reason="exists and is not a folder",
            hint="name a folder with -o, or one module with --model",
        )
    places = {name: folder / f"{name}.tar" for name in names}
    for place in places.values():
        check_replaced(place, (path,), "folder", "tar that mlfbuild wrote", _is_own)
    return places


def _is_own(path: Path) -> bool:
    """Return whether mlfbuild wrote the archive ``path``."""
    try:
        return is_written_archive(tar.members(open_binary(path, "archive"), str(path)))
    except InputFileError:
        return False


def _write_all(libraries: Mapping[Path, Library], folder: Path) -> None:
    """Write each library to its path in ``folder``: first to a folder beside them, so that an error leaves nothing."""
    is_new = not folder.exists()
    make_folder(folder)
    try:
        # Inside the folder, because a file is renamed atomically only within a file system.
        with tempfile.TemporaryDirectory(prefix=".split-", dir=folder) as beside:
            for path, library in libraries.items():
                write_archive(library, Path(beside, path.name))
            for path in libraries:
                Path(beside, path.name).replace(path)
    except BaseException as error:
        # The folder stays if something else was put into it meanwhile: ``rmdir`` removes empty folders only.
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise storage_error(folder, error) from None
        raise
