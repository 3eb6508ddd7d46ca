"""Progress as plain lines: one for each job when it ends, and one each half minute for those that take longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mlfbuild.cli.output.printing import FAILED, PASSED, error_text, wrapped
from mlfbuild.core import counted
from mlfbuild.jobs import UP_TO_DATE, Progress, Task

if TYPE_CHECKING:
    from mlfbuild.core import MlfError

Write = Callable[[str, Mapping[str, str]], None]
"""Prints a text, and some of its words in colours."""
_UNITS = {"loading": "bytes", "running": "cases"}
"""Steps on devices whose rate is shown, with what they count."""
_RATE_SECONDS = 1.0
"""Time after which a rate means something."""
STILL_SECONDS = 30.0
"""Time after which work without moving progress is mentioned again; CI systems stop what prints nothing for long."""


class PlainProgress(Progress):
    """Writes a line for each job that ends; jobs that were up to date only if ``verbose``.

    ``write`` gets each text and the colours of words in it. With ``quiet`` only errors are written; ``form`` is the
    form of these errors.
    """

    def __init__(self, write: Write, *, verbose: bool, quiet: bool, doing: str = "build", form: str = "text") -> None:
        self.write = write
        self.doing = doing
        self.form = form
        self.verbose = verbose
        self.quiet = quiet
        self.started: dict[Task, float] = {}
        self.steps: dict[Task, str] = {}
        """The present activity of each running job."""
        self.began: dict[Task, tuple[str, float, int]] = {}
        """The first call of ``step`` for that activity: its words, the time, and what was done by then."""
        self.up_to_date = 0
        """Number of jobs that had nothing to do."""
        self.idle = True
        """Whether no job had anything to do."""

    def start(self, task: Task) -> None:
        """Start the clock of the task."""
        self.started[task] = time.monotonic()
        self.steps[task] = "waiting"

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Keep the step, for ``still``."""
        self.steps[task] = f"{doing} {done}/{of}{self._rate(task, doing, done)}" if of else doing

    def _rate(self, task: Task, doing: str, done: int) -> str:
        """Return the rate of a step whose unit is known, such as ``, 41 cases/s``; empty in its first second."""
        now = time.monotonic()
        words, began, before = self.began.get(task, ("", now, 0))
        # A new activity, or one that began again: a rate over both would mean nothing.
        if words != doing or done < before:
            self.began[task] = (doing, now, done)
            return ""
        seconds = now - began
        return (
            f", {(done - before) / seconds:,.0f} {_UNITS[doing]}/s"
            if doing in _UNITS and seconds >= _RATE_SECONDS
            else ""
        )

    def still(self) -> None:
        """Write a line for each job that has been running for long."""
        # A copy, because this runs in a thread while jobs begin and end.
        for task, doing in [*self.steps.items()]:
            seconds = time.monotonic() - self.started[task]
            if seconds >= STILL_SECONDS:
                self._line(f"{task}: still {doing} ({duration(seconds)})")

    def finish(self, task: Task, result: str) -> None:
        """Write one line."""
        self.steps.pop(task, None)
        if result != UP_TO_DATE:
            self._ended(task, result, PASSED)
            return
        self.up_to_date += 1
        if self.verbose:
            self._line(f"{task}: {result}")

    def fail(self, task: Task, result: str = "failed") -> None:
        """Write one line."""
        self.steps.pop(task, None)
        self._ended(task, result, FAILED)

    def output(self, task: Task, text: str) -> None:
        """Write the output of a program."""
        if not self.quiet:
            self.write(f"{task}:\n{text.rstrip()}", {})

    def another(self, error: MlfError) -> None:
        """Write the error, even if quiet."""
        self.write(error_text(error, self.form), {})

    def end(self) -> None:
        """Write one line if there was nothing to do."""
        # Silence would look like a command that did not work.
        if self.idle and self.up_to_date and not self.verbose:
            self._line(f"nothing to {self.doing}: {counted(self.up_to_date, 'job')} up to date")

    def _ended(self, task: Task, result: str, colour: str) -> None:
        self.idle = False
        self._line(f"{task}: {result} ({duration(time.monotonic() - self.started[task])})", {result: colour})

    def _line(self, text: str, colours: Mapping[str, str] | None = None) -> None:
        if not self.quiet:
            self.write(wrapped(text), colours or {})


def duration(seconds: float) -> str:
    """Return ``0.4 s``, ``1 min 05 s``."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02} s"
