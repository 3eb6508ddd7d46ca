"""Progress on a terminal: rich shows a row for each running job below the lines of those that ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn, Task as RichTask, TaskID
from rich.text import Text

from mlfbuild.cli.output.plain import PlainProgress, duration
from mlfbuild.core import terminal_text
from mlfbuild.jobs import Task

_ROWS_LEFT_FREE = 3


class _Row(ProgressColumn):
    """``compile kws for m55: unpacking (0.4 s)``, cut at the edge of the terminal."""

    def render(self, task: RichTask) -> Text:
        return _text(f"{task.description} ({duration(task.elapsed or 0)})")


class Rows(Progress):
    """Rows of the running jobs, the oldest first, as many as fit the terminal, and a count of all jobs."""

    def __init__(self, console: Console) -> None:
        self.expected = self.done = 0
        self.screen = console  # the parent draws the rows before it keeps the console
        # The results of a command are on stdout, and the rows on stderr: rich need not draw between them.
        super().__init__(_Row(), console=console, transient=True, redirect_stdout=False, refresh_per_second=5)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the rows."""
        most, tasks = max(1, self.screen.size.height - _ROWS_LEFT_FREE), self.tasks
        # The last row is left for the number of those that are not shown.
        shown = tasks if len(tasks) <= most else tasks[: most - 1]
        if shown:
            yield self.make_tasks_table(shown)
        if len(shown) < len(tasks):
            yield _text(f"... and {len(tasks) - len(shown)} more")
        if self.expected > 1:
            yield _text(f"{self.done} of {self.expected} done")


def _text(text: str) -> Text:
    """Return ``text`` as it is: names in it may come from files that are not trusted, and are not markup."""
    return Text(terminal_text(text), no_wrap=True, overflow="crop")


class LiveProgress(PlainProgress):
    """Plain lines for jobs that ended, and a row for each that is running."""

    def __init__(self, rows: Rows, *, verbose: bool, doing: str = "build") -> None:
        super().__init__(self._print, verbose=verbose, quiet=False, doing=doing)
        self.rows = rows
        self.running: dict[Task, TaskID] = {}

    def expect(self, tasks: int) -> None:
        """Count them in the last row."""
        self.rows.expected += tasks

    def start(self, task: Task) -> None:
        """Add a row."""
        super().start(task)
        self.running[task] = self.rows.add_task(f"{task}: waiting", total=None)

    def step(self, task: Task, doing: str, done: int = 0, of: int = 0) -> None:
        """Change the row."""
        super().step(task, doing, done, of)
        self.rows.update(self.running[task], description=f"{task}: {self.steps[task]}")

    def finish(self, task: Task, result: str) -> None:
        """Remove the row before the line is printed."""
        self._remove(task)
        super().finish(task, result)

    def fail(self, task: Task, result: str = "failed") -> None:
        """Remove the row before the line is printed."""
        self._remove(task)
        super().fail(task, result)

    def _remove(self, task: Task) -> None:
        self.rows.remove_task(self.running.pop(task))
        self.rows.done += 1

    def _print(self, text: str, colours: Mapping[str, str]) -> None:
        self.rows.refresh()  # otherwise the previous rows are drawn once more below the text
        line = Text(terminal_text(text))
        for words, colour in colours.items():
            line.highlight_words([terminal_text(words)], colour)
        self.rows.console.print(line, soft_wrap=True)


@contextlib.contextmanager
def live_progress(*, verbose: bool, doing: str = "build") -> Iterator[LiveProgress]:
    """Yield progress that is shown on stderr until the ``with`` block ends; only plain lines remain then."""
    with Rows(Console(stderr=True, force_terminal=True)) as rows:
        yield LiveProgress(rows, verbose=verbose, doing=doing)


@contextlib.contextmanager
def live_row(description: str, started: float) -> Iterator[None]:
    """Show a row with ``description`` and the time since ``started`` on stderr until the ``with`` block ends."""
    rows = Rows(Console(stderr=True, force_terminal=True))
    rows.add_task(description, total=None)
    # The work began before the row is shown.
    rows.tasks[0].start_time = started
    with rows:
        yield
