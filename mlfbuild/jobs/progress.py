"""Report progress to a driver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlfbuild.core import MlfError

UP_TO_DATE = "up to date"
"""The result of a task that had nothing to do."""


@dataclass(frozen=True)
class Task:
    """A job as shown to people and tools, such as "compile kws for m55"."""

    verb: str
    """``compile``, ``unpack``, ``write``, ``build``, ``link`` (on a farm), ``verify``, ``profile``."""
    title: str
    """The name of the job in messages, such as "kws for m55"."""
    target: str
    model: str = ""
    """Empty if the job is not about one model."""
    firmware: str = ""
    """Empty if the job is not about one image."""

    def __str__(self) -> str:
        return f"{self.verb} {self.title}"


class Progress:
    """A driver's observer of long work, which this base class ignores; tasks overlap if jobs run in parallel.

    Each task that starts also finishes or fails, unless an interrupt or a defect ends everything.
    """

    def expect(self, tasks: int) -> None:
        """Announce that so many more ``tasks`` will start."""

    def start(self, task: Task) -> None:
        """Report that ``task`` starts."""

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Report the current step of ``task``, such as "building"; ``done`` and ``of`` are 0 if it is not counted."""

    def finish(self, task: Task, result: str) -> None:
        """Report that ``task`` succeeded; ``result`` is ``UP_TO_DATE`` or such as "compiled, 17 files written"."""

    def fail(self, task: Task, result: str = "failed") -> None:
        """Report that ``task`` failed; the error itself is raised, or passed to ``another``."""

    def output(self, task: Task, text: str) -> None:
        """Show ``text`` that an external program printed, even though it succeeded."""

    def another(self, error: MlfError) -> None:
        """Report an ``error`` that happened in addition to the one that is raised."""


@contextlib.contextmanager
def watched(watch: Progress, task: Task) -> Iterator[None]:
    """Report that ``task`` starts, and that it fails if the block raises ``MlfError``; the block itself finishes it.

    Other exceptions pass without a report: they are interrupts or defects, after which no display goes on.
    """
    watch.start(task)
    try:
        yield
    except MlfError:
        watch.fail(task)
        raise


def raise_first(errors: Mapping[int, MlfError], watch: Progress) -> None:
    """Raise the error with the lowest number, if there is one, and report the others to ``watch``.

    ``errors`` has errors by the number of their job. The others are reported in the order of these numbers, before the
    first one is raised.
    """
    # By number and not by time, so that a build with several errors always ends with the same one.
    for number in sorted(errors)[1:]:
        watch.another(errors[number])
    if errors:
        raise errors[min(errors)]
