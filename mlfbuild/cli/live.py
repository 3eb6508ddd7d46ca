"""Lines that move: each running job has one, below the plain lines of those that are done."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mlfbuild.build import Task
from mlfbuild.cli.watch import Lines, spent

_REFRESHES_A_SECOND = 5
_ROWS_LEFT_FREE = 3


class LiveLines(Lines):
    """Plain lines of what is done, and rows of what is running."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool, doing: str = "build") -> None:
        super().__init__(write, verbose=verbose, quiet=False, doing=doing)
        self.lock = threading.Lock()  # rows are read in a thread that draws them
        self.running: dict[Task, str] = {}
        self.expected = self.done = 0

    def expect(self, tasks: int) -> None:
        """Count them in the last row."""
        self.expected += tasks

    def start(self, task: Task) -> None:
        """Give the task a row."""
        super().start(task)
        with self.lock:
            self.running[task] = ""

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Change the task's row."""
        with self.lock:
            self.running[task] = f"{doing} {done}/{of}" if of else doing

    def finish(self, task: Task, result: str) -> None:
        """Take the row away before the line is printed."""
        self._forget(task)
        super().finish(task, result)

    def fail(self, task: Task, result: str = "failed") -> None:
        """Take the row away before the line is printed."""
        self._forget(task)
        super().fail(task, result)

    def _forget(self, task: Task) -> None:
        with self.lock:
            self.running.pop(task, None)
        self.done += 1

    def rows(self, most: int) -> list[str]:
        """Return the rows of what is running, ``most`` at most, the oldest job first."""
        with self.lock:
            running = list(self.running.items())
        now = time.monotonic()
        rows = [f"{task}: {doing or 'waiting'} ({spent(now - self.started[task])})" for task, doing in running]
        if len(rows) > most:
            rows = [*rows[: most - 1], f"... and {len(rows) - most + 1} more"]
        return [*rows, f"{self.done} of {self.expected} done"] if self.expected > 1 else rows


@contextlib.contextmanager
def live(*, verbose: bool, doing: str = "build") -> Iterator[LiveLines]:
    """Hand out lines that move on stderr until the ``with`` block ends, however it ends: then only plain ones stay."""
    console = Console(stderr=True, force_terminal=True)

    def write(text: str) -> None:
        moving.refresh()  # else the rows of a moment ago would be drawn below the text once more
        console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def draw() -> Text:
        rows = lines.rows(max(1, console.size.height - _ROWS_LEFT_FREE))
        return Text("\n".join(rows), no_wrap=True, overflow="crop")

    lines = LiveLines(write, verbose=verbose, doing=doing)
    moving = Live(
        console=console, get_renderable=draw, transient=True, redirect_stdout=False,
        refresh_per_second=_REFRESHES_A_SECOND,
    )  # fmt: skip
    with moving:
        yield lines
