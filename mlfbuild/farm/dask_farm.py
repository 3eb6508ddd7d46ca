"""The client of a Dask cluster: submit tasks, few at a time, and yield what came back and was checked."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
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
from mlfbuild.farm.connection import connected_client, first_line, patience, unreachable, without_workers
from mlfbuild.farm.paths import packed
from mlfbuild.farm.task import FarmResult, FarmSettings, FarmTask
from mlfbuild.farm.worker import check_versions, contents_of, program_versions, run_task

distributed = lazy_module("distributed")  # importing it takes a second

_lock = threading.Lock()

_AHEAD = 4
"""Tasks that are submitted for each thread of the cluster: enough that none waits, few enough to hold their inputs."""
_TRIES = 3
"""How often a task is submitted when workers or the scheduler are lost, disks are full, or content is damaged."""
_KEPT_FILES = 64
"""Files that stay on the cluster after the tasks that read them; a submission costs its scheduler a millisecond."""
_ASK_SECONDS = 1
"""How often the scheduler is asked which workers it has."""
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


@functools.cache
def _connected(settings: FarmSettings) -> Farm:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_farm(settings, program_versions([])))


def called(settings: FarmSettings, task: FarmTask) -> FarmResult:
    """Run one ``task`` on the farm, to which this process stays connected; safe to call from several threads.

    Raises the error of the task, and as ``open_farm`` and ``Farm.run``.
    """
    with _lock:
        farm = _connected(settings)
    ((_, result),) = farm.run([task])
    if isinstance(result, MlfError):
        raise result
    return result


@dataclass(frozen=True)
class _Submitted:
    task: FarmTask
    tries: int = 0
    avoid: frozenset[str] = frozenset()
    """Workers that it does not run on again, if there are others."""
    only: frozenset[str] = frozenset()
    """The workers that it was submitted to; empty if to any."""

    def again(self, *avoid: str) -> _Submitted:
        return replace(self, tries=self.tries + 1, avoid=self.avoid.union(avoid))


class Farm:
    """A connected cluster."""

    def __init__(self, client: Any, versions: Mapping[str, str], address: str) -> None:
        self._client = client
        self._versions = dict(versions)
        self._address = address
        self._number = itertools.count()
        self._asked = -math.inf
        self._threads: Mapping[str, int] = {}
        self._blobs: dict[str, Any] = {}

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
            # An error of importing is no ImportError any more if Dask could not even read the request.
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
                submitted, call = self._next(running)
                ended = self._outcome(submitted, call)
                if isinstance(ended, _Submitted):
                    self._submit(ended, running)
                else:
                    yield submitted.task, ended
                self._fill(waiting, running)
        finally:
            for _, call in running.calls.values():
                call.cancel()  # and Dask cancels tasks whose results nobody waits for

    def _fill(self, waiting: Iterator[FarmTask], running: _Running) -> None:
        if time.monotonic() - self._asked > _ASK_SECONDS:  # workers come and go, but asking takes as long as a task
            self._ask()
        threads = max(1, sum(self._threads.values()))
        for task in itertools.islice(waiting, max(0, _AHEAD * threads - len(running.calls))):
            if self._threads and not self._offered(task):
                raise _without_resource(task)
            self._submit(_Submitted(task), running)

    def _next(self, running: _Running) -> tuple[_Submitted, Future[Any]]:
        """Wait for the next task that ends; raise ``ProcessFailedError`` if none can end."""
        since = math.inf
        while True:
            with contextlib.suppress(queue.Empty):
                return running.calls.pop(running.ended.get(timeout=_ASK_SECONDS))
            self._ask()
            for submitted, call in running.calls.values():
                if self._threads and submitted.only and submitted.only.isdisjoint(self._threads):
                    call.cancel()  # and it is submitted again
            left = next((one.task for one, _ in running.calls.values() if not self._offered(one.task)), None)
            since = math.inf if left is None else min(since, time.monotonic())
            if left is not None and time.monotonic() - since > patience():
                raise _without_resource(left) if self._threads else without_workers(self._address)

    def _ask(self) -> None:
        """Learn which workers there are; raise ``ProcessFailedError`` if no scheduler answers in time."""
        end = time.monotonic() + patience()
        while self._client.status in ("running", "connecting") and time.monotonic() < end:
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

    def _submit(self, submitted: _Submitted, running: _Running) -> None:
        task = submitted.task
        contents = contents_of(task)
        digests = {name: sha256(content) for name, content in contents.items()}
        # ``bytes`` returns its argument: a task that the scheduler can repeat, which scattered data is not. It is sent
        # again for another try, because a copy on a worker may be what was damaged.
        blobs = [self._blob(f"file-{digest}-{submitted.tries}", contents[name]) for name, digest in digests.items()]
        # Not allow_other_workers: Dask would let a worker steal the task that has just failed on it.
        only = frozenset(self._threads) - submitted.avoid if submitted.avoid else frozenset()
        future = self._client.submit(
            run_task,
            task.function,
            packed(task.argument, task.root),
            self._versions,
            [*digests.items()],
            *blobs,
            key=f"{task.key}-{next(self._number)}",
            resources=dict(task.resources) or None,
            workers=[*only] or None,
        )
        running.add(replace(submitted, only=only), future, self._client)

    def _blob(self, key: str, content: bytes) -> Any:
        """Return the future of a file; the last ones are kept, because models are compiled for several targets."""
        blob = self._blobs.pop(key, None)
        if blob is None or blob.status not in ("pending", "finished"):
            blob = self._client.submit(bytes, content, key=key, pure=True)
        self._blobs[key] = blob
        if len(self._blobs) > _KEPT_FILES:
            del self._blobs[next(iter(self._blobs))]
        return blob

    def _outcome(self, submitted: _Submitted, call: Future[Any]) -> FarmResult | MlfError | _Submitted:
        """Return the result of a task that has ended, or the task again if it is tried once more."""
        again = submitted.tries + 1 < _TRIES
        try:
            worker, seconds, returned = call.result()
        except distributed.KilledWorker as error:
            self.check_workers()  # one that lacks mlfbuild dies of each task
            return _lost(submitted.task, f"workers died while it ran, the last at {error.last_worker.address}")
        except Exception as error:  # noqa: BLE001 - whatever Dask raises: cancelled by a restart, a connection that ended
            self._ask()
            if not isinstance(error, (OSError, distributed.CancelledError)):
                self.check_workers()
            return submitted.again() if again else _lost(submitted.task, f"{type(error).__name__}: {first_line(error)}")
        if isinstance(returned, str):
            raise RuntimeError(f"{submitted.task.title} on worker {worker}:\n{returned}")  # a defect of mlfbuild
        if isinstance(returned, MlfError):
            if isinstance(returned, StorageError) or returned.code == "farm-input-damaged":
                return submitted.again(worker) if again else returned.within(f"worker {worker}")
            return returned.within(f"worker {worker}") if returned.code == "farm-worker-differs" else returned
        damaged = [name for name, (digest, content) in returned.items() if sha256(content) != digest]
        if damaged and again:
            return submitted.again(worker)
        if damaged:
            return _lost(submitted.task, f"{listed(damaged)} from {worker} does not match its SHA-256")
        return FarmResult({name: content for name, (_, content) in returned.items()}, worker, seconds)


class _Running:
    """The tasks of a run that are submitted, and the keys of those that have ended."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[_Submitted, Future[Any]]] = {}
        self.ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def add(self, submitted: _Submitted, future: Any, client: Any) -> None:
        """Fetch the result of ``future`` when there is one.

        Not by ``distributed.as_completed``, which never yields a future whose scheduler ends while it is fetched.
        """

        async def fetched() -> Any:
            return await client.gather(future)

        call = asyncio.run_coroutine_threadsafe(fetched(), client.loop.asyncio_loop)
        self.calls[future.key] = submitted, call
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
