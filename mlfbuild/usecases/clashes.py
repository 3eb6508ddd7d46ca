"""Compare the symbols of models that another build system links into one image."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mlfbuild.core import UsageError, read_bytes, write_atomic
from mlfbuild.jobs import check_models


def compare_linked(
    libraries: Sequence[str], *, listing: Path | None = None, image: str = "image", stamp: Path | None = None
) -> list[str]:
    """Raise ``CheckFailedError`` if two models share a global symbol; otherwise write ``stamp`` and return their names.

    Each of ``libraries`` is a static library or an object: ``MODEL=PATH``; or ``PATH`` named ``libmlf_<model>.a`` or
    ``<model>.o``; or ``=PATH`` for code of the firmware itself. ``listing`` is a text file with more of them, one on
    each line. Raises ``UsageError`` if there is none, and ``InputFileError`` for a file that cannot be read.
    """
    # Names of files may be in any encoding; that of the system is used, as for arguments of the command line.
    lines = os.fsdecode(read_bytes(listing, "list of libraries")).splitlines() if listing is not None else []
    compiled = _by_model([*libraries, *lines])
    if not compiled:
        raise UsageError(
            "libraries-missing", reason="no static library is given", hint="write MODEL=LIBRARY, or --list FILE"
        )
    firmware = compiled.pop("", [])
    check_models(compiled, image, firmware)
    if stamp is not None:
        write_atomic(stamp, b"")
    return list(compiled)


def _by_model(words: Iterable[str]) -> dict[str, list[Path]]:
    compiled: dict[str, list[Path]] = {}
    for word in words:
        model, equals, path = word.partition("=")
        # The usual names of libraries: libmlf_kws.a of mlfbuild's builds, or kws.o of an object.
        name = model if equals else Path(word).stem.removeprefix("lib").removeprefix("mlf_")
        compiled.setdefault(name, []).append(Path(path if equals else word))
    return compiled
