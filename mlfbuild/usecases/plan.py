"""List what a build will do: every file that it reads and writes, without writing any.

A path with ``/`` at its end is a folder of kernel headers, whose names are known after the model was compiled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlfbuild.core import holds, package_files, package_fingerprint
from mlfbuild.jobs import (
    CompileJob,
    DevicePart,
    FirmwareJob,
    Outline,
    Progress,
    TargetJob,
    budgets_text,
    firmware_jobs,
    is_current,
    key_file,
    make_archives,
    original_files,
    original_folders,
    outline_of,
    read_files,
    stray_files,
    target_dependencies,
    target_jobs,
    tree_is_whole,
    trees_locked,
    vectors_of,
    watched_inputs,
    with_modules,
    write_target_dependencies,
)
from mlfbuild.jobs.tree import PLACEMENT_FOLDER, RECORD, dependency_files, target_files
from mlfbuild.library import Content, Library, ResolvedLibrary, chunks
from mlfbuild.project import Project
from mlfbuild.requirements import lock_path
from mlfbuild.targets import RUNTIME, cpu_of_toolchain, macro_rules


def plan_build(
    project: Project,
    targets: Sequence[str] = (),
    models: Sequence[str] = (),
    build: Path | None = None,
    *,
    frozen: bool = False,
) -> dict[str, Any]:
    """Return the files that a build of the selected targets and models reads and writes, as JSON values.

    ``build`` is the output folder, as for ``target_jobs``. Nothing is written or compiled, because compilers know the
    names of their output files in advance. The output of an external program is known only from its archive: a model
    whose archive is not up to date is not ``complete`` (see ``complete_archives``). Settings of ``frozen`` models
    include their locked hashes. Objects and other files of CMake and Ninja are inside ``build`` of each firmware.
    Raises as ``Compiler.outline``, and as ``freeze_beforehand`` for ``frozen`` models.
    """
    jobs = target_jobs(project, targets, models, build)
    if frozen:
        from mlfbuild.usecases.lock.frozen import freeze_beforehand  # most plans are not frozen

        jobs = freeze_beforehand(project, jobs)
    vectors = vectors_of(project)
    lock = lock_path(project.path)
    return {
        "project": _text(project.path),
        "lock": _text(lock) if lock.exists() else None,
        "watched": [_text(folder) for folder in project.watched],
        "targets": [_target(job) for job in jobs],
        "models": [_model(model, project, vectors.get(model.model, {})) for job in jobs for model in job.models],
        "firmware": [_firmware(job, project) for job in firmware_jobs(project, jobs, build)],
        "generator": _generator(),
    }


def complete_archives(
    project: Project,
    targets: Sequence[str] = (),
    models: Sequence[str] = (),
    build: Path | None = None,
    *,
    frozen: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Make the files that a plan requires: archives of external programs, and copies of the required libraries.

    Raises as ``make_archives`` and ``write_target_dependencies``, and as ``freeze_beforehand`` if ``frozen``.
    """
    chosen = target_jobs(project, targets, models, build)
    if frozen:
        from mlfbuild.usecases.lock.frozen import freeze_beforehand  # most plans are not frozen

        freeze_beforehand(project, chosen)
    make_archives(chosen, target_jobs(project, build=build), jobs=jobs, progress=progress)
    for target in chosen:
        with trees_locked([target]):
            write_target_dependencies(target)


def plan_text(planned: dict[str, Any]) -> str:
    """Return a plan as text: ``<`` before each file that is read, ``>`` before each file that is written."""
    return "\n".join(_lines(planned))


def plan_lines(planned: dict[str, Any]) -> str:
    """Return a plan as lines of JSON, so that a reader can parse only the part that it needs.

    The first line has the names of targets and models and the generator; one line for each target and each model
    follows.
    """
    names = {f"{kind}s": [entry[kind] for entry in planned[f"{kind}s"]] for kind in ("target", "model")}
    first = {**{key: planned[key] for key in ("project", "lock", "watched", "generator")}, **names}
    return "\n".join(json.dumps(entry) for entry in (first, *planned["targets"], *planned["models"]))


def _target(job: TargetJob) -> dict[str, Any]:
    dependencies, budgets = target_dependencies(job), budgets_text(job)
    applied = None if job.budgets is None else with_modules(job.budgets, job)
    files: dict[str, Content] = {
        **target_files(
            job.in_fragment(), job.board, job.cpu, placed=job.placed, with_dependencies=bool(dependencies),
            budgets=budgets,
        )
    }  # fmt: skip
    needed = dependency_files(dependencies) if dependencies else {}
    copies = [job.dependencies_folder / path for path in needed]
    records = [job.tree / RECORD, *([job.dependencies_folder / RECORD] if needed else [])]
    originals = original_files(job, dependencies)
    placement = {path: bytes(data).decode() for path, data in files.items() if path.startswith(f"{PLACEMENT_FOLDER}/")}
    return {
        "target": job.name,
        "cpu": job.cpu.name,
        "board": job.board.name if job.board else None,
        "toolchain": _text(job.toolchain) if job.toolchain else None,
        "tree": _text(job.tree),
        "compiler": [vars(rule) for rule in macro_rules(job.cpu)],
        "board_files": [_text(RUNTIME / path) for path in files if path.startswith("board/")],
        "placement_files": placement,
        "budgets": applied.to_json() if applied is not None else "",
        "firmware": list(applied.firmware) if applied is not None else [],
        "dependencies": [_dependency(dependency) for dependency in dependencies],
        "watched": [
            _text(path) for path in (*originals, *original_folders(job, dependencies), *copies, *job.part_files)
        ],
        "up_to_date": all(holds(job.tree / path, chunks(data)) for path, data in files.items())
        and all(holds(job.dependencies_folder / path, chunks(data)) for path, data in needed.items()),
        "reads": [_text(path) for path in (*originals, *job.part_files)],
        "writes": [_text(path) for path in (*(job.tree / path for path in files), *copies, *records)],
        "strays": [
            {"model": name, "tree": _text(job.tree / name), "files": [_text(path) for path in paths]}
            for name, paths in stray_files(job).items()
        ],
    }


