"""Work beside the work: a function that a thread calls for as long as a block lasts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def in_thread(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Call ``run`` in a thread; the ``with`` block sets its event at the end, and waits until it returns.

    ``run`` must wait for that event and nothing else: ``ended.wait(seconds)`` returns at once when the block ends.
    """
    ended = threading.Event()
    thread = threading.Thread(target=run, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def every(seconds: float, call: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Return a context that calls ``call`` in a thread each time that ``seconds`` have passed.

    The first call comes after ``seconds``. Calls do not overlap, because one thread makes them all.
    """

    def run(ended: threading.Event) -> None:
        while not ended.wait(seconds):
            call()

    return in_thread(run)
