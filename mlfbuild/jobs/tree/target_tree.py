"""Write the folder of a target: the trees of its models, fragments that include all of them, and the board's files.

::

    mlf.cmake        includes every model's fragment; mlf::models is all of them, mlf::board the board
    mlf.mk           the same for GNU Make
    SConscript       the same for SCons, and for RT-Thread
    .gitattributes   keeps Git from changing line ends if the folder is committed
    board/           startup code and linker script, if the target has a board
    placement/       linker script of sections in memory regions, if the target has any
    dependencies/    libraries that the models require, with its own RECORD.json
    budgets.json     budgets of the models and images, if there are any, and scripts that check links
    ...              files that make the folder a package of another build system, if requested
    <model>/         the model's unpacked tree, with its own RECORD.json
    RECORD.json      the other files

The library of each archive is unpacked to a tree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild import archive as archives
from mlfbuild.archive import convert
from mlfbuild.core import InputFileError, UsageError, holds, read_bytes
from mlfbuild.jobs.budgets import BUDGETS_FILE
from mlfbuild.jobs.tree.adapters import (
    adapter_files,
    adapter_folders,
    adapter_paths,
    check_model_names,
    models_of_package,
)
from mlfbuild.jobs.tree.blobs import blob_files, device_blob_files
from mlfbuild.jobs.tree.build_text import FRAGMENT, rendered
from mlfbuild.jobs.tree.devices import Devices, device_data
from mlfbuild.jobs.tree.fragments import MAKE_FRAGMENT, SCONS_FRAGMENT, folder_fragments, tree_fragments
from mlfbuild.jobs.tree.library_folders import DEPENDENCIES_FOLDER, dependency_fragments, write_dependencies
from mlfbuild.jobs.tree.parts import parts_of
from mlfbuild.jobs.tree.placement import PLACEMENT_FOLDER, PlacedSection, placement_files
from mlfbuild.jobs.tree.record import RECORD, Record, is_folder, read_record
from mlfbuild.jobs.tree.tree import UnpackResult, check_tree, remove_tree, write_tree
from mlfbuild.jobs.tree.verification import verification_files
from mlfbuild.library import Content, Library, Module, ResolvedLibrary, bundles
from mlfbuild.library.keys import Placement
from mlfbuild.library.metadata import CURRENT
from mlfbuild.project import DEFAULT_LEVEL
from mlfbuild.targets import RUNTIME, Board, Cpu


@dataclass(frozen=True)
class TreeSettings:
    """The parts of a library's tree that are not files of its archive."""

    model: str | None = None
    """The project's name for the library: if no module has this name, the fragment also defines ``mlf::<model>``."""
    placement: Placement | None = None
    """Linker sections of generated data: graphs and parameters as bytes of the image, and workspaces."""
    verified_on: str | None = None
    """The board whose test firmware ``mlf.cmake`` and ``mlf.mk`` also build; the tree has its sources."""
    optimize: str = DEFAULT_LEVEL
    """The optimisation level of the code, as the key of the project file."""
    devices: Devices | None = None
    """The target's other devices; ``None`` leaves their compilers to the build."""


def unpack(
    library: Library, directory: Path, *, archive_id: str, settings: TreeSettings = TreeSettings()
) -> UnpackResult:
    """Write ``library`` to the tree ``directory``; files that do not change are not written.

    The record contains ``archive_id``, the archive's SHA-256.

    Raises ``InputFileError`` for names that build files cannot contain, ``UsageError`` for code of a device that is not
    declared, ``UnsupportedModelError`` if a module cannot be verified, ``ConflictError`` (before anything is written)
    and ``StorageError``; see ``write_tree``.
    """
    files = tree_files(library, archive_id=archive_id, settings=settings)
    return write_tree(directory, files, Record.of(files, archive=archive_id))


def _identified(module: Module, archive_id: str) -> Module:
    return module if module.source_sha256 else replace(module, source_sha256=archive_id)


