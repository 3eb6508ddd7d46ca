"""Load a project file, and check it against the rest of the world: files, toolchains, compilers and archives.

``mlfbuild.project`` checks what the file itself says. These checks need other rooms. All of them run, so that an error
lists every mistake at once; each yields the keys of a mistake and its reason.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mlfbuild import archive
from mlfbuild.compilers import EXTERNAL_COMPILERS, HOOK, compiler_called, why_no_hook
from mlfbuild.core import LFS_HINT, Mistake, MlfError, ProjectFileError, is_lfs_pointer, recognised
from mlfbuild.datasets import DataKeys, data_files, data_problems
from mlfbuild.jobs.inputs import input_problems
from mlfbuild.project import Changes, KeyPath, Project
from mlfbuild.quantization import quantize_problems
from mlfbuild.targets import cpu_of_toolchain


def load(path: Path, *, vectors: bool = True, changes: Changes | None = None) -> Project:
    """Read and check the project file ``path``; raises ``ProjectFileError`` with every mistake at once.

    Without ``vectors``, the files of vectors may be missing. ``changes`` are values that replace those of the file, and
    those of goals; with an empty mapping, it is read as it is.
    """
    project = read_project(path, vectors=vectors, changes=changes)
    # All at once, because a user with ten mistakes should not need ten runs.
    problems = project.problems(project_mistakes(project, vectors=vectors))
    if problems:
        raise ProjectFileError(problems)
    return project


def read_project(path: Path, *, vectors: bool = True, changes: Changes | None = None) -> Project:
    """Read the project file ``path``; raises ``ProjectFileError`` with its mistakes and the missing files it names.

    If the file itself has no mistakes, the files that it names are not checked: ``project_mistakes`` does that.
    ``changes`` are those of ``load``. Raises as ``goal_changes``.
    """
    from mlfbuild.project import load_project  # reads keys with pydantic: `mlfbuild compile` has no project

    files = partial(_missing_files, vectors=vectors)

    def beside(entries: Project) -> Iterator[tuple[KeyPath, Mistake]]:
        for find in (files, _missing_data, _missing_toolchains):
            yield from find(entries)

    project = load_project(path, beside, changes)
    if changes is None and any(model.goal for model in project.models.values()):
        from mlfbuild.jobs.explored import goal_changes  # few projects have goals

        return load_project(path, beside, goal_changes(project))
    return project


def project_mistakes(project: Project, *, vectors: bool = True) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield what is wrong with the files and options that ``project`` names; ``vectors`` as for ``load``.

    Each is the way to a key, such as ``("models", "kws", "source")``, and the mistake in its value. Nothing is raised
    for files that are missing or cannot be read.
    """
    files = partial(_missing_files, vectors=vectors)
    own = (
        files, _missing_data, _missing_toolchains, _missing_folders, input_problems, _toolchain_problems,
        _data_problems, _quantize_problems, _option_problems, _memory_problems,
    )  # fmt: skip
    # Checks that open archives are last: they are slow, and the others explain why an archive cannot be opened.
    for find in (*own, _hook_problems, _sharing_problems):
        yield from find(project)


def _memory_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    of_targets = (bool(each.memories) for each in project.targets.values())
    if any((*of_targets, *(bool(each.memories or each.weights) for each in project.models.values()))):
        from mlfbuild.project import share_problems, weight_problems  # few projects divide memories

        yield from share_problems(project)
        yield from weight_problems(project)


def _missing_files(project: Project, *, vectors: bool) -> Iterator[tuple[KeyPath, Mistake]]:
    for model in project.models.values():
        mistake = _why_unusable(model.source, is_model=model.compiler not in EXTERNAL_COMPILERS)
        if mistake is not None:
            yield ("models", model.name, "source"), mistake
        for module, path in model.vectors.items() if vectors else ():
            mistake = _why_unusable(path, is_model=False)
            if mistake is None:
                continue
            if mistake.code == "no-such-file" and model.compiler == "native":
                hint = f"`mlfbuild vectors {model.name}` computes it, or correct the path"
                mistake = Mistake(mistake.code, reason=mistake.reason, hint=hint)
            yield ("models", model.name, "vectors", *([module] if module else [])), mistake
    yield from _missing_sources(project)


