"""How a step tells a driver what it is doing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from mlfbuild.core import MlfError

UP_TO_DATE = "up to date"
"""The result of a task that had nothing to do."""


@dataclass(frozen=True)
class Task:
    """A job as people and tools see it: "compile kws for m55"."""

    verb: str
    """``compile``, ``write``, ``build``, ``verify``, ``profile``."""
    title: str
    """What messages call the job: "kws for m55"."""
    target: str
    model: str = ""
    """Empty where the job is not about one model."""
    firmware: str = ""
    """Empty where the job is not about one image."""

    def __str__(self) -> str:
        return f"{self.verb} {self.title}"


class Progress(Protocol):
    """What drivers hand in to watch long work; tasks overlap when jobs run in parallel.

    Each task that is started is finished or fails, unless an interrupt or a defect ends everything.
    """

    def expect(self, tasks: int) -> None:
        """So many more tasks are going to be started."""

    def start(self, task: Task) -> None:
        """``task`` begins."""

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """``task`` is ``doing`` this now ("building"), and has ``done`` so many ``of`` these: 0 where nobody counts."""

    def finish(self, task: Task, result: str) -> None:
        """``task`` ended well; ``result`` tells what came of it ("compiled, 17 files written", ``UP_TO_DATE``)."""

    def fail(self, task: Task, result: str = "failed") -> None:
        """``task`` ended badly; the error itself is raised, or told by ``another``."""

    def output(self, task: Task, text: str) -> None:
        """Show ``text`` that an external program printed: people should see it although all went well."""

    def another(self, error: MlfError) -> None:
        """``error`` happened beside the one that is raised."""


class Silent:
    """Watches and says nothing."""

    def expect(self, tasks: int) -> None:
        """Do nothing."""

    def start(self, task: Task) -> None:
        """Do nothing."""

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Do nothing."""

    def finish(self, task: Task, result: str) -> None:
        """Do nothing."""

    def fail(self, task: Task, result: str = "failed") -> None:
        """Do nothing."""

    def output(self, task: Task, text: str) -> None:
        """Do nothing."""

    def another(self, error: MlfError) -> None:
        """Do nothing."""


@contextlib.contextmanager
def watched(watch: Progress, task: Task) -> Iterator[None]:
    """Start ``task``, and say that it failed where the ``with`` block raises ``MlfError``; the block finishes it."""
    watch.start(task)
    try:
        yield
    except MlfError:
        watch.fail(task)
        raise


def raise_first(errors: Mapping[int, MlfError], watch: Progress) -> None:
    """Raise the error with the lowest number, if there is one, and tell ``watch`` of the others."""
    for number in sorted(errors)[1:]:
        watch.another(errors[number])
    if errors:
        raise errors[min(errors)]
