"""Run functions in worker processes; threads could not compile two models in parallel, because compilers are Python."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from typing import Any, TypeVar

from mlfbuild.core import MlfError, ProcessFailedError

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

_LOOK_SECONDS = 0.05
"""Seconds between two reads of the messages of workers."""

_lock = threading.Lock()


@contextlib.contextmanager
def _held_interrupts() -> Iterator[None]:
    """Delay Ctrl-C inside the ``with`` block.

    Processes started there block it from their first instruction. Ctrl-C reaches the whole process group; the parent
    handles it, and tracebacks of workers would only hide its message. The parent handles it after the block, because a
    worker that is only partly started would also print an error.
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


_runs = itertools.count()
"""Numbers of calls of ``map_in_workers``, so that messages of an abandoned call are not taken for those of another."""
_tellers: list[SimpleQueue[Any]] = []
"""In a worker process: the queue to its parent."""


def _be_worker(queue: SimpleQueue[Any]) -> None:
    _tellers.append(queue)


def _call_telling(job: tuple[Callable[[A, Callable[[T], None]], R], A, tuple[int, int]]) -> R:
    """Call ``function(argument, tell)`` in a worker process."""
    function, argument, place = job
    return _call(lambda one: function(one, lambda thing: _tellers[0].put((place, thing))), argument)


def _call(function: Callable[[A], R], argument: A) -> R:
    """Call ``function(argument)`` in a worker process; ``SystemExit`` ends the process."""
    try:
        return function(argument)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)  # the pool would handle it as a result and continue


def _pass_on_interrupt() -> None:
    """Let workers stop the external program that they run, even if Ctrl-C was sent only to this process."""
    for worker in multiprocessing.active_children():
        if worker.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGINT)


@dataclass(frozen=True)
class _Pool:
    executor: ProcessPoolExecutor
    queue: SimpleQueue[Any]
    """Messages of workers: ((run, number of the job), thing)."""

    def told(self, run: int) -> Iterator[tuple[int, Any]]:
        """Yield (number of the job, thing) for all messages of ``run`` that workers have sent by now."""
        while not self.queue.empty():
            (of, number), thing = self.queue.get()
            if of == run:
                yield number, thing


@functools.cache
def _pool(workers: int) -> _Pool:
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_be_worker, initargs=(queue,))
    atexit.register(pool.shutdown, wait=False, cancel_futures=True)
    return _Pool(pool, queue)


def in_worker(function: Callable[[A], R], argument: A, workers: int | None = None) -> R:
    """Call ``function(argument)`` in a worker process, and return its result or raise its error.

    ``function`` must be importable, ``argument`` and result picklable. Safe to call from several threads.
    Raises ``ProcessFailedError`` if the worker process died.
    """
    with _lock:
        pool = _pool(workers or os.cpu_count() or 1)
    try:
        with _held_interrupts():
            future = pool.executor.submit(_call, function, argument)
        return future.result()
    except BrokenProcessPool:
        _pool.cache_clear()
        raise _worker_died() from None
    except KeyboardInterrupt:
        if threading.current_thread() is threading.main_thread():
            raise
        # The worker was interrupted, not this process: only its main thread receives Ctrl-C.
        raise ProcessFailedError("build-interrupted", reason="interrupted", hint="run the build again") from None


def _worker_died() -> ProcessFailedError:
    reason = "a worker process died (killed, or out of memory)"
    return ProcessFailedError("worker-died", reason=reason, hint="run the build again")


def map_in_workers(
    function: Callable[[A, Callable[[T], None]], R],
    arguments: Iterable[A],
    workers: int,
    told: Callable[[A, T], None],
) -> Iterator[tuple[A, R | MlfError]]:
    """Yield (argument, result) for each of ``arguments`` when it is done; ``workers`` run in parallel.

    ``function(argument, tell)`` can send picklable things with ``tell``; ``told(argument, thing)`` receives them in
    this process, before the result is yielded. If ``function`` raises ``MlfError``, the error is yielded as the result,
    running calls are completed, and no further ones are started. With one worker, calls run in this process.
    """
    jobs = list(arguments)
    if workers <= 1 or len(jobs) <= 1:
        yield from _map_here(function, jobs, told)
        return
    run = next(_runs)
    with _lock:
        pool = _pool(workers)
    with _held_interrupts():
        futures: list[Future[R]] = [
            pool.executor.submit(_call_telling, (function, job, (run, number))) for number, job in enumerate(jobs)
        ]
    numbers = {future: number for number, future in enumerate(futures)}
    try:
        left = set(futures)
        while left:
            done, left = wait(left, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for number, thing in pool.told(run):
                told(jobs[number], thing)
            for future in sorted(done, key=numbers.__getitem__):
                result = _outcome(future)
                if isinstance(result, MlfError):
                    left = {other for other in left if not other.cancel()}
                yield jobs[numbers[future]], result
    except BrokenProcessPool:
        _pool.cache_clear()
        raise _worker_died() from None
    except KeyboardInterrupt:
        _pass_on_interrupt()
        raise
    finally:
        for future in futures:
            future.cancel()


def _map_here(
    function: Callable[[A, Callable[[T], None]], R], jobs: Iterable[A], told: Callable[[A, T], None]
) -> Iterator[tuple[A, R | MlfError]]:
    for job in jobs:
        try:
            result = function(job, functools.partial(told, job))
        except MlfError as error:
            yield job, error
            return
        yield job, result


def _outcome(future: Future[R]) -> R | MlfError:
    try:
        return future.result()
    except MlfError as error:
        return error
