"""The code on a worker: check versions and inputs, call the task's function in its own folder, return bytes."""

from __future__ import annotations

import functools
import importlib
import pickle
import shutil
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlfbuild import __version__
from mlfbuild.core import (
    MlfError,
    ProcessFailedError,
    find_tool,
    package_fingerprint,
    read_bytes,
    run,
    sha256,
    storage_error,
)
from mlfbuild.farm.paths import own_place, packed, place_in_folder, unpacked
from mlfbuild.farm.task import FarmTask

Call = tuple[str, bytes, Sequence[tuple[str, str]]]
"""``module:name`` of a function, its argument (a value of ``packed``), and relative path and SHA-256 of each file."""
Outputs = dict[str, tuple[str, bytes]] | MlfError | str
"""Output name -> (SHA-256, content), the error of the task, or a traceback."""
Returned = tuple[str, float, Outputs]
"""Address of the worker, seconds, 0 for a task without outputs, and these."""
_SHOWN = 12
"""Digits of a hash in messages."""


def program_versions(programs: Sequence[str]) -> dict[str, str]:
    """Return the version of mlfbuild and of each of ``programs`` here: the first line of ``--version``, or ``missing``.

    mlfbuild's is its number and a part of the hash of its files, because checkouts of one number differ.
    """
    return {
        "mlfbuild": f"{__version__} ({package_fingerprint()[:_SHOWN]})",
        **{name: _version(name) for name in programs},
    }


@functools.cache  # a worker serves thousands of tasks
def _version(program: str) -> str:
    try:
        return run([find_tool(program), "--version"]).partition("\n")[0].strip()
    except MlfError:
        return "missing"


def run_tasks(batch: bytes, digests: Sequence[str], *contents: bytes) -> list[Returned]:
    """Call ``run_task`` for each task of ``batch``, one after the other.

    ``batch`` is a pickle of the versions of the caller, a ``Call`` for each task, and SHA-256 -> content of files;
    ``contents`` with ``digests`` are other files.
    """
    calls: Sequence[Call]
    versions, calls, carried = pickle.loads(batch)  # noqa: S301 - Dask unpickles what clients send anyway
    files = {**carried, **dict(zip(digests, contents, strict=True))}
    return [
        run_task(function, argument, versions, named, *(files[digest] for _, digest in named))
        for function, argument, named in calls
    ]


def run_task(
    function: str, argument: bytes, versions: Mapping[str, str], files: Sequence[tuple[str, str]], *contents: bytes
) -> Returned:
    """Call ``function`` (``module:name``) with ``argument``, a value of ``packed``, beside ``files`` in a folder.

    ``files`` has a relative path and a SHA-256 for each of ``contents``. ``versions`` are those of the caller. An
    ``MlfError`` is returned, and the traceback of a defect; what is raised is a loss, and the task is tried again.
    """
    from distributed import get_worker

    address = get_worker().address
    begin = time.monotonic()
    try:
        check_versions(versions)
        folder = Path(tempfile.mkdtemp(prefix="mlfbuild-task-"))
        try:
            outputs = _called(function, argument, folder, files, contents)
        finally:
            # A folder that cannot be removed is not a reason to lose the result.
            shutil.rmtree(folder, ignore_errors=True)
    except MlfError as error:
        return address, 0.0, error
    except OSError as error:
        return address, 0.0, storage_error(Path(error.filename or _temporary()), error)
    # No defect: another worker may have more memory.
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a defect, which another worker has as well
        return address, 0.0, traceback.format_exc()
    # 0 stands for a task without outputs.
    seconds = max(0.001, round(time.monotonic() - begin, 3))
    return address, seconds, {name: (sha256(content), content) for name, content in outputs.items()}


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:  # no file could be written to any folder for temporary files
        return "/tmp"  # noqa: S108 - a name in a message


def check_versions(versions: Mapping[str, str]) -> None:
    """Raise ``ProcessFailedError`` if a program here has another version than the one in ``versions``."""
    here = program_versions([name for name in versions if name != "mlfbuild"])
    for name, wanted in versions.items():
        if here[name] != wanted:
            raise ProcessFailedError(
                "farm-worker-differs",
                reason=f"has {name} {here[name]}, this machine {wanted}",
                hint="install the same version on all workers, and start them again",
            )


def contents_of(task: FarmTask) -> dict[str, bytes]:
    """Return place on the worker -> content of each file that ``task`` reads, without mlfbuild's own.

    Raises ``InputFileError``.
    """
    return {
        place_in_folder(path, task.root): read_bytes(path, "input") for path in task.files if own_place(path) is None
    }


def run_here(task: FarmTask, folder: Path) -> Mapping[str, bytes]:
    """Run ``task`` in this process as a worker would, with its files in ``folder``; return its outputs.

    Raises the errors of the task.
    """
    contents = contents_of(task)
    files = [(name, sha256(content)) for name, content in contents.items()]
    return _called(task.function, packed(task.argument, task.root), folder, files, [*contents.values()])


def _called(
    function: str, argument: bytes, folder: Path, files: Sequence[tuple[str, str]], contents: Sequence[bytes]
) -> Mapping[str, bytes]:
    _write_files(folder, files, contents)
    module, _, name = function.partition(":")
    outputs: Mapping[str, bytes] = getattr(importlib.import_module(module), name)(unpacked(argument, folder))
    return outputs


def _write_files(folder: Path, files: Sequence[tuple[str, str]], contents: Sequence[bytes]) -> None:
    for (name, digest), content in zip(files, contents, strict=True):
        if sha256(content) != digest:
            raise ProcessFailedError(
                "farm-input-damaged",
                place=name,
                reason=f"arrived with another SHA-256 than {digest[:_SHOWN]}",
                hint="run the command again",
            )
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
