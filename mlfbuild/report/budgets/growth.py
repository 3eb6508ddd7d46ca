"""The project's baseline, ``budget-file``: whether an image has grown since, and how the growth is accepted."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.build import FirmwareJob, image_title
from mlfbuild.core import UsageError, write_if_changed
from mlfbuild.project import Project
from mlfbuild.report.budgets.baseline import (
    UPDATE,
    Baseline,
    baseline_text,
    check_known,
    differences,
    growths,
    read_baseline,
)
from mlfbuild.report.budgets.limits import Taken, taken_by
from mlfbuild.report.sizes import Sizes


def accepted_sizes(job: FirmwareJob) -> Taken:
    """Return what the job's image may grow from: nothing where the project has no baseline, or that has no such image.

    Raises ``UsageError`` where the file is missing and ``InputFileError`` where it is damaged, of another version, or
    has a model that the image no longer has.
    """
    if job.budget_file is None:
        return {}
    images = _read(job.budget_file.path)
    own = {title: taken for title, taken in images.items() if title == job.title}
    check_known(job.budget_file.path, own, {job.title: job.models})
    return own.get(job.title, {})


def growth_of(job: FirmwareJob, sizes: Sizes, accepted: Taken) -> list[str]:
    """Return a line for each model and image that takes more than the project lets it grow from ``accepted``."""
    file = job.budget_file
    return [] if file is None else list(growths(sizes, accepted, file.growth, file.path))


def check_baseline(project: Project, *, update: bool) -> None:
    """Raise an error where the project's baseline cannot be used, or not be updated, before anything is built.

    Raises ``UsageError`` where it is missing, unless it is to be updated, or where it is to be and the project has
    none. Raises ``InputFileError`` where the file is damaged or of another version, and, unless it is to be updated,
    where it has images or models that the project no longer has.
    """
    if project.baseline is None:
        if update:
            raise UsageError(f"{project.path}: has no budget-file to update; name one, as in `budget-file: sizes.json`")
        return
    path = project.baseline.path
    if update:
        _read_if_there(path)
    else:
        check_known(path, _read(path), _images_of(project))


def unchecked(jobs: Sequence[FirmwareJob]) -> list[FirmwareJob]:
    """Return the jobs without their baseline, as their growth is to be accepted."""
    return [replace(job, budget_file=None) for job in jobs]


def update_baseline(project: Project, images: Sequence[tuple[FirmwareJob, Sizes]]) -> tuple[Path, bool]:
    """Write what ``images`` take to the project's baseline; returns its path and whether its content changed.

    Of other images it keeps what it has, where the project still has them. Raises as ``check_baseline``, and
    ``StorageError``.
    """
    check_baseline(project, update=True)
    assert project.baseline is not None
    path, known = project.baseline.path, _images_of(project)
    kept = {title: _only(taken, known[title]) for title, taken in _read_if_there(path).items() if title in known}
    new = {job.title: _only(taken_by(sizes), job.models) for job, sizes in images}
    return path, write_if_changed(path, baseline_text({**kept, **new}).encode())


def baseline_of(job: FirmwareJob) -> Taken | None:
    """Return what the project's baseline has of the job's image, if it has it; raises ``InputFileError``."""
    return None if job.budget_file is None else _read_if_there(job.budget_file.path).get(job.title)


def difference_lines(job: FirmwareJob, sizes: Sizes) -> Iterator[str]:
    """Yield lines that compare an image with the project's baseline, where it has one; raises ``InputFileError``."""
    if job.budget_file is not None:
        yield from differences(sizes, baseline_of(job), job.models, job.budget_file.path)


def _images_of(project: Project) -> dict[str, list[str]]:
    """Return the titles of all images that the project asks for, each with the names of its models."""
    return {
        image_title(spec.name, target): [model.name for model in project.models_on(target, spec.name)]
        for spec in project.firmware.values()
        for target in spec.targets
    }


def _only(taken: Taken, models: Collection[str]) -> Taken:
    return {name: sizes for name, sizes in taken.items() if not name or name in models}


def _read(path: Path) -> Baseline:
    if _missing(path):
        raise UsageError(f"{path}: no such file, which budget-file names; make it with {UPDATE} and commit it")
    return read_baseline(path)


def _read_if_there(path: Path) -> Baseline:
    return {} if _missing(path) else read_baseline(path)


def _missing(path: Path) -> bool:
    with contextlib.suppress(OSError):  # of a folder that nobody may look into; reading tells it better
        return not path.exists()
    return False
