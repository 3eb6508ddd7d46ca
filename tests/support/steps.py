"""Check how the work of a function grows, by counting calls: a busy machine changes its time, but not its steps.

A count sees every function of Python and C that is called, so it shows a loop that visits each element for each other
one. It does not see the inside of one call, such as a regular expression that backtracks. `ends` is the guard for such
calls: with inputs of this size, work that is not linear takes hours, and linear work a hundredth of its CPU minute.
"""

import cProfile
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from support.examples import swept

RUNAWAY_SECONDS = 60
GROWTH_LIMIT = 2.2
"""Doubling the input doubles the calls beyond those that any input takes; sorting adds a logarithm."""


class RunawayError(AssertionError):
    """The work did not end within a minute of CPU time."""


def calls(work: Callable[[], object]) -> int:
    """Return how many functions of Python and C ``work`` calls."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail if the calls of ``work(n)`` grow faster than ``n``, from ``size`` to four times ``size``.

    Counts do not scatter, so a quarter of ``size`` is enough on each push; the sweep also catches small factors.
    """
    size = size if swept() else size // 4
    with ends():
        work(size)  # imports, caches
        few, some, many = (calls(lambda n=n: work(n)) for n in (size, 2 * size, 4 * size))
    assert many - some <= GROWTH_LIMIT * max(some - few, size // 100), (few, some, many)


@contextmanager
def ends() -> Iterator[None]:
    """Stop work that runs away, such as a regular expression that backtracks exponentially."""

    def stop(_number: int, _frame: object) -> None:
        raise RunawayError(f"still running after {RUNAWAY_SECONDS} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, RUNAWAY_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
