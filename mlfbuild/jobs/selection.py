"""A part of a build: the images that a change affects, and a share of them for one of several CI jobs.

**Affected.** An image is affected by what changed since a commit of Git, in the working folder as it is, if one of its
models is, or one of its own inputs. A model is affected if its file, a file with its weights or an input of its program
changed, or its settings in the project file. The inputs of an image are those that its last link recorded (``links``);
without a record they are its sources, and all files in the folders of its headers and of its ``CMakeLists.txt``. What
is not known counts as affected: an image too many costs time, one too few costs trust. Tools are not compared: a new
compiler affects all images, and no commit shows it.

**Shares.** Images, and models of no image, are units. They are given out by cost, the largest first, each to the share
that has least (the rule of Graham, 1969: never more than 4/3 of the best). All CI jobs must compute the same shares, so
costs are those of a committed file, ``mlfbuild-durations.json``; units that it does not have cost their average.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild.core import (
    InputFileError,
    MlfError,
    ProcessFailedError,
    UsageError,
    find_tool,
    real_place,
    run,
    write_atomic,
)
from mlfbuild.jobs.inputs import read_files
from mlfbuild.jobs.links import link_record
from mlfbuild.jobs.model_builds import archive_record
from mlfbuild.jobs.model_job import CompileJob, FirmwareJob, TargetJob
from mlfbuild.jobs.project_jobs import firmware_jobs, target_jobs
from mlfbuild.project import Project, load_project

DURATIONS = "mlfbuild-durations.json"
"""The file beside the project file with the seconds of each unit, as pytest-split's ``.test_durations``."""


@dataclass(frozen=True)
class Selection:
    """The part of a project that is built."""

    targets: tuple[TargetJob, ...]
    """Targets with something to build; models that are not built are among their ``others``."""
    firmware: tuple[FirmwareJob, ...]
    left_out: tuple[str, ...] = ()
    """Titles of the images and models that are not built."""


def affected(
    project: Project, targets: Sequence[TargetJob], firmware: Sequence[FirmwareJob], revision: str
) -> Selection:
    """Return the part of ``targets`` and ``firmware`` that changes since ``revision`` affect.

    Raises ``UsageError`` if the project is in no Git repository, or if it has no such commit.
    """
    changed = _changed_files(project.root, revision)
    old = _old_settings(project, revision) if real_place(project.path) in changed else None
    models = {
        job.archive
        for job in _models(targets)
        if _settings_changed(old, job.title, job.all_settings()) or _touched(read_files(job), changed)
    }
    images = [job for job in firmware if _image_affected(job, models, changed, old)]
    return _selected(targets, firmware, images, models)


def share(selection: Selection, project: Project, number: int, of: int) -> Selection:
    """Return the part number ``number`` of ``of`` of a selection, counted from 1.

    Raises ``InputFileError`` if the file with the durations cannot be read.
    """
    costs = _durations(project)
    linked = {archive for job in selection.firmware for archive in _archives(job)}
    alone = [job for job in _models(selection.targets) if job.archive not in linked]
    units = [*(job.title for job in selection.firmware), *(job.title for job in alone)]
    known = [costs[title] for title in units if title in costs]
    usual = sum(known) / len(known) if known else 1.0
    loads, own = [0.0] * of, set()
    for title in sorted(units, key=lambda title: (-costs.get(title, usual), title)):
        least = min(range(of), key=loads.__getitem__)
        loads[least] += costs.get(title, usual)
        if least == number - 1:
            own.add(title)
    images = [job for job in selection.firmware if job.title in own]
    archives = {job.archive for job in alone if job.title in own}
    part = _selected(selection.targets, selection.firmware, images, archives)
    return replace(part, left_out=(*selection.left_out, *part.left_out))


def store_durations(project: Project, targets: Sequence[TargetJob], firmware: Sequence[FirmwareJob]) -> Path:
    """Write how long the last builds of the models of ``targets`` and of ``firmware`` took; return the file.

    The cost of an image is its link with the compilations of its models. Raises ``StorageError``.
    """
    seconds = {job.archive: record.seconds for job in _models(targets) if (record := archive_record(job)) is not None}
    costs = {job.title: seconds[job.archive] for job in _models(targets) if job.archive in seconds}
    for job in firmware:
        record = link_record(job)
        if record is not None:
            costs[job.title] = record.seconds + sum(seconds.get(archive, 0.0) for archive in _archives(job))
    path = project.root / DURATIONS
    rounded = {title: round(cost, 1) for title, cost in sorted(costs.items())}
    write_atomic(path, f"{json.dumps(rounded, indent=1)}\n".encode())
    return path


