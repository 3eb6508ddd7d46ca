"""Write several archives as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.archive.merge import merge
from mlfbuild.core import Trust
from mlfbuild.jobs import check_output

_ANYONE: Mapping[Path, Trust] = {}


def merge_archives(paths: Sequence[Path], output: Path, trust: Mapping[Path, Trust] = _ANYONE) -> list[str]:
    """Write the archives ``paths`` as one to ``output``, in version 7; return the names of its modules.

    ``trust`` has those of ``paths`` that must be signed, each with who may have signed it.
    The output is written whole or not at all. Raises as ``open_archive``, ``CheckFailedError`` if modules or
    requirements conflict, ``ConflictError`` if ``output`` is another kind of file, and ``StorageError``.
    """
    # Before anything is read, because archives may be large and the mistake is in the command.
    check_output(output, *paths)
    merged = merge([(str(path), open_archive(path, trust.get(path))) for path in paths])
    write_archive(merged, output)
    return [module.name for module in merged.modules]
