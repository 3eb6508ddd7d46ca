"""Progress as plain lines: one for each job when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mlfbuild.build import UP_TO_DATE, Silent, Task
from mlfbuild.cli.output import error_text
from mlfbuild.core import counted

if TYPE_CHECKING:
    from mlfbuild.core import MlfError


class PlainProgress(Silent):
    """Writes a line for each job that ends; jobs that were up to date only if ``verbose``."""

    def __init__(
        self, write: Callable[[str], None], *, verbose: bool, quiet: bool, doing: str = "build", form: str = "text"
    ) -> None:
        self.write = write
        self.doing = doing
        self.form = form
        self.verbose = verbose
        self.quiet = quiet
        self.started: dict[Task, float] = {}
        self.up_to_date = 0
        """Number of jobs that had nothing to do."""
        self.idle = True
        """Whether no job had anything to do."""

    def start(self, task: Task) -> None:
        """Start the clock of the task."""
        self.started[task] = time.monotonic()

    def finish(self, task: Task, result: str) -> None:
        """Write one line."""
        if result != UP_TO_DATE:
            self._ended(task, result)
            return
        self.up_to_date += 1
        if self.verbose:
            self._line(f"{task}: {result}")

    def fail(self, task: Task, result: str = "failed") -> None:
        """Write one line."""
        self._ended(task, result)

    def output(self, task: Task, text: str) -> None:
        """Write the output of a program."""
        self._line(f"{task}:\n{text.rstrip()}")

    def another(self, error: MlfError) -> None:
        """Write the error, even if quiet."""
        self.write(error_text(error, self.form))

    def end(self) -> None:
        """Write one line if there was nothing to do."""
        if self.idle and self.up_to_date and not self.verbose:
            self._line(f"nothing to {self.doing}: {counted(self.up_to_date, 'job')} up to date")

    def _ended(self, task: Task, result: str) -> None:
        self.idle = False
        self._line(f"{task}: {result} ({duration(time.monotonic() - self.started[task])})")

    def _line(self, text: str) -> None:
        if not self.quiet:
            self.write(text)


def duration(seconds: float) -> str:
    """Return ``0.4 s``, ``1 min 05 s``."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02} s"