def _missing_sources(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for firmware in project.firmware.values():
        for index, path in enumerate(firmware.sources):
            if not path.is_file():
                yield ("firmware", firmware.name, "sources", index), _why_no_file(path)
        for index, path in enumerate(firmware.include_dirs):
            if not path.is_dir():
                yield (
                    ("firmware", firmware.name, "include-dirs", index),
                    Mistake("no-such-folder", reason=f"{path}: no such folder", hint="create it, or correct the path"),
                )
        if firmware.cmake is not None and not (firmware.cmake / "CMakeLists.txt").is_file():
            yield (
                ("firmware", firmware.name, "cmake"),
                Mistake(
                    "no-cmakelists",
                    reason=f"{firmware.cmake}: has no CMakeLists.txt",
                    hint="write one there, or name another folder",
                ),
            )


def _missing_data(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for place, data in _data_of(project):
        for path in data_files(data):
            mistake = _why_unusable(path, is_model=False)
            if mistake is not None:
                yield place, mistake


def _data_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for place, data in _data_of(project):
        for key, mistake in data_problems(data):
            yield (*place, key), mistake


def _data_of(project: Project) -> Iterator[tuple[KeyPath, DataKeys]]:
    for model in project.models.values():
        if model.quantize is not None:
            yield ("models", model.name, "quantize", "calibration"), model.quantize.calibration
        if model.evaluate is not None:
            yield ("models", model.name, "evaluate", "data"), model.evaluate.data


def _missing_toolchains(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    if project.trust is not None and not project.trust.signers.is_file():
        yield ("trust", "signers"), _why_no_file(project.trust.signers)
    for target in project.targets.values():
        devices = ((("devices", name), device.toolchain) for name, device in target.devices.items())
        for path, toolchain in (((), target.toolchain), *devices):
            if toolchain is not None and not toolchain.is_file():
                yield ("targets", target.name, *path, "toolchain"), _why_no_file(toolchain)


def _missing_folders(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the dependencies whose folder does not exist; the fetch step checks those that are fetched."""
    for name, provider in project.dependencies.items():
        folder = provider.folder
        if folder is not None and provider.kind == "path" and not os.path.isdir(folder):  # noqa: PTH112 - never raises
            if os.path.exists(folder):  # noqa: PTH110 - as above
                reason = f"{folder}: is a file, not a folder"
                yield ("dependencies", name, "path"), Mistake("not-a-folder", reason=reason, hint="name a folder")
            else:
                mistake = Mistake("no-such-folder", reason=f"{folder}: no such folder", hint="correct the path")
                yield ("dependencies", name, "path"), mistake


def _toolchain_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for target in project.targets.values():
        # Only toolchain files that mlfbuild wrote show their CPU; flags of others are checked in the build (flags).
        row = cpu_of_toolchain(target.toolchain) if target.toolchain else None
        if row is not None and row[0].name != target.cpu:
            reason = f"{target.toolchain}: is for {row[0].name}, but the target's cpu is {target.cpu}"
            mistake = Mistake("toolchain-of-another-cpu", reason=reason, hint="remove toolchain")
            yield ("targets", target.name, "toolchain"), mistake


def _why_unusable(path: Path, *, is_model: bool) -> Mistake | None:
    """Return why a model or a file of vectors cannot be used, as far as its first bytes show."""
    found = recognised(path) if is_model else None
    if found is not None or not path.is_file():
        return found or _why_no_file(path)
    if is_lfs_pointer(path):
        return Mistake("git-lfs-pointer", reason=f"{path}: is a pointer of Git LFS, not the file itself", hint=LFS_HINT)
    return None


def _why_no_file(path: Path) -> Mistake:
    if path.is_dir():
        return Mistake("not-a-file", reason=f"{path}: is a folder, not a file", hint="name a file")
    hint = "name each file: this key has no patterns" if glob.has_magic(path.name) else "correct the path"
    return Mistake("no-such-file", reason=f"{path}: no such file", hint=hint)


def _quantize_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for model in project.models.values():
        if model.quantize is None:
            continue
        place = ("models", model.name, "quantize")
        for key, mistake in quantize_problems(model.source, model.quantize):
            yield (*place, *([key] if key else [])), mistake
        for key in ("state", "constants", "signature"):
            if getattr(model, key):
                reason = f"the engine quantises the network as it is in the file, and {key} changes it"
                yield place, Mistake("quantize-with-choice", reason=reason, hint=f"remove {key}, or quantize")


def _option_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for model in project.models.values():
        for key, mistake in compiler_called(model.compiler).check_options(model.options):
            yield ("models", model.name, "options", key), mistake


def _hook_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the models whose archives cannot run a hook; the compiler reports archives that cannot be read."""
    for model in project.models.values():
        if model.compiler == "archive" and model.options.get(HOOK) is True:
            try:
                # Only the metadata is read; contents are opened when they are used.
                mistake = why_no_hook(archive.open_archive(model.source, model.trust), str(model.source))
            except MlfError:
                continue
            if mistake is not None:
                yield ("models", model.name, "options", HOOK), mistake


def _sharing_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the archives whose workspace cannot be shared; the compiler reports archives that cannot be read."""
    for index, name in enumerate(project.share_workspace):
        model = project.models[name]
        if model.compiler != "archive":
            continue
        from mlfbuild.executor import why_not_shared  # projects without such archives do not need it

        try:
            modules = archive.open_archive(model.source, model.trust).modules
            mistakes = {module.name: why_not_shared(module, model.placement.shared_workspace) for module in modules}
        except MlfError:
            continue
        for module, mistake in mistakes.items():
            if mistake is not None:
                of = f"module {module} of " if len(modules) > 1 else ""
                reason = f"{of}{model.source}: {mistake.reason}"
                yield ("share-workspace", index), Mistake(mistake.code, reason=reason, hint=mistake.hint)
