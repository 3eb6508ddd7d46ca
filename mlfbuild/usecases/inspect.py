"""Describe the content of an archive or of a model file, or list the models in a firmware image."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from mlfbuild.archive import tar
from mlfbuild.archive.describe import describe, describe_text
from mlfbuild.core import InputFileError, printable, read_bytes
from mlfbuild.jobs import chosen_modules, is_model, open_model
from mlfbuild.library import Identity, identities


def models_in_image(path: Path) -> list[Identity] | None:
    """Return the IDs of the models in the image ``path``, or ``None`` if the file is not an image.

    An image is an ELF file, or the bytes of its flash. Raises ``InputFileError`` if the file cannot be read, and for an
    ELF file without models.
    """
    # Archives and model files have descriptions of their own, even if bytes in them look like an ID.
    if tar.looks_like_archive(path) or is_model(path) or path.is_dir():
        return None
    data = read_bytes(path, "archive or image")
    found = identities(data)
    if not found and data.startswith(b"\x7fELF"):
        raise InputFileError(
            "image-without-models",
            place=path,
            reason="the image contains no model that mlfbuild compiled",
            hint="link a model into it, or name another image",
        )
    return found or None


def inspect_archive(path: Path, modules: Collection[str] = ()) -> dict[str, Any]:
    """Return the content of the archive ``path`` as JSON values, limited to ``modules`` if there are any.

    Raises as ``open_model``, and ``UsageError`` for a module that the archive does not have.
    """
    return describe(chosen_modules(open_model(path), modules, path))


def archive_text(path: Path, modules: Collection[str] = (), *, verbose: bool = False) -> str:
    """Return the content of the archive ``path`` as text, with full lists if ``verbose``; as ``inspect_archive``."""
    text = describe_text(chosen_modules(open_model(path), modules, path), verbose=verbose)
    return f"{printable(str(path))}, compiled for this machine\n{text}" if is_model(path) else text
