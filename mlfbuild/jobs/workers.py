"""Run functions in worker processes; threads could not compile two models in parallel, because compilers are Python."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import functools
import itertools
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from mlfbuild.core import STOP_SIGNALS, MlfError, ProcessFailedError, signals_masked, stops_held

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

_LOOK_SECONDS = 0.05
"""Seconds between two reads of the messages of workers."""
_GRACE_SECONDS = 5
"""Seconds that a worker without a parent has to clean up; programs that it runs have two of them."""

_lock = threading.Lock()


@contextlib.contextmanager
def _starting_workers() -> Iterator[None]:
    """Delay interrupts inside the ``with`` block; processes started there block them from their first instruction.

    Ctrl-C and the end of a terminal reach the whole process group. The parent handles them and ends its workers, and
    tracebacks of workers would only hide its message. The parent handles them after the block, because a worker that is
    only partly started would also print an error.
    """
    with stops_held(), signals_masked("block", [number for number in STOP_SIGNALS if number != signal.SIGTERM]):
        yield


_runs = itertools.count()
"""Numbers of calls of ``map_in_workers``, so that messages of an abandoned call are not taken for those of another."""
_senders: list[SimpleQueue[Any]] = []
"""In a worker process: the queue to its parent."""


def _be_worker(queue: SimpleQueue[Any]) -> None:
    _senders.append(queue)
    for number in STOP_SIGNALS:  # Windows cannot block them
        signal.signal(number, _end)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End this worker by an exception, so that it removes its temporary files and ends the program that it runs.

    Another signal does not interrupt that, even one that arrived together with this one; Python would print an error
    about it if it were ignored with ``SIG_IGN``.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    raise SystemExit(1)


def _end_with_parent() -> None:
    """End this worker when its parent is gone: waiting for the next job, it would not notice.

    The parent has the other end of a pipe. PR_SET_PDEATHSIG of Linux follows the thread that started the worker instead
    of the process, and SCons starts workers from threads that end before the process does.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if sys.platform == "win32":
        _thread.interrupt_main(signal.SIGTERM)
    else:  # also interrupts a system call
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)


def _call_sending(job: tuple[Callable[[A, Callable[[T], None]], R], A, tuple[int, int]]) -> R:
    """Call ``function(argument, send)`` in a worker process."""
    function, argument, place = job
    return _call(lambda one: function(one, lambda thing: _senders[0].put((place, thing))), argument)


def _call(function: Callable[[A], R], argument: A) -> R:
    """Call ``function(argument)`` in a worker process; ``SystemExit`` ends the process."""
    try:
        return function(argument)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)  # the pool would handle it as a result and continue


def _end_workers(executor: ProcessPoolExecutor) -> None:
    """End all workers; each also ends its external program, even if the signal reached only this process."""
    with stops_held():  # terminals and `timeout` often send a second signal
        for worker in multiprocessing.active_children():
            worker.terminate()
        _pool.cache_clear()
        # At its exit, Python 3.11 writes to the pipe of an executor that is just closing it, and prints a traceback.
        executor.shutdown()


@dataclass(frozen=True)
class _Pool:
    executor: ProcessPoolExecutor
    queue: SimpleQueue[Any]
    """Messages of workers: ((run, number of the job), thing)."""

    def received(self, run: int) -> Iterator[tuple[int, Any]]:
        """Yield (number of the job, thing) for all messages of ``run`` that workers have sent by now."""
        while not self.queue.empty():
            (of, number), thing = self.queue.get()
            if of == run:
                yield number, thing


@functools.cache
def _pool(workers: int) -> _Pool:
    # Not fork: SCons has threads, and a child that is forked while another thread has a lock would wait for it for
    # ever. spawn is also the only method that Windows has.
    context = multiprocessing.get_context("spawn")
    with _starting_workers():  # starts multiprocessing's resource tracker, which a SIGHUP would end
        queue = context.SimpleQueue()
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_be_worker, initargs=(queue,))
    # Without waiting: at the exit of a build that failed, the jobs that are still queued are of no use.
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
        with _starting_workers():
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
    received: Callable[[A, T], None],
) -> Iterator[tuple[A, R | MlfError]]:
    """Yield (argument, result) for each of ``arguments`` when it is done; ``workers`` run in parallel.

    ``function(argument, send)`` can send picklable things with ``send``; ``received(argument, thing)`` receives them in
    this process, before the result is yielded. If ``function`` raises ``MlfError``, the error is yielded as the result,
    running calls are completed, and no further ones are started. With one worker, calls run in this process.
    """
    # In this process if there is nothing to gain: starting a worker takes longer than compiling a small model.
    jobs = list(arguments)
    if workers <= 1 or len(jobs) <= 1:
        yield from _map_here(function, jobs, received)
        return
    run = next(_runs)
    with _lock:
        pool = _pool(workers)
    with _starting_workers():
        futures: list[Future[R]] = [
            pool.executor.submit(_call_sending, (function, job, (run, number))) for number, job in enumerate(jobs)
        ]
        # Not ``concurrent.futures.wait``: it locks every future each time, so that thousands of jobs take most of this
        # process's time, and an interrupt in between would leave futures locked, and the executor waiting for ever.
        ended: queue.SimpleQueue[Future[R]] = queue.SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
    numbers = {future: number for number, future in enumerate(futures)}
    try:
        left = set(futures)
        while left:
            done = left & _taken(ended)
            left -= done
            # Before the results: a message about a job must not be shown after its end.
            for number, thing in pool.received(run):
                received(jobs[number], thing)
            # In the order of the jobs, so that the output of a build does not depend on which of two results was seen
            # first.
            for future in sorted(done, key=numbers.__getitem__):
                result = _outcome(future)
                if isinstance(result, MlfError):
                    # Those that already run cannot be cancelled; their archives are finished and kept.
                    left = set(_not_cancelled(left))
                yield jobs[numbers[future]], result
    except BrokenProcessPool:
        _pool.cache_clear()
        raise _worker_died() from None
    except KeyboardInterrupt:
        _end_workers(pool.executor)
        # The executor sets the error of those that are left; Python 3.11 prints a traceback if one was cancelled.
        futures = []
        raise
    finally:
        _not_cancelled(futures)


def _taken(ended: queue.SimpleQueue[Future[R]]) -> set[Future[R]]:
    """Return what is in the queue, or comes within ``_LOOK_SECONDS`` if it is empty."""
    found: set[Future[R]] = set()
    with contextlib.suppress(queue.Empty):
        found.add(ended.get(timeout=_LOOK_SECONDS))
        while True:
            found.add(ended.get_nowait())
    return found


def _not_cancelled(futures: Iterable[Future[R]]) -> list[Future[R]]:
    """Cancel ``futures``, and return those that already run."""
    with stops_held():  # an interrupt would leave one locked
        return [future for future in futures if not future.cancel()]


def _map_here(
    function: Callable[[A, Callable[[T], None]], R], jobs: Iterable[A], received: Callable[[A, T], None]
) -> Iterator[tuple[A, R | MlfError]]:
    for job in jobs:
        try:
            result = function(job, functools.partial(received, job))
        except MlfError as error:
            yield job, error
            return
        yield job, result


def _outcome(future: Future[R]) -> R | MlfError:
    try:
        return future.result()
    except MlfError as error:
        return error
