"""The files of an archive to a library: which version it is, and whose file is which."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlfbuild.archive import version7
from mlfbuild.archive.layout import METADATA
from mlfbuild.errors import InputFileError
from mlfbuild.library import Content, Library
from mlfbuild.library.fields import Fields
from mlfbuild.library.metadata import read_document, unsupported_version

_MAX_METADATA = 16 * 1024 * 1024  # bytes; TVM writes a few hundred an operator
_READERS: Mapping[int, Callable[[Fields, Mapping[str, Content], str], Library]] = {7: version7.read_library}


def read_files(files: Mapping[str, Content], where: str) -> Library:
    """Return the library whose archive holds ``files``: relative path without ``./`` -> content.

    ``where`` names the archive in messages. Raises ``InputFileError``, one line that names the member and the reason,
    where they are no Model Library Format of a supported version.
    """
    if METADATA not in files:
        raise InputFileError(f"{where}: holds no {METADATA}, so it is not a Model Library Format archive")
    if len(files[METADATA]) > _MAX_METADATA:
        raise InputFileError(f"{where}: {METADATA}: is larger than {_MAX_METADATA >> 20} MiB, refused")
    document = read_document(bytes(files[METADATA]), f"{where}: {METADATA}")
    reader = _READERS.get(document.integer("version", minimum=1))
    if reader is None:
        raise unsupported_version(document)
    return reader(document, files, where)