def _models(targets: Sequence[TargetJob]) -> Iterator[CompileJob]:
    yield from (job for target in targets for job in target.models)


def _archives(job: FirmwareJob) -> Iterator[Path]:
    yield from (model.archive for model in (*job.target.models, *job.target.others) if model.model in job.models)


def _selected(
    targets: Sequence[TargetJob], firmware: Sequence[FirmwareJob], images: Sequence[FirmwareJob], archives: set[Path]
) -> Selection:
    """Return the selection of ``images`` with their models, and of the models of ``archives``."""
    wanted = archives | {archive for job in images for archive in _archives(job)}
    parts = []
    for target in targets:
        models = tuple(job for job in target.models if job.archive in wanted)
        others = (*target.others, *(job for job in target.models if job.archive not in wanted))
        parts.append(replace(target, models=models, others=others))
    by_name = {part.name: part for part in parts}
    left_out = [job.title for job in firmware if job not in images]
    left_out += [job.title for job in _models(targets) if job.archive not in wanted]
    return Selection(
        tuple(part for part in parts if part.models),
        tuple(replace(job, target=by_name[job.target.name]) for job in images),
        tuple(left_out),
    )


def _image_affected(job: FirmwareJob, models: set[Path], changed: set[Path], old: Mapping[str, str] | None) -> bool:
    if any(archive in models for archive in _archives(job)) or _settings_changed(old, job.title, _image_settings(job)):
        return True
    record = link_record(job)
    if record is not None:
        root = job.root.resolve()
        return _touched([root / name for name in record.inputs], changed)
    libraries = [provider.folder for provider in job.target.providers]
    folders = [real_place(folder) for folder in (*job.include_dirs, job.cmake, *libraries) if folder is not None]
    inside = any(file.is_relative_to(folder) for file in changed for folder in folders)
    return inside or _touched([*job.sources, *job.target.toolchain_files, *job.target.part_files], changed)


def _image_settings(job: FirmwareJob) -> str:
    paths = [os.path.relpath(path, job.root) for path in (*job.sources, *job.include_dirs, *filter(None, [job.cmake]))]
    return json.dumps([job.report_settings(), job.target.settings(), paths])


def _settings_changed(old: Mapping[str, str] | None, title: str, now: str) -> bool:
    return old is not None and old.get(title) != now


def _touched(files: Sequence[Path], changed: set[Path]) -> bool:
    # A submodule whose commit changed is named by its folder.
    return any(place in changed for path in map(real_place, files) for place in (path, *path.parents))


def _old_settings(project: Project, revision: str) -> dict[str, str]:
    """Return title -> settings of all models and images of the project file of ``revision``; none if it had mistakes.

    The file is read in a folder of its own, so that patterns of files match nothing and their models count as new.
    """
    try:
        text = _git(project.root, "show", f"{revision}:./{project.path.name}")
        with tempfile.TemporaryDirectory(prefix="mlfbuild-") as folder:
            path = Path(folder) / project.path.name
            path.write_text(text)
            old = load_project(path)
            jobs = target_jobs(old)
            images = firmware_jobs(old, jobs)
            found = {job.title: job.all_settings() for job in _models(jobs)}
            return found | {job.title: _image_settings(job) for job in images}
    except MlfError:
        return {}


def _changed_files(root: Path, revision: str) -> set[Path]:
    """Return the files that differ from ``revision`` in the working folder, and those that Git does not track."""
    try:
        top = Path(_git(root, "rev-parse", "--show-toplevel").rstrip("\n"))
    except ProcessFailedError:
        raise UsageError(
            "project-not-in-git",
            place="--affected-by",
            reason=f"{root.absolute()} is in no Git repository",
            hint="omit --affected-by to build everything",
        ) from None
    try:
        commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except ProcessFailedError:
        raise UsageError(
            "unknown-revision",
            place=f"--affected-by {revision}",
            reason="Git has no such commit here",
            hint="fetch it first: a shallow clone of CI has only the last one",
        ) from None
    differing = _git(top, "diff", "--name-only", "--no-renames", "-z", commit, "--")
    untracked = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return {real_place(top / name) for name in (differing + untracked).split("\0") if name}


def _git(folder: Path, *words: str) -> str:
    return run([find_tool("git"), "-c", "core.fsmonitor=false", "-C", folder, *words])


def _durations(project: Project) -> dict[str, float]:
    path = project.root / DURATIONS
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
        return {str(title): max(0.0, float(cost)) for title, cost in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputFileError(
            "durations-damaged",
            place=path,
            reason="is no map of titles to seconds",
            hint="write it again with `mlfbuild build --store-durations`",
        ) from None
