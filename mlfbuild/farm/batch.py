"""Short tasks that a worker runs in one call, and how many of them: what Dask does for each call takes milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlfbuild.farm.task import FarmTask

_SECONDS = 1.0
"""Seconds of a batch on a worker: the 15 ms of CPU time of a call on one machine are little beside it."""
_SECONDS_FOR_EACH_THREAD = 0.08
"""The same for each thread of the cluster: a call takes 4 ms of the scheduler, which has one core for all of them."""
_MOST = 32
"""Tasks in a batch, whose results come back together and run again together if their worker dies."""
_NEW = 0.2
"""Weight of the last task in the moving average of their times."""


@dataclass(frozen=True)
class TaskBatch:
    """Tasks that are submitted together."""

    tasks: tuple[FarmTask, ...]
    tries: int = 0
    avoid: frozenset[str] = frozenset()
    """Workers that it does not run on again, if there are others."""
    only: frozenset[str] = frozenset()
    """The workers that it was submitted to; empty if to any."""

    def again(self, *avoid: str) -> TaskBatch:
        """Return the batch for another try on workers other than ``avoid`` (addresses)."""
        return replace(self, tries=self.tries + 1, avoid=self.avoid.union(avoid))

    def singly(self) -> list[TaskBatch]:
        """Return a batch for each of the tasks."""
        return [replace(self, tasks=(task,)) for task in self.tasks]


class Pace:
    """The duration of a run's tasks, and so the size of a batch."""

    def __init__(self) -> None:
        self._average = 0.0

    def learn(self, seconds: float) -> None:
        """Take into account a task that took ``seconds``, 0 if it failed."""
        if seconds:
            self._average += (_NEW if self._average else 1) * (seconds - self._average)

    def most(self, threads: int) -> int:
        """Return how many tasks make a batch on a cluster that runs ``threads`` at a time: 1 until one has ended."""
        if not self._average:
            return 1
        return max(1, min(_MOST, int(max(_SECONDS, _SECONDS_FOR_EACH_THREAD * threads) / self._average)))


def batches(tasks: Sequence[FarmTask], calls: int, most: int) -> list[TaskBatch]:
    """Divide ``tasks`` among ``calls`` calls of at most ``most``; those with resources are alone, to wait for them."""
    size = max(1, min(most, -(-len(tasks) // max(1, calls))))
    alone = [TaskBatch((task,)) for task in tasks if task.resources]
    others = [task for task in tasks if not task.resources]
    return alone + [TaskBatch((*others[begin : begin + size],)) for begin in range(0, len(others), size)]
