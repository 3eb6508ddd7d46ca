"""The client of a Dask cluster: submit batches of tasks, few at a time, and yield what came back and was checked."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import itertools
import math
import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from mlfbuild.core import (
    MlfError,
    ProcessFailedError,
    StorageError,
    lazy_module,
    listed,
    require_extra,
    sha256,
)
from mlfbuild.farm.batch import Pace, TaskBatch, batches
from mlfbuild.farm.connection import connected_client, first_line, patience, unreachable, without_workers
from mlfbuild.farm.paths import packed
from mlfbuild.farm.task import FarmResult, FarmSettings, FarmTask
from mlfbuild.farm.worker import Call, Outputs, check_versions, contents_of, program_versions, run_tasks

distributed = lazy_module("distributed")  # importing it takes a second

_lock = threading.Lock()
_connections: dict[FarmSettings, tuple[contextlib.ExitStack, Farm]] = {}
"""Those of ``called``."""

_AHEAD = 4
"""Calls that are submitted for each thread of the cluster while tasks are alone, and half as many of batches: enough
that no thread waits, few enough to hold their inputs."""
_TRIES = 3
"""Submissions of a task if workers or the scheduler are lost, disks are full, or content is damaged."""
_CARRIED = 1 << 20
"""Bytes of files that a call carries; a larger file is a task of Dask's own, which costs its scheduler 2 ms."""
_KEPT_FILES = 64
"""Files that stay on the cluster after the tasks that read them."""
_ASK_SECONDS = 1
"""Seconds between questions to the scheduler about its workers."""
_PAUSE_SECONDS = 0.1
"""Time between two attempts to reach a scheduler that does not answer."""


@contextlib.contextmanager
def open_farm(settings: FarmSettings, versions: Mapping[str, str]) -> Iterator[Farm]:
    """Connect to the cluster of ``settings``, or start one on this machine, for the time of the block.

    ``versions`` are program -> version as ``program_versions`` returns them here; workers must have the same. Raises
    ``ToolNotFoundError`` if Dask is missing, and ``ProcessFailedError`` if the scheduler does not answer, has no
    worker, or it or a worker has another version.
    """
    require_extra("distributed", settings.scheduler or "dask", "a farm")
    with connected_client(settings) as client:
        farm = Farm(client, versions, settings.scheduler)
        farm.check_workers()
        yield farm


def called(settings: FarmSettings, task: FarmTask) -> FarmResult:
    """Run one ``task`` on the farm, to which this process stays connected; safe to call from several threads.

    A connection that was lost is made again. Raises the error of the task, and as ``open_farm`` and ``Farm.run``.
    """
    with _lock:
        stack, farm = _connections.get(settings, (None, None))
        if stack is None or farm is None or not farm.is_connected():
            if stack is not None:
                stack.close()
            stack = contextlib.ExitStack()
            farm = stack.enter_context(open_farm(settings, program_versions([])))
            _connections[settings] = stack, farm
    ((_, result),) = farm.run([task])
    if isinstance(result, MlfError):
        raise result
    return result


@atexit.register
def _disconnect() -> None:
    for stack, _ in _connections.values():
        stack.close()


