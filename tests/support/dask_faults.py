"""A preload script of `dask worker`: the worker fails in the way that $FAULT names, and leaves a mark in $MARKS.

`fetch`, `compile`, `result`: the first of the workers with this fault that fetches an input, compiles, or is asked for
a result kills itself; `-always` after it: each of them does. `hold` waits with compilations for the file `go`, and
`hold-result` with results. `damage` and `damage-input` change bytes; `lie` changes an archive and its digest.
"""

import asyncio
import hashlib
import os
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mlfbuild.farm import worker as tasks
from mlfbuild.jobs import travel

_MARKS, _FAULT = Path(os.environ["MARKS"]), os.environ["FAULT"]
_PHASE, _ALWAYS, _ = _FAULT.partition("-always")


def _mark(name: str) -> None:
    number, _ = tempfile.mkstemp(".mark", f"{name}.", _MARKS)
    os.close(number)


def _first(name: str) -> bool:
    """Return whether no process has been here before."""
    try:
        (_MARKS / f"{name}.first").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _die(phase: str) -> None:
    if phase == _PHASE and (_ALWAYS or _first(phase)):
        _mark(phase)
        os.kill(os.getpid(), signal.SIGKILL)


def _gone() -> bool:
    return (_MARKS / "go").exists()


# Dask imports the script twice, of which the second is a copy of the file.
_compile = getattr(travel.compile_here, "original", travel.compile_here)
_run = getattr(tasks.run_task, "original", tasks.run_task)


def _compile_here(job: Any) -> dict[str, bytes]:
    _die("compile")
    if _FAULT == "hold":
        _mark("hold")
        while not _gone():
            time.sleep(0.05)
    made = _compile(job)
    _mark("compiled")
    return {name: content[:-1] + b"x" for name, content in made.items()} if _FAULT == "lie" else made


def run_task(function: str, argument: bytes, versions: Any, files: Any, *contents: bytes) -> Any:
    """Stand for ``mlfbuild.farm.worker.run_task`` of this worker."""
    if _FAULT == "damage-input":
        contents = tuple(content + b"x" for content in contents)
    address, seconds, returned = _run(function, argument, versions, files, *contents)
    if _FAULT == "damage" and isinstance(returned, dict):
        _mark("damage")
        returned = {
            name: (hashlib.sha256(content).hexdigest(), content + b"x") for name, (_, content) in returned.items()
        }
    return address, seconds, returned


_compile_here.original, run_task.original = _compile, _run  # type: ignore[attr-defined]
travel.compile_here, tasks.run_task = _compile_here, run_task


async def dask_setup(worker: Any) -> None:
    """Set the faults of the worker's own methods."""
    get_data: Callable[..., Awaitable[Any]] = worker.handlers["get_data"]
    gather_dep: Callable[..., Awaitable[Any]] = worker.gather_dep
    execute: Callable[..., Awaitable[Any]] = worker.execute

    async def sent(comm: Any, keys: Any, *arguments: Any, **options: Any) -> Any:
        if any("file-" not in str(key) for key in keys):
            _mark("asked")
            _die("result")
            while _FAULT == "hold-result" and not _gone():
                await asyncio.sleep(0.05)
        return await get_data(comm, keys, *arguments, **options)

    async def gathered(*arguments: Any, **options: Any) -> Any:
        _die("fetch")
        return await gather_dep(*arguments, **options)

    async def executed(key: Any, **options: Any) -> Any:
        if str(key).startswith("file-"):  # an input that comes from the scheduler; `gathered` is one from a worker
            _die("fetch")
        return await execute(key, **options)

    worker.handlers["get_data"], worker.gather_dep, worker.execute = sent, gathered, executed
