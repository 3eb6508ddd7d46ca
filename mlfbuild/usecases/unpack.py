"""Unpack an archive into a folder that a build includes, without a project."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlfbuild.build import placement_of, unpack_archive
from mlfbuild.build.tree import UnpackResult
from mlfbuild.project import DEFAULT_LEVEL


def unpack_file(
    archive: Path, folder: Path, *, model: str = "", places: Sequence[str] = (), optimize: str = DEFAULT_LEVEL
) -> UnpackResult:
    """Unpack ``archive`` into ``folder``; ``model`` adds the CMake target ``mlf::<model>``.

    ``places`` are ``CLASS=SECTION`` words, ``optimize`` is the optimisation level of its code. Raises as
    ``build.unpack_archive``.
    """
    return unpack_archive(archive, folder, model=model or None, placement=placement_of(places), optimize=optimize)
