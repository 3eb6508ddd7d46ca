"""Write the constants of an image to a file, for the programmer of external flash."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.jobs import ParamsBinary, write_params_binary


def write_params(image: Path, section: str, output: Path) -> ParamsBinary:
    """Write the bytes in ``section`` of the linked ``image`` to ``output``, unless it already has them.

    Raises ``InputFileError`` if the image has no bytes in that section, and ``StorageError``.
    """
    return write_params_binary(image, section, output)
