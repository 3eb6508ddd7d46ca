"""Reports of an image that exceeds its budget, for build systems that discard the outputs of a failed step."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from mlfbuild.build import FirmwareJob
from mlfbuild.core import MlfError, OverBudgetError
from mlfbuild.usecases.report_files import FORMS


@contextlib.contextmanager
def reporting_excess(job: FirmwareJob, elf: Path, forms: Collection[str]) -> Iterator[None]:
    """Write a report in each of ``forms`` (suffixes) beside the image ``elf`` if the build raises ``OverBudgetError``.

    The reports of ``app.elf`` are called ``app-over-budget.html``; the next build of the image deletes them. The error
    is raised again with their paths.
    """
    paths = [elf.with_name(f"{elf.stem}-over-budget{form}") for form in FORMS]
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
    try:
        yield
    except OverBudgetError as error:
        written = list(_written(job, elf, [path for path in paths if path.suffix in forms]))
        raise OverBudgetError(error.problems, written) from None


def _written(job: FirmwareJob, elf: Path, paths: Collection[Path]) -> Iterator[str]:
    from mlfbuild.usecases.report import write_report

    for path in paths:
        with contextlib.suppress(MlfError):  # the error about the budget matters more
            write_report(path, elf, job)
            yield str(path)