class Farm:
    """A connected cluster."""

    def __init__(self, client: Any, versions: Mapping[str, str], address: str) -> None:
        self._client = client
        self._versions = dict(versions)
        self._address = address
        self._asked = -math.inf
        self._threads: Mapping[str, int] = {}
        self._blobs: dict[str, Any] = {}

    def is_connected(self) -> bool:
        """Return whether Dask has, or tries to have, a connection to the scheduler."""
        return self._client.status in ("running", "connecting")

    def check_workers(self) -> None:
        """Raise ``ProcessFailedError`` if a worker or the scheduler has another version of a program than this machine.

        The scheduler unpacks tasks too, and so needs mlfbuild. A worker that does not answer is left out: it and those
        that come later are checked by the tasks that they run.
        """
        ours = {"mlfbuild": self._versions["mlfbuild"]}
        answers = {"scheduler": self._answer(self._client.run_on_scheduler, check_versions, ours)}
        found = self._answer(self._client.run, check_versions, self._versions, on_error="return")
        if isinstance(found, dict):
            answers |= {f"worker {address}": answer for address, answer in found.items()}
        for place, answer in answers.items():
            if isinstance(answer, MlfError):
                raise answer.within(place)
            # An error of importing is no longer an ImportError if Dask could not even read the request.
            if isinstance(answer, Exception) and not isinstance(answer, (OSError, distributed.TimeoutError)):
                raise ProcessFailedError(
                    "farm-worker-differs",
                    place=place,
                    reason=f"cannot import this mlfbuild: {first_line(answer)}",
                    hint="install the same version on all workers, and start them again",
                )

    def _answer(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Return what a method of the client returns or raises, which may wait for a worker that is stopped."""
        # Called in the event loop, methods of the client return coroutines, whose time can be limited.
        call = functools.partial(function, *arguments, **options)
        try:
            return self._client.sync(call, callback_timeout=patience())
        except Exception as error:  # noqa: BLE001 - it is the answer
            return error

    def run(self, tasks: Iterable[FarmTask]) -> Iterator[tuple[FarmTask, FarmResult | MlfError]]:
        """Yield each task with its result, or with the reason why it has none, as they end.

        Raises ``ProcessFailedError`` if the scheduler or all workers are lost for good; what was yielded is right.
        Raises ``InputFileError`` if a file of a task cannot be read.
        """
        waiting = iter(tasks)
        running = _Running()
        try:
            self._fill(waiting, running)
            while running.calls:
                batch, call = self._next(running)
                yield from self._ended(batch, call, running)
                self._fill(waiting, running)
        finally:
            for _, call in running.calls.values():
                call.cancel()  # and Dask cancels calls whose results no client waits for

    def _fill(self, waiting: Iterator[FarmTask], running: _Running) -> None:
        if time.monotonic() - self._asked > _ASK_SECONDS:  # workers come and go, but asking takes as long as a call
            self._ask()
        threads = max(1, sum(self._threads.values()))
        most = running.pace.most(threads)
        free = max(0, (_AHEAD if most == 1 else _AHEAD // 2) * threads - len(running.calls))
        ready = running.ready
        # Batches become smaller towards the end, which must be seen to come, so that all workers end together.
        seen = 2 * threads if most > 1 else 0
        ready += itertools.islice(waiting, max(0, (free + seen) * most - len(ready)))
        size = max(1, min(most, len(ready) // (2 * threads)))
        taken, ready[:] = ready[: free * size], ready[free * size :]
        for batch in batches(taken, free, size):
            for task in batch.tasks:
                if self._threads and not self._offered(task):
                    raise _without_resource(task)
            self._submit(batch, running)

    def _next(self, running: _Running) -> tuple[TaskBatch, Future[Any]]:
        """Wait for the next call that ends; raise ``ProcessFailedError`` if none can end."""
        since = math.inf
        while True:
            with contextlib.suppress(queue.Empty):
                return running.calls.pop(running.ended.get(timeout=_ASK_SECONDS))
            self._ask()
            for batch, call in running.calls.values():
                if self._threads and batch.only and batch.only.isdisjoint(self._threads):
                    call.cancel()  # and it is submitted again
            first = (batch.tasks[0] for batch, _ in running.calls.values())  # the others need no resources either
            left = next((task for task in first if not self._offered(task)), None)
            since = math.inf if left is None else min(since, time.monotonic())
            if left is not None and time.monotonic() - since > patience():
                raise _without_resource(left) if self._threads else without_workers(self._address)

    def _ask(self) -> None:
        """Learn which workers there are; raise ``ProcessFailedError`` if no scheduler answers in time."""
        end = time.monotonic() + patience()
        while self.is_connected() and time.monotonic() < end:
            answer = self._answer(self._client.nthreads)
            if isinstance(answer, Mapping):
                self._asked, self._threads = time.monotonic(), answer
                return
            time.sleep(_PAUSE_SECONDS)
        raise unreachable(self._address, OSError("the connection was lost"))

    def threads(self) -> int:
        """Return how many tasks the workers can run at the same time; raises as ``run``."""
        self._ask()
        return sum(self._threads.values())

    def _offered(self, task: FarmTask) -> bool:
        """Return whether a worker offers the resources of ``task``; without resources, whether there is one."""
        if not task.resources:
            return bool(self._threads)
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return any(all(one["resources"].get(name, 0) >= n for name, n in task.resources.items()) for one in workers)

    def _submit(self, batch: TaskBatch, running: _Running) -> None:
        calls: list[Call] = []
        carried: dict[str, bytes] = {}
        blobs: dict[str, Any] = {}
        room = _CARRIED
        for number, task in enumerate(batch.tasks):
            files = {name: (sha256(content), content) for name, content in contents_of(task).items()}
            new = {
                digest: content for digest, content in files.values() if digest not in carried and digest not in blobs
            }
            if calls and sum(map(len, new.values())) > room:
                self._submit(replace(batch, tasks=batch.tasks[number:]), running)
                batch = replace(batch, tasks=batch.tasks[:number])
                break
            for digest, content in new.items():
                if len(content) <= room:
                    carried[digest] = content
                    room -= len(content)
                else:  # it is sent again for another try, because a copy on a worker may be what was damaged
                    blobs[digest] = self._blob(f"file-{digest}-{batch.tries}", content)
            named = [(name, digest) for name, (digest, _) in files.items()]
            calls.append((task.function, packed(task.argument, task.root), named))
        # Not allow_other_workers: Dask would let a worker steal the task that has just failed on it.
        only = frozenset(self._threads) - batch.avoid if batch.avoid else frozenset()
        future = self._client.submit(
            run_tasks,
            pickle.dumps((self._versions, calls, carried)),  # in which Dask does not look for futures
            [*blobs],
            *blobs.values(),
            key=f"tasks-{uuid.uuid4().hex}",  # Dask keeps figures for each word before the hyphen
            resources=dict(batch.tasks[0].resources) or None,
            workers=[*only] or None,
        )
        running.add(replace(batch, only=only), future, self._client)

    def _blob(self, key: str, content: bytes) -> Any:
        """Return the future of a file; the last ones are kept, because models are compiled for several targets.

        ``bytes`` returns its argument: a task that the scheduler can repeat, which scattered data is not.
        """
        blob = self._blobs.pop(key, None)
        if blob is None or blob.status not in ("pending", "finished"):
            blob = self._client.submit(bytes, content, key=key, pure=True)
        self._blobs[key] = blob
        if len(self._blobs) > _KEPT_FILES:
            del self._blobs[next(iter(self._blobs))]
        return blob

    def _ended(
        self, batch: TaskBatch, call: Future[Any], running: _Running
    ) -> Iterator[tuple[FarmTask, FarmResult | MlfError]]:
        """Yield the results of a call that has ended, and submit again those of its tasks that are tried once more."""
        again = batch.tries + 1 < _TRIES
        try:
            answers = call.result()
        except distributed.KilledWorker as error:
            self.check_workers()  # one that lacks mlfbuild dies of each task
            reason = f"workers died while it ran, the last at {error.last_worker.address}"
            repeated = batch.singly() if len(batch.tasks) > 1 else []  # one of them is what they died of
        except Exception as error:  # noqa: BLE001 - whatever Dask raises: cancelled by a restart, a connection that ended
            self._ask()
            if not isinstance(error, (OSError, distributed.CancelledError)):
                self.check_workers()
            reason = f"{type(error).__name__}: {first_line(error)}"
            repeated = batch.again().singly() if again else []
        else:
            for one, answer in zip(batch.singly(), answers, strict=True):
                running.pace.learn(answer[1])
                outcome = _outcome(one, *answer)
                if isinstance(outcome, TaskBatch):
                    self._submit(outcome, running)
                else:
                    yield one.tasks[0], outcome
            return
        for one in repeated:
            self._submit(one, running)
        if not repeated:
            yield from ((task, _lost(task, reason)) for task in batch.tasks)


def _outcome(batch: TaskBatch, worker: str, seconds: float, returned: Outputs) -> FarmResult | MlfError | TaskBatch:
    """Return the result of a batch of one task that ``worker`` has run, or the batch for another try."""
    (task,) = batch.tasks
    again = batch.tries + 1 < _TRIES
    if isinstance(returned, str):
        raise RuntimeError(f"{task.title} on worker {worker}:\n{returned}")  # a defect of mlfbuild
    if isinstance(returned, MlfError):
        if isinstance(returned, StorageError) or returned.code == "farm-input-damaged":
            return batch.again(worker) if again else returned.within(f"worker {worker}")
        return returned.within(f"worker {worker}") if returned.code == "farm-worker-differs" else returned
    damaged = [name for name, (digest, content) in returned.items() if sha256(content) != digest]
    if damaged and again:
        return batch.again(worker)
    if damaged:
        return _lost(task, f"{listed(damaged)} from {worker} does not match its SHA-256")
    return FarmResult({name: content for name, (_, content) in returned.items()}, worker, seconds)


class _Running:
    """The calls of a run that are submitted, the keys of those that have ended, and how long their tasks took."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.ready: list[FarmTask] = []
        """The next tasks, which are not submitted yet."""
        self.calls: dict[str, tuple[TaskBatch, Future[Any]]] = {}
        self.ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def add(self, batch: TaskBatch, future: Any, client: Any) -> None:
        """Fetch the result of ``future`` when there is one.

        Not by ``distributed.as_completed``, which never yields a future whose scheduler ends while it is fetched.
        """

        async def fetched() -> Any:
            return await client.gather(future)

        call = asyncio.run_coroutine_threadsafe(fetched(), client.loop.asyncio_loop)
        self.calls[future.key] = batch, call
        call.add_done_callback(lambda _: self.ended.put(future.key))


def _without_resource(task: FarmTask) -> ProcessFailedError:
    name, count = next(iter(task.resources.items()), ("", 0))
    return ProcessFailedError(
        "farm-without-resource",
        place=task.title,
        reason=f"no worker of the farm offers {name}",
        hint=f"start one beside the board with `dask worker ADDRESS --resources {name}={count}`",
    )


def _lost(task: FarmTask, reason: str) -> ProcessFailedError:
    return ProcessFailedError(
        "farm-task-lost",
        place=task.title,
        reason=f"has no result: {reason}",
        hint="run the command again, which repeats nothing that is done",
    )
