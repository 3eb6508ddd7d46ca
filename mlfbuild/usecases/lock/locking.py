"""``mlfbuild.lock`` of a project: the present facts in the form of the lock file, and how the file is written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild import __version__, requirements
from mlfbuild.core import (
    Diagnostic,
    InputFileError,
    NotFetchedError,
    ProjectFileError,
    ToolNotFoundError,
    file_sha256,
    open_binary,
    sha256,
    write_if_changed,
)
from mlfbuild.jobs import (
    CompileJob,
    Progress,
    TargetJob,
    inputs_hash,
    locked_pins,
    locked_toolchain,
    make_archives,
    program_version,
    quantize_inputs_hash,
    target_jobs,
    with_pins,
)
from mlfbuild.native import SourceFiles
from mlfbuild.project import Project, Provider
from mlfbuild.requirements import GitPin, Lock, LockedModel, LockedProvider, LockedToolchain


@dataclass(frozen=True)
class Locked:
    """The result of locking."""

    path: Path
    changes: tuple[str, ...]
    """A line for each fact that changed."""
    notes: tuple[str, ...]
    """A line for each fact that could not be determined on this machine."""
    written: bool


def lock_project(
    project: Project,
    targets: Sequence[str] = (),
    models: Sequence[str] = (),
    *,
    offline: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Locked:
    """Make the archives of the selected targets and models, by default all, and lock their inputs.

    Entries of other targets and models stay, and so does a toolchain that is not installed here. Providers are fetched:
    repositories at the present commits of their versions or, if targets or models are selected, only those that are not
    locked yet. With ``offline``, the network is not used. The file is written whole or not at all, and only if it
    changes.

    Raises the errors of fetching and compiling, ``ProjectFileError`` for a repository that is not locked if
    ``offline``, and ``ConflictError`` or ``InputFileError``, before anything is made, as ``check_replaceable``.
    """
    path = requirements.lock_path(project.path)
    # Before anything is fetched or compiled, which may take minutes.
    requirements.check_replaceable(path)
    notes: list[str] = []
    old = None
    try:
        old = requirements.read_lock(path)
    except InputFileError as error:
        notes.append(f"{': '.join(filter(None, (error.place, error.reason)))}; its content is replaced")
    # If only a part is locked again, the rest must not move to newer commits along the way.
    keep = locked_pins(project, old) if offline or targets or models else {}
    project = _all_locked(with_pins(project, keep)) if offline else _fetched(project, keep, progress)
    old = old or Lock()
    chosen = target_jobs(project, targets, models)
    make_archives(chosen, target_jobs(project), every=True, jobs=jobs, progress=progress)
    toolchains, missing = toolchain_facts(chosen, project.root)
    new = Lock(
        # What was determined now replaces what was locked before.
        models={
            **{name: entry for name, entry in old.models.items() if name in project.models},
            **model_facts(project, chosen),
        },
        archives=_with_kept(archive_facts(chosen), old, project),
        dependencies=_with_kept_contents(dependency_facts(project), old),
        toolchains={
            **{name: entry for name, entry in old.toolchains.items() if name in project.targets},
            **toolchains,
        },
    )
    changes = tuple(found.as_change() for found in requirements.differences(old, new))
    notes += [_not_here(target, reason, old) for target, reason in missing.items()]
    return Locked(path, changes, tuple(notes), write_if_changed(path, new.to_text().encode()))


def _all_locked(project: Project) -> Project:
    """Return ``project``; raises ``ProjectFileError`` for repositories that have no commit."""
    problems = [
        Diagnostic(
            "lock-offline-unlocked",
            place=each.where,
            reason=f"{each.version} of {requirements.without_secret(each.place)} is not locked",
            hint="run `mlfbuild lock` without --offline",
        )
        for each in project.dependencies.values()
        if each.kind == "git" and not each.commit
    ]
    if problems:
        raise ProjectFileError(problems)
    return project


def _fetched(project: Project, keep: Mapping[str, GitPin], progress: Progress | None) -> Project:
    """Return ``project`` with its repositories at the commits to ``keep``, others at the present ones; fetches them."""
    from mlfbuild.usecases.fetch import FETCHED_KINDS, fetch_dependencies  # builds do not need it

    if not any(each.kind in FETCHED_KINDS for each in project.dependencies.values()):
        return project
    found = fetch_dependencies(project, pins=keep, progress=progress)
    return with_pins(project, {each.provider.name: each.pin for each in found if each.pin})


def dependency_facts(project: Project) -> dict[str, LockedProvider]:
    """Return the present facts about the providers of ``project``, whose repositories are pinned.

    Raises as ``provided_library``, except for files that were not fetched.
    """
    return {name: _locked(each) for name, each in project.dependencies.items()}


def _locked(provider: Provider) -> LockedProvider:
    return LockedProvider(
        kind=provider.kind,
        place=requirements.without_secret(provider.place),
        version=provider.version,
        commit=provider.commit,
        tree=provider.tree,
        sha256=provider.sha256,
        content=_content(provider),
        settings=_settings(provider),
    )


def _settings(provider: Provider) -> str:
    """Return the keys that affect the build of a library and are not the defaults."""
    keys = {
        # In the form of the lock file: one line of text, without keys that have their default.
        "sources": " ".join(provider.sources),
        "include-dirs": " ".join(provider.include_dirs),
        "compile-options": " ".join(provider.compile_options),
        "public-headers": "true" if provider.public_headers else "",
        # A package usually is its own target, so only another one is stated.
        "target": provider.target if provider.target != provider.place else "",
    }
    return "; ".join(f"{key}: {value}" for key, value in keys.items() if value)


def _content(provider: Provider) -> str:
    """Return the hash of all files of ``provider``; empty for a package, and for files that were not fetched."""
    if provider.kind == "package" or (provider.kind == "git" and not provider.commit):
        return ""
    from mlfbuild.requirements import content_sha256, provided_library

    try:
        return content_sha256(provided_library(provider))
    # ``offline`` locks what is known; ``_with_kept_contents`` takes the locked hash if there is one.
    except NotFetchedError:
        return ""


def model_facts(project: Project, targets: Sequence[TargetJob]) -> dict[str, LockedModel]:
    """Return the present facts about the models of ``targets``.

    Raises ``InputFileError`` for a model file that cannot be read, and ``ToolNotFoundError`` for an external compiler
    that is not installed.
    """
    # One entry for each model: its file and its compiler are the same on all targets, except those with an NPU.
    every = [job for target in targets for job in target.models]
    jobs = {job.model: job for job in sorted(every, key=lambda job: job.request.npu is not None)}
    return {name: _model(job, project.root) for name, job in jobs.items()}


def _model(job: CompileJob, root: Path) -> LockedModel:
    step, program = job.quantize, job.request.program
    source = job.request.source if step is None else step.source
    version = __version__ if program is None else program_version(job)
    if job.request.npu is not None:
        version += f", vela {program_version(job)}"
    decided = [inputs_hash(program)] if program is not None and program.inputs else []
    decided += [] if step is None else [quantize_inputs_hash(step)]
    return LockedModel(
        # Relative and with slashes: the lock file is the same on all machines and in all folders.
        source=Path(os.path.relpath(source, root)).as_posix(),
        sha256=_sha256(source, "model"),
        compiler=f"{job.compiler} {version}".strip(),
        inputs=sha256([each.encode() for each in decided]) if len(decided) > 1 else "".join(decided),
        weights={name: _sha256(path, "weights") for name, path in SourceFiles(source).weights.items()},
    )


def archive_facts(targets: Sequence[TargetJob]) -> dict[str, dict[str, str]]:
    """Return the hashes of the archives of ``targets``, which must exist; raises ``InputFileError``.

    By target and model: the SHA-256 of each archive, which differs by target because the code does.
    """
    return {target.name: {job.model: _sha256(job.archive, "archive") for job in target.models} for target in targets}


def _sha256(path: Path, what: str) -> str:
    with open_binary(path, what) as file:
        return file_sha256(file)


def toolchain_facts(targets: Sequence[TargetJob], root: Path) -> tuple[dict[str, LockedToolchain], dict[str, str]]:
    """Return the installed toolchains of ``targets``, and why others cannot be locked here, both by target."""
    found, missing = {}, {}
    for target in targets:
        toolchain = _toolchain(target, root)
        if isinstance(toolchain, LockedToolchain):
            found[target.name] = toolchain
        else:
            missing[target.name] = toolchain
    return found, missing


def _toolchain(target: TargetJob, root: Path) -> LockedToolchain | str:
    """Return the toolchain of ``target``, or why it cannot be locked here."""
    try:
        return locked_toolchain(target, root)
    except ToolNotFoundError as error:
        return f"{error.place}: {error.reason}" if error.place else error.reason.partition("; ")[0]


def _not_here(target: str, reason: str, old: Lock) -> str:
    state = "stays as it was locked" if target in old.toolchains else "is not locked, so that frozen builds of it fail"
    return f"toolchain of {target}: {state}: {reason}; run `mlfbuild lock` on a machine that has it"


def _with_kept_contents(now: Mapping[str, LockedProvider], old: Lock) -> dict[str, LockedProvider]:
    """Return ``now`` with the locked hashes of files that were not fetched, if nothing else changed."""
    before = old.dependencies
    return {
        name: before[name]
        # Only then: a new version with the hash of the old files would be a false lock.
        if name in before and not entry.content and replace(before[name], content="") == entry
        else entry
        for name, entry in now.items()
    }


def _with_kept(made: Mapping[str, Mapping[str, str]], old: Lock, project: Project) -> dict[str, dict[str, str]]:
    """Return the hashes in ``made``, and those in ``old`` of models that the project still has."""
    # Not what ``old`` lists: a model that left the project, or a target, also leaves the lock file.
    wanted = {name: {model.name for model in project.models_on(name)} for name in project.targets}
    return {
        target: {
            **{model: digest for model, digest in old.archives.get(target, {}).items() if model in models},
            **made.get(target, {}),
        }
        for target, models in wanted.items()
    }
