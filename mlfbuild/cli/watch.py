"""Progress of long work on stderr: a line for each thing done, and a moving bar where stderr is a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mlfbuild.cli.output import note

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from mlfbuild.cli.options import Settings
    from mlfbuild.steps.progress import Progress

_NOTHING_DONE = "up to date"


class Lines:
    """Says what was done when it is done; what was up to date only on request."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool, quiet: bool) -> None:
        self.write = write
        self.verbose = verbose
        self.quiet = quiet

    def start(self, task: str) -> None:
        """Say nothing yet."""

    def finish(self, task: str, result: str) -> None:
        """Print one line."""
        if not self.quiet and (self.verbose or result != _NOTHING_DONE):
            self.write(f"{task}: {result}")


class Live(Lines):
    """Lines above a bar that shows the oldest running task and how many are done."""

    def __init__(self, bar: Bar, *, verbose: bool) -> None:
        super().__init__(
            lambda text: bar.console.print(text, markup=False, highlight=False), verbose=verbose, quiet=False
        )
        self.bar = bar
        self.row = bar.add_task("", total=0)
        self.running: list[str] = []
        self.started = 0

    def start(self, task: str) -> None:
        """Count one more task."""
        self.started += 1
        self.running.append(task)
        self._draw()

    def finish(self, task: str, result: str) -> None:
        """Print one line and move the bar."""
        self.running.remove(task)
        super().finish(task, result)
        self._draw()

    def _draw(self) -> None:
        done = self.started - len(self.running)
        self.bar.update(
            self.row, total=self.started, completed=done, description=next(iter(self.running), ""), refresh=True
        )


@contextlib.contextmanager
def watching(settings: Settings) -> Iterator[Progress]:
    """Hand out what watches the work inside the ``with`` block."""
    if settings.quiet or not _is_terminal():
        yield Lines(note, verbose=settings.verbose, quiet=settings.quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        SpinnerColumn(), BarColumn(bar_width=20), MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
    )  # fmt: skip
    with RichProgress(*columns, console=Console(stderr=True, soft_wrap=True), transient=True) as bar:
        yield Live(bar, verbose=settings.verbose)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