def tree_files(
    library: Library, *, archive_id: str = "", settings: TreeSettings = TreeSettings()
) -> dict[str, Content]:
    """Return the files of the unpacked tree of ``library``, without the record: relative path -> content.

    Trees always have the layout of the current version of the format. ``archive_id``, the archive's SHA-256, is the id
    of modules that do not record their source.
    """
    # Fragments and reports know one layout, whatever version the archive has.
    library = convert(library, CURRENT)
    files = archives.archive_files(library)
    library = replace(library, modules=tuple(_identified(module, archive_id) for module in library.modules))
    parts = parts_of(library, settings.model, settings.placement, settings.optimize, settings.devices)
    added: dict[str, Content] = {**tree_fragments(parts, settings.verified_on)}
    for part in parts.modules:
        added |= part.generated
    for module in library.modules:
        if module.graph_json is not None:
            # The executor reads the graph and the parameters from the image: there is no file system on the device.
            added |= blob_files(module, settings.placement.params if settings.placement else None)
        for device, data in device_data(module, settings.devices).items():
            added |= device_blob_files(module.name, device, data)
    # Fragments of bundled libraries are part of the tree, because their sources are in the archive.
    added |= {
        f"{DEPENDENCIES_FOLDER}/{path}": text
        for source in bundles(library, "archive").values()
        for path, text in dependency_fragments(source).items()
    }
    if settings.verified_on is not None:
        added |= verification_files(library.modules, settings.verified_on)
    for path in (*added, RECORD):
        if path in files:
            raise InputFileError(
                "reserved-file-name",
                place=path,
                reason="the archive contains a file of this name, which unpacking generates",
                hint="rename it in the archive",
            )
    return {**files, **added}


SCONS_CHECK = "mlf_budgets.py"
CMAKE_CHECK = "mlf_budgets.cmake"
_IN_CMAKE = {"zephyr", "esp-idf"}
"""The systems whose builds run a CMake script after a link."""


def link_check_files(systems: Collection[str]) -> dict[str, str]:
    """Return the files for a folder that is a package of ``systems``: path -> text."""
    return {
        SCONS_CHECK: rendered("mlf_budgets.py.txt"),
        **({CMAKE_CHECK: rendered(CMAKE_CHECK)} if _IN_CMAKE & {*systems} else {}),
    }


_BOARD_FILES = RUNTIME / "board"
_ATTRIBUTES = ".gitattributes"
_SHARED_LINKER_SCRIPT = "mlf_board.ld"
_RESERVED = {
    "board": "the folder of the board has this name",
    "models": "mlf::models is the target of all models",
    PLACEMENT_FOLDER: "the folder of the linker script has this name",
    DEPENDENCIES_FOLDER: "the folder of required libraries has this name",
}


def write_target_tree(
    directory: Path,
    models: Sequence[str],
    board: Board | None,
    cpu: Cpu,
    systems: Sequence[str] = (),
    placed: Sequence[PlacedSection] = (),
    dependencies: Sequence[ResolvedLibrary] = (),
    version: str = "",
    *,
    budgets: str = "",
) -> UnpackResult:
    """Write the fragments that include the trees of ``models``, and the files of ``board``, into ``directory``.

    ``unpack`` writes the trees themselves to ``<directory>/<model>``. Trees of models that are no longer in ``models``
    are removed, except for files that mlfbuild did not write. The folder becomes a package of exactly the ``systems``
    (names of ``ADAPTERS``). ``placed`` has the sections in memory regions, ``dependencies`` all libraries that the
    models require, ``version`` is that of the packages, and ``budgets`` the text of ``budgets.json``.

    Raises ``UsageError`` for a model name that is reserved in the folder, ``UnsupportedModelError`` and
    ``InputFileError`` if a model's tree cannot be part of a package, ``ConflictError`` and ``StorageError`` as
    ``write_tree``.
    """
    _check_names(models, systems)
    old = read_record(directory)
    files = target_files(models, board, cpu, systems, placed, with_dependencies=bool(dependencies), budgets=budgets)
    files = _wanted(directory, files, old)
    if systems:
        from mlfbuild.jobs.tree.adapters import NO_VERSION, Package

        trees = models_of_package(directory, models, systems)
        package = Package(cpu.name, trees, dependencies, version or NO_VERSION, budgeted=bool(budgets))
        files |= adapter_files(systems, package)
    # Before the fragments, which include those of the libraries: a build that was stopped between both must find what
    # its fragments name.
    needed = write_dependencies(directory / DEPENDENCIES_FOLDER, dependencies)
    gone = sorted(set(old.models) - set(models)) if old else []
    record = Record.of(files, models=tuple(models))
    if gone:  # recorded until their trees are removed, so that the next run completes an interrupted one
        first = write_tree(directory, files, replace(record, models=(*models, *gone)))
    removed = [f"{model}/{path}" for model in gone for path in _remove_model(directory / model)]
    result = write_tree(directory, files, record)
    if gone:
        result = replace(first, removed=(*first.removed, *result.removed, *removed))
    return _joined(result, needed)


