"""Progress of long work on stderr.

On a terminal each running job has a line that tells what it is doing, and leaves a plain one when it is done;
everywhere else there are only these plain lines. Under ``--format json`` there are events instead.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mlfbuild.build import UP_TO_DATE
from mlfbuild.cli.output import emit, tell, words_of, write
from mlfbuild.core import counted

if TYPE_CHECKING:
    from mlfbuild.build import Progress, Task
    from mlfbuild.cli.options import Settings
    from mlfbuild.core import MlfError


class Lines:
    """Says what was done when it is done; what was up to date only on request."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool, quiet: bool, doing: str = "build") -> None:
        self.write = write
        self.doing = doing
        self.verbose = verbose
        self.quiet = quiet
        self.started: dict[Task, float] = {}
        self.current = 0
        """How many tasks had nothing to do."""
        self.idle = True
        """Whether no task had anything to do."""

    def expect(self, tasks: int) -> None:
        """Say nothing."""

    def start(self, task: Task) -> None:
        """Say nothing yet."""
        self.started[task] = time.monotonic()

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Say nothing."""

    def finish(self, task: Task, result: str) -> None:
        """Print one line."""
        if result == UP_TO_DATE:
            self.current += 1
            if self.verbose:
                self._line(f"{task}: {result}")
        else:
            self._ended(task, result)

    def fail(self, task: Task, result: str = "failed") -> None:
        """Print one line."""
        self._ended(task, result)

    def output(self, task: Task, text: str) -> None:
        """Print what a program printed."""
        self._line(f"{task}:\n{text.rstrip()}")

    def another(self, error: MlfError) -> None:
        """Print the error, quiet or not."""
        self.write(words_of(error))

    def end(self) -> None:
        """Say so where there was nothing to do."""
        if self.idle and self.current and not self.verbose:
            self._line(f"nothing to {self.doing}: {counted(self.current, 'job')} up to date")

    def _ended(self, task: Task, result: str) -> None:
        self.idle = False
        self._line(f"{task}: {result} ({spent(time.monotonic() - self.started[task])})")

    def _line(self, text: str) -> None:
        if not self.quiet:
            self.write(text)


class Events:
    """Says everything, to programs."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.numbers: dict[Task, int] = {}
        self.started: dict[Task, float] = {}

    def expect(self, tasks: int) -> None:
        """Say nothing."""

    def start(self, task: Task) -> None:
        """Give the task its number."""
        self.numbers[task] = len(self.numbers) + 1
        self.started[task] = time.monotonic()
        about = {"target": task.target, "model": task.model, "firmware": task.firmware}
        given = {name: value for name, value in about.items() if value}
        self._emit("job-started", task, verb=task.verb, title=task.title, **given)

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Tell how far the task is."""
        self._emit("job-progress", task, doing=doing, **({"done": done, "of": of} if of else {}))

    def finish(self, task: Task, result: str) -> None:
        """Tell what came of the task."""
        self._ended(task, "up-to-date" if result == UP_TO_DATE else "done", result)

    def fail(self, task: Task, result: str = "failed") -> None:
        """Tell that it ended badly."""
        self._ended(task, "failed", result)

    def output(self, task: Task, text: str) -> None:
        """Tell what a program printed."""
        self._emit("output", task, text=text)

    def another(self, error: MlfError) -> None:
        """Tell the error, quiet or not."""
        tell(error, events=True)

    def end(self) -> None:
        """Say nothing: each job has told."""

    def _ended(self, task: Task, status: str, result: str) -> None:
        seconds = round(time.monotonic() - self.started[task], 3)
        self._emit("job-finished", task, status=status, result=result, seconds=seconds)

    def _emit(self, event: str, task: Task, **about: Any) -> None:
        if not self.quiet:
            emit({"event": event, "job": self.numbers[task], **about})


def spent(seconds: float) -> str:
    """Return ``0.4 s``, ``1 min 05 s``."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


@contextlib.contextmanager
def watching(settings: Settings, doing: str = "build") -> Iterator[Progress]:
    """Hand out what watches the work inside the ``with`` block; ``doing`` says what there may be nothing to do of."""
    if settings.json:
        yield Events(quiet=settings.quiet)
    elif settings.quiet or not is_live():
        lines = Lines(write, verbose=settings.verbose, quiet=settings.quiet, doing=doing)
        yield lines
        lines.end()
    else:
        from mlfbuild.cli.live import live

        with live(verbose=settings.verbose, doing=doing) as lines:
            yield lines
            lines.end()


def is_live() -> bool:
    """Whether stderr is a terminal on which lines may move, and a person looks at it."""
    environment = os.environ
    plain = environment.get("NO_COLOR") or environment.get("CI", "false").lower() not in {"", "0", "false"}
    return sys.stderr.isatty() and environment.get("TERM", "") not in {"", "dumb"} and not plain
