"""The files of an unpacked tree by kind: generated code, kernels of mlfbuild, mlfbuild's runtime, TVM's runtime.

Only files that a compiler or linker reads are listed; fragments, parameters and texts do not get into an image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.c_analysis import LINKED_SUFFIXES, TEXT_SUFFIXES
from mlfbuild.core import read_bytes, sha256
from mlfbuild.jobs.tree import Record, is_file, reachable, read_record
from mlfbuild.library import FOLDER, included_names, is_kernel_header, reached_headers

_ASSEMBLY_SUFFIXES = frozenset({".s", ".S"})
_SUFFIXES = TEXT_SUFFIXES | LINKED_SUFFIXES | _ASSEMBLY_SUFFIXES
RUNTIME_FOLDER = "executor/runtime/"
"""Folders of mlfbuild's headers for TVM's code."""
_DEPENDENCIES = f"{FOLDER}/"
"""Folder of libraries that an archive includes; builds use those in the folder of the target."""
BUNDLED_FOLDERS = ("runtime/", "templates/")
"""Folders of TVM's runtime, in archives that include it."""


@dataclass(frozen=True)
class TreeContents:
    """Files of an unpacked tree by relative path, each kind sorted."""

    archive: str
    """SHA-256 of the archive that was unpacked."""
    code: Mapping[str, bytes]
    kernels: Mapping[str, Mapping[str, bytes]]
    """Kernel headers that the code includes, by folder and name."""
    runtime: Mapping[str, bytes]
    bundled: Mapping[str, bytes]
    damage: tuple[str, ...]
    """A line for each file that is not as it was unpacked."""


def read_tree(directory: Path) -> TreeContents | None:
    """Return the files of the tree ``directory`` as they are now; ``None`` if there is no tree.

    Raises ``ConflictError`` and ``InputFileError`` as ``read_record`` does.
    """
    record = read_record(directory)
    if record is None:
        return None
    files, damage = _files_of(directory, record, _SUFFIXES)
    if not record.complete:
        damage.insert(0, f"{directory}: the tree is incomplete")
    headers = [path for path in files if is_kernel_header(path.removeprefix("codegen/"))]
    kinds: dict[str, dict[str, bytes]] = {"code": {}, "runtime": {}, "bundled": {}}
    # Kernels are listed by folder; libraries of the target are in a tree of their own.
    for path in files.keys() - {*headers}:
        if not path.startswith(_DEPENDENCIES):
            kinds[_kind(path)][path] = files[path]
    kernels: dict[str, dict[str, bytes]] = {}
    for path in headers:
        folder, name = path.split("/")[-2:]
        kernels.setdefault(folder, {})[name] = files[path]
    ordered = {kind: {path: held[path] for path in sorted(held)} for kind, held in kinds.items()}
    included = {folder: reached(ordered["code"], folder, held) for folder, held in sorted(kernels.items())}
    return TreeContents(
        archive=record.archive,
        kernels={folder: held for folder, held in included.items() if held},
        damage=tuple(damage),
        **ordered,
    )


def read_dependencies(directory: Path) -> tuple[dict[str, dict[str, bytes]], tuple[str, ...]]:
    """Return the files of each library in ``directory``, and a line for each damage.

    ``directory`` is the folder ``dependencies`` of a target. Files are those that models require and licences, by path
    in the library's folder. Raises as ``read_tree``.
    """
    record = read_record(directory)
    if record is None:
        return {}, ()
    files, damage = _files_of(directory, record)
    libraries: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        name, inside, rest = path.partition("/")
        if inside:
            libraries.setdefault(name, {})[rest] = data
    return libraries, tuple(damage)


def _files_of(
    directory: Path, record: Record, suffixes: frozenset[str] | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """Return the recorded files with one of ``suffixes`` as they are now, by path, and a line for each change."""
    files: dict[str, bytes] = {}
    damage: list[str] = []
    # Sorted, so that messages and documents have the same order on every file system.
    for path in sorted(path for path in record.files if suffixes is None or Path(path).suffix in suffixes):
        # A link could lead to any file of this machine, whose hash would then be in a document for others.
        if not (reachable(directory, path) and is_file(directory / path)):
            damage.append(f"{directory / path}: is missing")
            continue
        files[path] = read_bytes(directory / path, "file of the tree")
        if sha256(files[path]) != record.files[path].sha256:
            damage.append(f"{directory / path}: was edited")
    return files, damage


def _kind(path: str) -> str:
    if path.startswith(RUNTIME_FOLDER):
        return "runtime"
    return "bundled" if path.startswith(BUNDLED_FOLDERS) else "code"


def reached(code: Mapping[str, bytes], folder: str, headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the kernel ``headers`` in ``folder`` that ``code`` includes, directly or indirectly, by name.

    Older archives have all kernel headers, and the bill lists only those that get into an image.
    """
    names = (name for text in code.values() for name in included_names(text))
    # Names are compared below the folder, because kernels include each other by their plain names.
    return reached_headers([name[len(folder) + 1 :] for name in names if name.startswith(f"{folder}/")], headers)