def _dependency(dependency: ResolvedLibrary) -> dict[str, str]:
    kind = "package" if dependency.package else "source"
    return {"dependency": dependency.name, "version": dependency.version, "kind": kind}


def _model(job: CompileJob, project: Project, vectors: Mapping[str, Path]) -> dict[str, Any]:
    # ``None`` for a program's output before it was made. The model is then listed without modules and is not complete;
    # with ``--complete``, the program runs first.
    known = outline_of(job)
    outline = Outline(job, known or Library(()))
    return {
        "model": job.model,
        "target": job.target,
        "compiler": job.compiler,
        "archive": _text(job.archive),
        "tree": _text(job.tree),
        "modules": [module.name for module in outline.library.modules],
        "fragment": outline.fragment if known else "",
        "settings": job.tree_settings(),
        "vectors": _vectors(vectors),
        "vectors_found": job.model in project.found_vectors,
        "up_to_date": is_current(job) and tree_is_whole(job.tree),
        "complete": known is not None,
        "reads": [_text(path) for path in (project.path, *read_files(job))],
        "devices": [_device(device) for part in outline.modules for device in part.devices],
        "watched": [_text(path) for path in (*watched_inputs(job), *(job.devices.toolchains if job.devices else ()))],
        "changing": [_text(job.tree / path) for path in outline.changing],
        "writes": [
            *(map(_text, (job.quantize.made, job.quantize.record)) if job.quantize else ()),
            _text(job.archive),
            _text(key_file(job)),
            *(f"{_text(job.tree)}/{path}" for path in (*outline.written, RECORD)),
        ],
    }


def _device(part: DevicePart) -> dict[str, Any]:
    """Return the library of a module for another device: how it is compiled, and whether images link it."""
    return {
        "device": part.name,
        "library": f"libmlf_{part.target}.a",
        "compiler": part.tools.compiler,
        "flags": list(part.flags),
        "linked": part.tools.linked,
    }


def _vectors(vectors: Mapping[str, Path]) -> str | dict[str, str] | None:
    """Return the vectors files as the project file names them: one file, one for each module, or none."""
    files = {module: _text(path) for module, path in vectors.items()}
    return files.get("", files) or None


def _firmware(job: FirmwareJob, project: Project) -> dict[str, Any]:
    sources = job.sources if job.cmake is None else (job.cmake / "CMakeLists.txt",)
    held = [job.budget_file.path] if job.budget_file and job.target.toolchain else []
    held += [path for run in job.budgeted_runs for path in run.vectors.values()]
    return {
        "firmware": job.name,
        "target": job.target.name,
        "build": _text(job.build),
        "elf": _text(job.elf),
        "reads": [_text(path) for path in (project.path, *sources, job.target.tree / "mlf.cmake", *held)],
        "writes": [_text(path) for path in _images(job)],
    }


def _images(job: FirmwareJob) -> Iterator[Path]:
    yield job.elf
    if job.target.toolchain is not None and cpu_of_toolchain(job.target.toolchain) is not None:
        # Only the toolchain files of mlfbuild certainly ask the linker for a map; what a user's file does is not known.
        yield job.linker_map
    if job.params_section is not None:
        yield job.params_binary


def _generator() -> dict[str, Any]:
    """Return mlfbuild's own sources, which determine the generated files, and one hash of all of them."""
    return {"fingerprint": package_fingerprint(), "reads": [_text(path) for path in package_files()]}


def _text(path: Path) -> str:
    return path.as_posix()


def _lines(planned: dict[str, Any]) -> Iterator[str]:
    for entry in planned["models"]:
        yield f"model {entry['model']} for {entry['target']}: {_state(entry)}"
        yield from _files(entry)
        if entry["vectors_found"]:
            yield f"  vectors: {entry['vectors']}, found by the name of the model"
        for device in entry["devices"]:
            place = "linked into images" if device["linked"] else "not linked into images"
            yield f"  device {device['device']}: {device['library']}, compiled with {device['compiler']}, {place}"
        if not entry["complete"]:
            yield f"  > {entry['tree']}/...: the files of its archive (unknown until it is built; see --complete)"
    for entry in planned["targets"]:
        device = entry["cpu"] + (f" on {entry['board']}" if entry["board"] else "")
        yield f"target {entry['target']} ({device}): {_state(entry)}"
        yield from _files(entry)
    for entry in planned["firmware"]:
        yield f"firmware {entry['firmware']} for {entry['target']}: CMake and Ninja decide, in {entry['build']}"
        yield from _files(entry)


def _state(entry: dict[str, Any]) -> str:
    return "up to date" if entry["up_to_date"] else "to be made"


def _files(entry: dict[str, Any]) -> Iterator[str]:
    yield from (f"  < {path}" for path in entry["reads"])
    yield from (f"  > {path}" for path in entry["writes"])
