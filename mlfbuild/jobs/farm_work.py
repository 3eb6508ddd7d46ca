"""Run work on a farm and report it: the one loop of compilations, verifications and profiles."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import CheckFailedError, MlfError, listed
from mlfbuild.farm import FarmResult, FarmSettings, FarmTask, open_farm, program_versions, run_here
from mlfbuild.jobs.progress import Progress, Task


@dataclass(frozen=True)
class FarmWork:
    """A task of a farm, and what is done with its result here."""

    task: FarmTask
    shown: Task
    end: Callable[[FarmResult], None]
    """Keeps a result and reports that ``shown`` finished or failed; what it raises is the error of the work."""
    failed: str = "failed"
    """The end of ``shown`` if there is no result."""


def run_on_farm(
    settings: FarmSettings, works: Iterable[FarmWork], watch: Progress, programs: Iterable[str] = (), recheck: int = 0
) -> dict[int, MlfError]:
    """Run ``works`` on a farm; return position -> error of those without a result.

    They are taken as the farm can run them. Without works, no cluster is needed. Workers must have the same versions of
    ``programs`` as this machine. ``recheck`` of the results, those with the smallest keys, are also made here and
    compared before they are kept. Raises as ``open_farm`` and ``Farm.run``, after what had ended was kept.
    """
    works = [*works] if recheck else works  # all keys must be known to choose the smallest
    chosen = {*sorted(work.task.key for work in works)[:recheck]} if recheck else set[str]()
    waiting = enumerate(works)
    first = next(waiting, None)
    if first is None:
        return {}
    running: dict[int, tuple[int, FarmWork]] = {}

    def started() -> Iterator[FarmTask]:
        for number, work in itertools.chain([first], waiting):
            watch.start(work.shown)
            running[id(work.task)] = number, work  # not by key or title, which two works may share
            yield work.task

    errors: dict[int, MlfError] = {}
    with open_farm(settings, program_versions(sorted({*programs}))) as farm:
        for task, result in farm.run(started()):
            number, work = running.pop(id(task))
            try:
                _end(work, result, task.key in chosen)
            except MlfError as error:
                errors[number] = error
                watch.fail(work.shown, work.failed)
    return errors


def _end(work: FarmWork, result: FarmResult | MlfError, recheck: bool) -> None:
    if isinstance(result, MlfError):
        raise result
    if recheck:
        _compare(work.task, result)
    work.end(result)


def _compare(task: FarmTask, result: FarmResult) -> None:
    """Raise ``CheckFailedError`` if ``task``, run here, has other outputs than the ``result`` of a worker."""
    with tempfile.TemporaryDirectory(prefix="mlfbuild-recheck-") as name:
        here = run_here(task, Path(name))
    other = [name for name in sorted({*here, *result.outputs}) if here.get(name) != result.outputs.get(name)]
    if other:
        raise CheckFailedError(
            "farm-result-differs",
            place=task.title,
            reason=f"{listed(other)} of worker {result.worker} differs from what this machine makes, and is not kept",
            hint="stop that worker, and build what it made again",
        )
