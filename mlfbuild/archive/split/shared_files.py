"""Find the modules that need each file of an archive that belongs to no module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from mlfbuild.library import ArchiveFile, Library, archive_folder, bundle_name, description_path

_RUNTIME, _TEMPLATES = PurePosixPath("runtime"), PurePosixPath("templates")
_NAMED = frozenset({"parameters", "src", "executor-config", "runtime-config"})
"""Folders of files that are called like their module, such as a second form of its parameters."""


def files_by_module(library: Library) -> dict[str, tuple[ArchiveFile, ...]]:
    """Return the files of no module that each module of ``library`` needs, by its name.

    A folder of an external dependency belongs to the modules that name the dependency, ``templates/`` to those that
    need TVM's runtime, and any other file to all modules.
    """
    users = _users(library)
    names = [module.name for module in library.modules]
    found: dict[str, list[ArchiveFile]] = {name: [] for name in names}
    for file in library.other_files:
        for name in _owners(file.path, users, found):
            found[name].append(file)
    return {name: tuple(files) for name, files in found.items()}


def _users(library: Library) -> Mapping[PurePosixPath, Collection[str]]:
    """Return the modules that use each folder, and each description of a bundle."""
    users: defaultdict[PurePosixPath, dict[str, None]] = defaultdict(dict)
    for module in library.modules:
        if module.runtime:
            users[_RUNTIME][module.name] = None
        for dependency in module.external_dependencies:
            folder, bundle = archive_folder(dependency), bundle_name(dependency)
            if folder is not None:
                users[folder][module.name] = None
            if bundle:
                users[description_path(bundle)][module.name] = None
    if _RUNTIME in users:
        users.setdefault(_TEMPLATES, users[_RUNTIME])
    return users


def _owners(
    path: PurePosixPath, users: Mapping[PurePosixPath, Collection[str]], names: Collection[str]
) -> Collection[str]:
    place = next((place for place in (path, *path.parents) if place in users), None)
    if place is not None:
        return users[place]
    return [path.stem] if path.parts[0] in _NAMED and path.stem in names else names
