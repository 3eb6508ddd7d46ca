"""The project's baseline, ``budget-file``: checking growth, and accepting it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import Diagnostic, UsageError, write_if_changed
from mlfbuild.jobs import FirmwareJob, image_title
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
from mlfbuild.report.budgets.limits import taken_by
from mlfbuild.report.budgets.record import Taken

if TYPE_CHECKING:
    from mlfbuild.report.sizes.owners import Sizes


def accepted_sizes(job: FirmwareJob) -> Taken:
    """Return the accepted sizes of the job's image; empty if there is no baseline, or none for this image.

    Raises ``UsageError`` if the file is missing, and ``InputFileError`` if it is damaged, of another version, or has a
    model that the image no longer has.
    """
    if job.budget_file is None:
        return {}
    images = _read(job.budget_file.path)
    own = {title: taken for title, taken in images.items() if title == job.title}
    check_known(job.budget_file.path, own, {job.title: job.models})
    return own.get(job.title, {})


def growth_of(job: FirmwareJob, sizes: Sizes, accepted: Taken) -> list[Diagnostic]:
    """Return each model, and the image, that has grown from ``accepted`` by more than the project allows."""
    file = job.budget_file
    return [] if file is None else list(growths(sizes, accepted, file.growth, file.path))


def check_baseline(project: Project, *, update: bool) -> None:
    """Raise an error if the project's baseline cannot be used or updated; called before anything is built.

    Raises ``UsageError`` if the file is missing and not to be updated, or if it is to be updated and the project names
    none. Raises ``InputFileError`` if the file is damaged or of another version, or if it is not to be updated and has
    images or models that the project no longer has.
    """
    if project.baseline is None:
        if update:
            raise UsageError(
                "no-baseline-to-update",
                place=project.path,
                reason="the project has no budget-file to update",
                hint="add one, such as `budget-file: sizes.json`",
            )
        return
    path = project.baseline.path
    if update:
        _read_if_there(path)
    else:
        check_known(path, _read(path), _images_of(project))


def unchecked(jobs: Sequence[FirmwareJob]) -> list[FirmwareJob]:
    """Return the jobs without their baseline, so that growth is accepted."""
    return [replace(job, budget_file=None) for job in jobs]


def update_baseline(project: Project, images: Sequence[tuple[FirmwareJob, Sizes]]) -> tuple[Path, bool]:
    """Write the sizes of ``images`` to the project's baseline; return its path and whether its content changed.

    Entries of other images of the project are kept. Raises as ``check_baseline``, and ``StorageError``.
    """
    check_baseline(project, update=True)
    assert project.baseline is not None
    path, known = project.baseline.path, _images_of(project)
    # An update of one firmware must not accept the growth of another that was not built.
    kept = {title: _only(taken, known[title]) for title, taken in _read_if_there(path).items() if title in known}
    new = {job.title: _only(taken_by(sizes), job.models) for job, sizes in images}
    return path, write_if_changed(path, baseline_text({**kept, **new}).encode())


def baseline_of(job: FirmwareJob) -> Taken | None:
    """Return the accepted sizes of the job's image, ``None`` if there are none; raises ``InputFileError``."""
    return None if job.budget_file is None else _read_if_there(job.budget_file.path).get(job.title)


def difference_lines(job: FirmwareJob, sizes: Sizes) -> Iterator[str]:
    """Yield lines that compare an image with the project's baseline, if it has one; raises ``InputFileError``."""
    if job.budget_file is not None:
        yield from differences(sizes, baseline_of(job), job.models, job.budget_file.path)


def _images_of(project: Project) -> dict[str, list[str]]:
    """Return the names of the models of each image of the project, by the title of the image."""
    return {
        image_title(spec.name, target): [model.name for model in project.models_on(target, spec.name)]
        for spec in project.firmware.values()
        for target in spec.targets
    }


def _only(taken: Taken, models: Collection[str]) -> Taken:
    return {name: sizes for name, sizes in taken.items() if not name or name in models}


def _read(path: Path) -> Baseline:
    if _missing(path):
        raise UsageError(
            "baseline-missing",
            place=path,
            reason="no such file, which budget-file names",
            hint=f"create it with {UPDATE} and commit it",
        )
    return read_baseline(path)


def _read_if_there(path: Path) -> Baseline:
    return {} if _missing(path) else read_baseline(path)


def _missing(path: Path) -> bool:
    with contextlib.suppress(OSError):  # without permission for the folder; reading the file gives the better message
        return not path.exists()
    return False
