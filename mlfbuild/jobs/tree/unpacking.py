"""Unpack the library of an archive to a tree for a firmware build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlfbuild import archive as archives
from mlfbuild.archive import convert
from mlfbuild.core import InputFileError
from mlfbuild.jobs.tree.blobs import blob_files, device_blob_files
from mlfbuild.jobs.tree.devices import Devices, device_data
from mlfbuild.jobs.tree.fragments import tree_fragments
from mlfbuild.jobs.tree.library_folders import DEPENDENCIES_FOLDER, dependency_fragments
from mlfbuild.jobs.tree.parts import parts_of
from mlfbuild.jobs.tree.record import RECORD, Record
from mlfbuild.jobs.tree.tree import UnpackResult, write_tree
from mlfbuild.jobs.tree.verification import verification_files
from mlfbuild.library import Content, Library, Module, bundles
from mlfbuild.library.keys import Placement
from mlfbuild.library.metadata import CURRENT
from mlfbuild.project import DEFAULT_LEVEL


def unpack(
    library: Library,
    directory: Path,
    *,
    archive_id: str,
    model: str | None = None,
    placement: Placement | None = None,
    verified_on: str | None = None,
    optimize: str = DEFAULT_LEVEL,
    devices: Devices | None = None,
) -> UnpackResult:
    """Write ``library`` to the tree ``directory``; files that do not change are not written.

    The record contains ``archive_id``, the archive's SHA-256. ``model`` is the project's name for the library: if no
    module has this name, the fragment also defines ``mlf::<model>``. ``placement`` has the linker sections of generated
    data: graphs and parameters as bytes of the image, and workspaces. ``optimize`` is the optimisation level of its
    code, as the key of the project file. ``devices`` has the target's other devices; ``None`` leaves their compilers to
    the build. With ``verified_on``, the tree also has the sources of test firmware for that board, which its
    ``mlf.cmake`` and ``mlf.mk`` build.

    Raises ``InputFileError`` for names that build files cannot contain, ``UsageError`` for code of a device that is not
    declared, ``UnsupportedModelError`` if a module cannot be verified, ``ConflictError`` (before anything is written)
    and ``StorageError``; see ``write_tree``.
    """
    files = tree_files(
        library,
        model=model,
        placement=placement,
        verified_on=verified_on,
        archive_id=archive_id,
        optimize=optimize,
        devices=devices,
    )
    return write_tree(directory, files, Record.of(files, archive=archive_id))


def _identified(module: Module, archive_id: str) -> Module:
    return module if module.source_sha256 else replace(module, source_sha256=archive_id)


def tree_files(
    library: Library,
    *,
    model: str | None = None,
    placement: Placement | None = None,
    verified_on: str | None = None,
    archive_id: str = "",
    optimize: str = DEFAULT_LEVEL,
    devices: Devices | None = None,
) -> dict[str, Content]:
    """Return the files of the unpacked tree of ``library``, without the record: relative path -> content.

    Trees always have the layout of the current version of the format. ``archive_id``, the archive's SHA-256, is the id
    of modules that do not record their source.
    """
    # Fragments and reports know one layout, whatever version the archive has.
    library = convert(library, CURRENT)
    files = archives.archive_files(library)
    library = replace(library, modules=tuple(_identified(module, archive_id) for module in library.modules))
    parts = parts_of(library, model, placement, optimize, devices)
    added: dict[str, Content] = {**tree_fragments(parts, verified_on)}
    for part in parts.modules:
        added |= part.generated
    for module in library.modules:
        if module.graph_json is not None:
            added |= blob_files(module, placement.params if placement else None)
        for device, data in device_data(module, devices).items():
            added |= device_blob_files(module.name, device, data)
    # Fragments of bundled libraries are part of the tree, because their sources are in the archive.
    added |= {
        f"{DEPENDENCIES_FOLDER}/{path}": text
        for source in bundles(library, "archive").values()
        for path, text in dependency_fragments(source).items()
    }
    if verified_on is not None:
        added |= verification_files(library.modules, verified_on)
    for path in (*added, RECORD):
        if path in files:
            raise InputFileError(
                "reserved-file-name",
                place=path,
                reason="the archive contains a file of this name, which unpacking generates",
                hint="rename it in the archive",
            )
    return {**files, **added}
