"""Split an archive, from its code down to the files of no module."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.archive.merge.context import with_strong_context
from mlfbuild.archive.merge.kernels import with_usual_kernels
from mlfbuild.archive.merge.parts import MergedModule
from mlfbuild.archive.split.registries import with_own_registries
from mlfbuild.archive.split.shared_files import files_by_module
from mlfbuild.library import Library


def split(library: Library, archive: str) -> dict[str, Library]:
    """Return a library for each module of ``library``, by the module's name; ``archive`` is its name in errors.

    A library of one module is returned as it is. Raises ``CheckFailedError`` if modules share a table of functions in a
    form that cannot be divided, and ``InputFileError`` if an object file is damaged.
    """
    if len(library.modules) < 2:
        return {module.name: library for module in library.modules}
    parts = with_own_registries([MergedModule(archive, module) for module in library.modules])
    parts = [with_usual_kernels(with_strong_context(part)) for part in parts]
    others = files_by_module(library)
    return {
        part.module.name: replace(library, modules=(part.module,), other_files=others[part.module.name])
        for part in parts
    }
