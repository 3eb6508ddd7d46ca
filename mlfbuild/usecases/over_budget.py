"""Reports of an image that is over its budget, for build systems that make nothing of what failed."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from mlfbuild.build import FirmwareJob
from mlfbuild.core import MlfError, OverBudgetError, listed

_FORMS = (".txt", ".json", ".html")


@contextlib.contextmanager
def reporting_excess(job: FirmwareJob, elf: Path, forms: Collection[str]) -> Iterator[None]:
    """Write a report of each of ``forms``, suffixes, beside the image ``elf`` where a build ends with it over budget.

    They are ``app-over-budget.html`` of ``app.elf``, and go when the image is built again. Lets ``OverBudgetError``
    through, with a line that names them.
    """
    paths = [elf.with_name(f"{elf.stem}-over-budget{form}") for form in _FORMS]
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
    try:
        yield
    except OverBudgetError as error:
        written = list(_written(job, elf, [path for path in paths if path.suffix in forms]))
        raise OverBudgetError(f"{error}\nwhat takes how much: {listed(written)}" if written else str(error)) from None


def _written(job: FirmwareJob, elf: Path, paths: Collection[Path]) -> Iterator[str]:
    from mlfbuild.usecases.report import write_report

    for path in paths:
        with contextlib.suppress(MlfError):  # that the image is over its budget is what has to be said
            write_report(path, elf, job)
            yield str(path)
