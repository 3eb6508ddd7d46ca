"""Check an archive, or the archive that is compiled from a model file, against the rules of Model Library Format."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.archive import archive_files, tar
from mlfbuild.archive.validate import Report, validate
from mlfbuild.core import InputFileError, better_error, open_binary
from mlfbuild.jobs import is_model, kinds_named, open_model


def validate_archive(path: Path) -> Report:
    """Return the findings about the archive ``path``; raises as ``open_model``.

    A ``.tflite`` or ``.onnx`` file is compiled for this machine first, and the archive that this makes is checked
    without being written.
    """
    if is_model(path):
        return validate(archive_files(open_model(path)), str(path))
    try:
        files = tar.members(open_binary(path, "archive"), str(path))
    except InputFileError as error:
        raise kinds_named(better_error(error, path), path) from None
    return validate(files, str(path))
