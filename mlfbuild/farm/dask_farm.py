"""The client of a Dask cluster: submit tasks, few at a time, and yield what came back and was checked."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import logging
import math
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlfbuild.core import (
    STOP_SIGNALS,
    MlfError,
    ProcessFailedError,
    StorageError,
    lazy_module,
    listed,
    read_bytes,
    require_extra,
    sha256,
    signals_masked,
    stops_held,
)
from mlfbuild.farm.paths import own_place, packed, place_in_folder
from mlfbuild.farm.task import FarmResult, FarmSettings, FarmTask
from mlfbuild.farm.worker import check_versions, program_versions, run_task

dask, distributed = lazy_module("dask"), lazy_module("distributed")  # importing them takes a second

_lock = threading.Lock()

_AHEAD = 4
"""Tasks that are submitted for each thread of the cluster: enough that none waits, few enough to hold their inputs."""
_TRIES = 3
"""How often a task is submitted when workers or the scheduler are lost, disks are full, or content is damaged."""
_WAIT_SECONDS = 30
"""How long to wait for a scheduler, for its first worker, and after a restart."""
_ASK_SECONDS = 1
_LOCAL = {
    # A worker that is stopped sends no heartbeat. Dask's five minutes are for networks, not for processes here.
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.worker.daemon": True,
    "distributed.admin.system-monitor.gil.enabled": False,
}


@contextlib.contextmanager
def open_farm(settings: FarmSettings, versions: Mapping[str, str]) -> Iterator[Farm]:
    """Connect to the cluster of ``settings``, or start one on this machine, for the time of the block.

    ``versions`` are program -> version as ``program_versions`` returns them here; workers must have the same. Raises
    ``ToolNotFoundError`` if Dask is missing, and ``ProcessFailedError`` if the scheduler does not answer, has no
    worker, or a worker has another version.
    """
    require_extra("distributed", settings.scheduler or "dask", "a farm")
    # Losses of workers are handled here; Dask would print a line, or a traceback, for each.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        address: Any = settings.scheduler
        if not address:
            stack.enter_context(dask.config.set(_LOCAL))
            # Ctrl-C reaches the whole process group: this process handles it and ends the cluster.
            with stops_held(), signals_masked("block", [one for one in STOP_SIGNALS if one != signal.SIGTERM]):
                cluster = distributed.LocalCluster(
                    n_workers=settings.workers,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    scheduler_kwargs={"dashboard": False},
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )
            address = stack.enter_context(cluster)
        try:
            client = stack.enter_context(distributed.Client(address, timeout=_WAIT_SECONDS, set_as_default=False))
            client.wait_for_workers(1, timeout=_WAIT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            raise _unreachable(settings.scheduler, error) from None
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


def _unreachable(address: str, error: Exception) -> ProcessFailedError:
    no_worker = isinstance(error, TimeoutError) and "worker" in str(error)
    return ProcessFailedError(
        "farm-without-workers" if no_worker else "farm-unreachable",
        place=address or "dask",
        reason=f"no worker within {_WAIT_SECONDS} s" if no_worker else f"no scheduler of Dask answers: {error}",
        hint="start workers with `dask worker ADDRESS`" if no_worker else "start it with `dask scheduler`",
    )


@dataclass(frozen=True)
class _Submitted:
    task: FarmTask
    tries: int
    avoid: frozenset[str]
    """Workers that it must not run on again."""


class Farm:
    """A connected cluster."""

    def __init__(self, client: Any, versions: Mapping[str, str], address: str) -> None:
        self._client = client
        self._versions = dict(versions)
        self._address = address
        self._number = itertools.count()
        self._asked = -math.inf
        self._threads = 0

    def check_workers(self) -> None:
        """Raise ``ProcessFailedError`` if a worker has no mlfbuild, or another version of a program than this machine.

        Workers that come later are checked by the tasks that they run.
        """
        answers = self._client.run(check_versions, self._versions, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, MlfError):
                reason = f"worker {worker}: {answer.reason}"
                raise ProcessFailedError(answer.code, place=answer.place, reason=reason, hint=answer.hint)
            if isinstance(answer, Exception):
                raise ProcessFailedError(
                    "farm-worker-differs",
                    place="farm",
                    reason=f"worker {worker} cannot import this mlfbuild: {answer}",
                    hint="install the same version on all workers, and start them again",
                )

    def run(self, tasks: Iterable[FarmTask]) -> Iterator[tuple[FarmTask, FarmResult | MlfError]]:
        """Yield each task with its result, or with the reason why it has none, as they end.

        Raises ``ProcessFailedError`` if the scheduler is lost for good; what was yielded is right. Raises
        ``InputFileError`` if a file of a task cannot be read.
        """
        waiting = iter(tasks)
        running: dict[str, _Submitted] = {}
        results = distributed.as_completed(loop=self._client.loop)
        try:
            self._fill(waiting, running, results)
            while running:
                future = next(results)
                submitted = running.pop(future.key)
                ended = self._outcome(future, submitted)
                if isinstance(ended, _Submitted):
                    self._submit(ended, running, results)
                else:
                    yield submitted.task, ended
                self._fill(waiting, running, results)
        finally:
            for future in [*results.futures]:
                future.cancel()

    def _fill(self, waiting: Iterator[FarmTask], running: dict[str, _Submitted], results: Any) -> None:
        if time.monotonic() - self._asked > _ASK_SECONDS:  # workers come and go, but asking takes as long as a task
            self._asked = time.monotonic()
            self._threads = sum(worker["nthreads"] for worker in self.workers().values())
        for task in itertools.islice(waiting, max(0, _AHEAD * max(1, self._threads) - len(running))):
            self._check_resources(task)
            self._submit(_Submitted(task, 0, frozenset()), running, results)

    def workers(self) -> Mapping[str, Any]:
        """Return what Dask knows of each worker, by its address."""
        workers: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return workers

    def _check_resources(self, task: FarmTask) -> None:
        for name, count in task.resources.items():
            if not any(worker["resources"].get(name, 0) >= count for worker in self.workers().values()):
                raise ProcessFailedError(
                    "farm-without-resource",
                    place=task.title,
                    reason=f"no worker of the farm offers {name}",
                    hint=f"start one beside the board with `dask worker ADDRESS --resources {name}={count}`",
                )

    def _submit(self, submitted: _Submitted, running: dict[str, _Submitted], results: Any) -> None:
        task = submitted.task
        files = [path for path in task.files if own_place(path) is None]  # every worker has mlfbuild's own
        contents = {place_in_folder(path, task.root): read_bytes(path, "input") for path in files}
        digests = {name: sha256(content) for name, content in contents.items()}
        # ``bytes`` returns its argument: a task that the scheduler can repeat, which scattered data is not.
        blobs = [
            self._client.submit(bytes, contents[name], key=f"file-{digest}", pure=True)
            for name, digest in digests.items()
        ]
        others = [address for address in self.workers() if address not in submitted.avoid]
        future = self._client.submit(
            run_task,
            task.function,
            packed(task.argument, task.root),
            self._versions,
            [*digests.items()],
            *blobs,
            key=f"{task.key}-{next(self._number)}",
            resources=dict(task.resources) or None,
            workers=others if submitted.avoid and others else None,
        )
        running[future.key] = submitted
        results.add(future)

    def _outcome(self, future: Any, submitted: _Submitted) -> FarmResult | MlfError | _Submitted:
        """Return the result of a task that has ended, or the task again if it is tried once more."""
        again = submitted.tries + 1 < _TRIES
        try:
            worker, seconds, returned = future.result(timeout=_WAIT_SECONDS)
        except distributed.KilledWorker as error:
            return _lost(submitted.task, f"workers died while it ran, the last at {error.last_worker.address}")
        except Exception as error:  # noqa: BLE001 - whatever Dask raises: cancelled by a restart, a connection that ended
            if again and self._is_connected():
                return _Submitted(submitted.task, submitted.tries + 1, submitted.avoid)
            return _lost(submitted.task, f"{type(error).__name__}: {error}")
        if isinstance(returned, StorageError) and again:
            return _Submitted(submitted.task, submitted.tries + 1, submitted.avoid | {worker})
        if isinstance(returned, MlfError):
            return returned
        damaged = [name for name, (digest, content) in returned.items() if sha256(content) != digest]
        if damaged and again:
            return _Submitted(submitted.task, submitted.tries + 1, submitted.avoid | {worker})
        if damaged:
            return _lost(submitted.task, f"{listed(damaged)} from {worker} do not match their SHA-256")
        return FarmResult({name: content for name, (_, content) in returned.items()}, worker, seconds)

    def _is_connected(self) -> bool:
        """Wait for the scheduler, which may have been restarted, and for a worker; return whether both are there."""
        try:
            self._client.wait_for_workers(1, timeout=_WAIT_SECONDS)
        except (OSError, TimeoutError, ValueError):
            raise _unreachable(self._address, OSError("the connection was lost")) from None
        return True


def _lost(task: FarmTask, reason: str) -> ProcessFailedError:
    return ProcessFailedError(
        "farm-task-lost",
        place=task.title,
        reason=f"has no result: {reason}",
        hint="run the command again, which repeats nothing that is done",
    )
