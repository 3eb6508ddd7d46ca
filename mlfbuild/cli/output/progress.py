"""Progress of long work on stderr: moving rows on a terminal, plain lines elsewhere, events with ``--format json``."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mlfbuild.cli.output.plain import STILL_SECONDS, PlainProgress, duration
from mlfbuild.cli.output.printing import emit, note_unless_quiet, on_terminal, report_error, write
from mlfbuild.core import every, in_thread
from mlfbuild.jobs import UP_TO_DATE, Progress, Task

if TYPE_CHECKING:
    from mlfbuild.cli.options import SharedOptions
    from mlfbuild.core import MlfError
    from mlfbuild.project import Project

# Work that ends sooner shows no row, which would only flicker.
_SHORT_SECONDS = 1.0


class EventProgress(Progress):
    """Prints every step as an event; see ``events``.

    Jobs are numbered from 1 in the order in which they start; all events of a job have its number.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.numbers: dict[Task, int] = {}
        self.count = 0
        self.started: dict[Task, float] = {}

    def start(self, task: Task) -> None:
        """Give the task its number."""
        self.count += 1
        self.numbers[task] = self.count  # a task may start again
        self.started[task] = time.monotonic()
        about = {"target": task.target, "model": task.model, "firmware": task.firmware}
        given = {name: value for name, value in about.items() if value}
        self._emit("job-started", task, verb=task.verb, title=task.title, **given)

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Print the current step."""
        self._emit("job-progress", task, doing=doing, **({"done": done, "of": of} if of else {}))

    def finish(self, task: Task, result: str) -> None:
        """Print the result."""
        self._ended(task, "up-to-date" if result == UP_TO_DATE else "done", result)

    def fail(self, task: Task, result: str = "failed") -> None:
        """Print that the task failed."""
        self._ended(task, "failed", result)

    def output(self, task: Task, text: str) -> None:
        """Print the output of a program."""
        self._emit("output", task, text=text)

    def another(self, error: MlfError) -> None:
        """Print the error, even if quiet."""
        report_error(error, "json")

    def _ended(self, task: Task, status: str, result: str) -> None:
        seconds = round(time.monotonic() - self.started[task], 3)
        self._emit("job-finished", task, status=status, result=result, seconds=seconds)

    def _emit(self, event: str, task: Task, **about: Any) -> None:
        if not self.quiet:
            emit({"event": event, "job": self.numbers[task], **about})


@contextlib.contextmanager
def building(options: SharedOptions, project: Project) -> Iterator[Progress]:
    """Hold the lock of the project's build folder during the ``with`` block, and show the progress of the build.

    Another process that uses the folder is waited for, which a note says, unless ``--no-wait`` was given. Raises as
    ``folder_locked``.
    """
    from mlfbuild.jobs import BUILD_FOLDER, folder_locked

    folder, notify = project.root / BUILD_FOLDER, note_unless_quiet(options)
    # The lock comes first, so that no progress is shown while another build is being waited for.
    with folder_locked(folder, notify, wait=not options.no_wait), showing_progress(options) as shown:
        yield shown


@contextlib.contextmanager
def showing_progress(options: SharedOptions, doing: str = "build") -> Iterator[Progress]:
    """Yield the progress that shows the work in the ``with`` block; ``doing`` completes "nothing to".

    Its form depends on the command line and on stderr: events with ``--format json``; plain lines with ``-q``, for
    GitHub, and if stderr is not a terminal; otherwise rows that move.
    """
    if options.json:
        yield EventProgress(quiet=options.quiet)
    elif options.quiet or options.format == "github" or not on_terminal(sys.stderr):
        lines = PlainProgress(write, verbose=options.verbose, quiet=options.quiet, doing=doing, form=options.format)
        # In a thread, because the work itself does not return until it is done.
        with every(STILL_SECONDS, lines.still):
            yield lines
        lines.end()
    else:
        from mlfbuild.cli.output.live import live_progress

        with live_progress(verbose=options.verbose, doing=doing) as lines:
            yield lines
            lines.end()


@contextlib.contextmanager
def working(options: SharedOptions, doing: str) -> Iterator[None]:
    """Show what a verb other than a build does in the ``with`` block, and for how long, if it takes more than a second.

    ``doing`` is such as "compiling kws.tflite". A terminal has a row until the block ends; elsewhere, there is a line
    each half minute.
    """
    if options.json or options.quiet:
        yield
        return
    started = time.monotonic()

    def still() -> None:
        write(f"still {doing} ({duration(time.monotonic() - started)})")

    def show_row(ended: threading.Event) -> None:
        if not ended.wait(_SHORT_SECONDS):
            from mlfbuild.cli.output.live import live_row  # rich, which work that ends at once does not need

            with live_row(doing, started):
                ended.wait()

    with in_thread(show_row) if on_terminal(sys.stderr) else every(STILL_SECONDS, still):
        yield
