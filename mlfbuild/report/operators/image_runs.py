"""Runs of the models of an image, for its report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.jobs import FirmwareJob, Progress, Silent
from mlfbuild.report.operators.model_run import ModelRun
from mlfbuild.report.operators.runs import nothing_to_profile, watched_runs
from mlfbuild.report.sizes.images import ImageSizes


def check_boards(jobs: Sequence[FirmwareJob]) -> None:
    """Raise ``CheckFailedError`` if no model of ``jobs`` has a board to run on; called before anything is built."""
    if not any(job.runs for job in jobs):
        raise nothing_to_profile([job.target.name for job in jobs])


def profiled(found: Sequence[ImageSizes], progress: Progress | None = None) -> list[ImageSizes]:
    """Return the images with one run of each model that is linked into them, on the board of their target.

    Images of targets without a board are returned unchanged. Raises as ``model_runs``.
    """
    return [replace(image, runs=tuple(_runs(image, progress or Silent()))) for image in found]


def _runs(image: ImageSizes, watch: Progress) -> Iterator[ModelRun]:
    there = {owner.name for owner in image.sizes.models if owner.pieces}
    for job in image.job.runs if image.job else ():
        if job.model.model in there:
            yield from watched_runs(job, watch)