def _joined(result: UnpackResult, needed: UnpackResult) -> UnpackResult:
    """Return ``result`` of a target's folder merged with that of its folder ``dependencies``."""

    def both(kind: str) -> tuple[str, ...]:
        return (*getattr(result, kind), *(f"{DEPENDENCIES_FOLDER}/{path}" for path in getattr(needed, kind)))

    recorded = result.recorded or needed.recorded
    return UnpackResult(both("written"), both("unchanged"), both("removed"), both("edited"), recorded)


def target_files(
    models: Sequence[str],
    board: Board | None,
    cpu: Cpu,
    systems: Sequence[str] = (),
    placed: Sequence[PlacedSection] = (),
    *,
    with_dependencies: bool = False,
    budgets: str = "",
) -> dict[str, bytes]:
    """Return the files of a target's folder: relative path -> content.

    The models' trees, required libraries, the record, and the files of packages are not included.
    """
    budgeted = bool(budgets)
    checks = {BUDGETS_FILE: budgets, **link_check_files(systems)} if budgeted else {}
    return {
        **folder_fragments(
            models,
            board.name if board else None,
            cpu.name,
            placed=bool(placed),
            budgeted=budgeted,
            switched="rt-thread" in systems,
        ),
        _ATTRIBUTES: _attributes(models, board, systems, placed, with_dependencies, list(checks)).encode(),
        **{path: text.encode() for path, text in checks.items()},
        **(_board_files(board) if board else {}),
        **placement_files(placed, on_board=board is not None),
    }


def _attributes(
    models: Sequence[str],
    board: Board | None,
    systems: Sequence[str],
    placed: Sequence[PlacedSection],
    with_dependencies: bool,
    checks: Sequence[str],
) -> str:
    files = {RECORD, _ATTRIBUTES, FRAGMENT, MAKE_FRAGMENT, SCONS_FRAGMENT, *checks}
    folders = [*models, *(["board"] if board else []), *([PLACEMENT_FOLDER] if placed else [])]
    folders += [DEPENDENCIES_FOLDER] if with_dependencies else []
    folders += adapter_folders(systems)
    known = adapter_paths(systems, budgeted=bool(checks))
    paths = [
        *files,
        *(path for path in known if path.split("/")[0] not in folders),
        *(f"{name}/**" for name in folders),
    ]
    head = "# Generated by mlfbuild. RECORD.json has the hash of each file: they are kept byte for byte.\n"
    return head + "".join(f"/{path} -text\n" for path in sorted(paths))


def _wanted(directory: Path, files: dict[str, bytes], old: Record | None) -> dict[str, bytes]:
    """Return ``files`` without ``.gitattributes`` if the user has written one, which is kept."""
    path = directory / _ATTRIBUTES
    ours = (old is not None and _ATTRIBUTES in old.files) or not path.exists() or holds(path, files[_ATTRIBUTES])
    return files if ours else {name: content for name, content in files.items() if name != _ATTRIBUTES}


def check_target_tree(
    directory: Path, models: Sequence[str], systems: Sequence[str], files: dict[str, bytes], *, budgeted: bool = False
) -> None:
    """Raise the errors of ``write_target_tree`` about names and conflicting files, before models are unpacked.

    ``files`` are the ``target_files``.
    """
    _check_names(models, systems)
    # With names only: the content of package files depends on trees that do not exist yet.
    files = _wanted(directory, files, read_record(directory))
    check_tree(directory, {**files, **dict.fromkeys(adapter_paths(systems, budgeted=budgeted))})


def _check_names(models: Sequence[str], systems: Sequence[str]) -> None:
    for model in models:
        if model in _RESERVED:
            reason = f"cannot have this name: {_RESERVED[model]}"
            raise UsageError("reserved-model-name", place=f"model {model!r}", reason=reason, hint="choose another name")
    check_model_names(systems, models)


def _remove_model(tree: Path) -> tuple[str, ...]:
    return remove_tree(tree) if is_folder(tree) else ()


def _board_files(board: Board) -> dict[str, bytes]:
    """Return the board support for ``board``: everything except the linker scripts of other boards."""
    scripts = {_SHARED_LINKER_SCRIPT, f"{board.name}.ld"}
    paths = [path for path in sorted(_BOARD_FILES.iterdir()) if path.suffix != ".ld" or path.name in scripts]
    return {f"board/{path.name}": read_bytes(path, "file of the board support") for path in paths if path.is_file()}
