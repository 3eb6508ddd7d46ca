"""Unpack an archive into a folder that a build includes, without a project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mlfbuild.core import Trust
from mlfbuild.jobs import placement_of, tree_locked, unpack_archive
from mlfbuild.jobs.tree import TreeSettings, UnpackResult
from mlfbuild.project import DEFAULT_LEVEL


def unpack_file(
    archive: Path,
    folder: Path,
    *,
    model: str = "",
    places: Sequence[str] = (),
    optimize: str = DEFAULT_LEVEL,
    trust: Trust | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> UnpackResult:
    """Unpack ``archive`` into ``folder``; ``model`` adds the CMake target ``mlf::<model>``.

    ``places`` are ``CLASS=SECTION`` words, ``optimize`` is the optimisation level of its code, and ``trust`` must have
    signed it. ``notify`` is called if another process unpacks into the folder, which this one waits for. Raises as
    ``build.unpack_archive``.
    """
    settings = TreeSettings(model or None, placement_of(places), optimize=optimize)
    with tree_locked(folder, notify):
        return unpack_archive(archive, folder, settings, trust)
