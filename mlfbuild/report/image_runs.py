"""Runs of the models in an image, for its report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.build import FirmwareJob, Progress, Silent
from mlfbuild.core import CheckFailedError, listed
from mlfbuild.report.budgets.sizes import ImageSizes
from mlfbuild.report.instructions import ModelRun
from mlfbuild.report.runs import watched_runs


def check_boards(jobs: Sequence[FirmwareJob]) -> None:
    """Raise ``CheckFailedError`` where no model of ``jobs`` has a board to run on, before anything is built."""
    if not any(job.runs for job in jobs):
        names = listed([job.target.name for job in jobs])
        raise CheckFailedError(
            f"nothing to profile: no board that QEMU emulates for {names or 'any firmware'}; add one to a target"
        )


def profiled(found: Sequence[ImageSizes], progress: Progress | None = None) -> list[ImageSizes]:
    """Return the images with one run of each model that has a part of them, on the board of their target.

    Images of targets without a board stay as they are. Raises as ``model_runs``.
    """
    return [replace(image, runs=tuple(_runs(image, progress or Silent()))) for image in found]


def _runs(image: ImageSizes, watch: Progress) -> Iterator[ModelRun]:
    there = {owner.name for owner in image.sizes.models if owner.pieces}
    for job in image.job.runs if image.job else ():
        if job.model.model in there:
            yield from watched_runs(job, watch)
