"""Worker processes: compiling is Python, so threads would not run two models at once."""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from mlfbuild.errors import ProcessFailedError

A = TypeVar("A")
R = TypeVar("R")

_lock = threading.Lock()


@contextlib.contextmanager
def _held_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back inside the ``with`` block.

    Processes started there keep it blocked from their first instruction: Ctrl-C reaches the whole process group, the
    parent answers it, and a worker's traceback would only hide the answer. The parent answers after the block: a worker
    that is not told all it needs would complain, too.
    """
    pressed: list[int] = []
    main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers, or is interrupted
    handler = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number)) if main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:
            signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt


def _call(function: Callable[[A], R], argument: A) -> R:
    """Call ``function(argument)`` in a worker process, which ends where that ends it."""
    try:
        return function(argument)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)  # the pool would take it for a result, and live on


def _pass_on_interrupt() -> None:
    """Let workers that run somebody else's program end it, also where Ctrl-C was sent to this process alone."""
    for worker in multiprocessing.active_children():
        if worker.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGINT)


@functools.cache
def _pool(workers: int) -> ProcessPoolExecutor:
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    atexit.register(pool.shutdown, wait=False, cancel_futures=True)
    return pool


def in_worker(function: Callable[[A], R], argument: A, workers: int | None = None) -> R:
    """Call ``function(argument)`` in a worker process and return its result; errors come back as they were raised.

    ``function`` must be importable, ``argument`` and result picklable. Safe to call from several threads.
    Raises ``ProcessFailedError`` where the worker itself died.
    """
    with _lock:
        pool = _pool(workers or os.cpu_count() or 1)
    try:
        with _held_interrupts():
            future = pool.submit(_call, function, argument)
        return future.result()
    except BrokenProcessPool:
        _pool.cache_clear()
        raise ProcessFailedError("a worker process died (killed, or out of memory); run the build again") from None
    except KeyboardInterrupt:
        if threading.current_thread() is threading.main_thread():
            raise
        raise ProcessFailedError("interrupted") from None  # the worker's: whoever owns this thread has their own


def map_in_workers(function: Callable[[A], R], arguments: Iterable[A], workers: int) -> Iterator[tuple[A, R]]:
    """Yield (argument, result) for each of ``arguments`` in order, ``workers`` at a time.

    One worker means this process.
    """
    jobs = list(arguments)
    if workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield job, function(job)
        return
    with _lock:
        pool = _pool(workers)
    with _held_interrupts():
        futures: list[tuple[A, Future[R]]] = [(job, pool.submit(_call, function, job)) for job in jobs]
    try:
        for job, future in futures:
            yield job, future.result()
    except BrokenProcessPool:
        _pool.cache_clear()
        raise ProcessFailedError("a worker process died (killed, or out of memory); run the build again") from None
    except KeyboardInterrupt:
        _pass_on_interrupt()
        raise
    finally:
        for _, future in futures:
            future.cancel()
