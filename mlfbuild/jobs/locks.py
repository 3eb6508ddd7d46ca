"""Builds of one project at the same time.

Three kinds of lock, all in the build folder:

- that of the folder, which the outermost ``mlfbuild`` or ``scons`` process has until it ends (``folder_locked``),
- one for the archive and tree of each model of a target, one for the quantised file of a model, and
- one for the common files of a target: these for the time of a step (``trees_locked``, ``step_locked``).

A tree that belongs to no project has a lock beside it (``tree_locked``). Steps of Ninja and Make, ``mlfbuild generate``
and ``mlfbuild plan``, take only the locks of the trees that they write. If they took the folder's lock, they could not
run in parallel, and a build that has it waits for Ninja, so that both would wait forever if a step did not recognise
that build as its own (``LOCKED_VARIABLE``, ``is_ancestor``). For the same reason a build releases its tree locks before
it starts Ninja, whose steps take them. A process that has a tree's lock never waits for the lock of a build folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mlfbuild.core import ConflictError, is_ancestor, locked, real_place
from mlfbuild.jobs.model_job import CompileJob, TargetJob

LOCKED_VARIABLE = "MLFBUILD_LOCKED"
"""Environment variable with the build folders that an outer process has locked for its children."""

_UNPROTECTED = "this file system has no locks: run only one build at a time here"

Notify = Callable[[str], None]


@contextlib.contextmanager
def folder_locked(folder: Path, notify: Notify, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of the build folder during the ``with`` block, for this process and those that it starts there.

    The lock file is ``.mlfbuild.lock`` in the folder. If another build has it, ``notify`` is called with a sentence
    after a second, and the block waits; ``notify`` is also called if the file system has no locks, and the block then
    runs without one.

    Raises ``ConflictError`` instead of waiting unless ``wait``.
    """
    place = str(real_place(folder))
    # Programs that this process starts, such as CMake and then mlfbuild again, are part of the same build. Waiting for
    # the outer one would never end.
    held = [path for path in os.environ.get(LOCKED_VARIABLE, "").split(os.pathsep) if path]
    if place in held:
        yield
        return

    def busy(owner: int | None) -> bool:
        if owner is not None and is_ancestor(owner):  # SCons starts programs with another environment
            return False
        number = "" if owner is None else f" (process {owner})"
        if not wait:
            reason = f"another build is using this folder{number}"
            hint = "wait for it to end, or omit --no-wait (SCons: MLFNOWAIT)"
            raise ConflictError("build-folder-in-use", place=folder, reason=reason, hint=hint)
        notify(f"{folder}: waiting for another build{number}")
        return True

    # Most waits end within a second, and then need no message.
    patience = 1.0 if wait else 0.0
    with locked(folder / ".mlfbuild.lock", busy, patience, lambda: notify(f"{folder}: {_UNPROTECTED}")):
        # In the environment, because the programs that must know it are started by CMake, Ninja or SCons, not from
        # here.
        os.environ[LOCKED_VARIABLE] = os.pathsep.join([*held, place])
        try:
            yield
        finally:
            if held:
                os.environ[LOCKED_VARIABLE] = os.pathsep.join(held)
            else:
                del os.environ[LOCKED_VARIABLE]


@contextlib.contextmanager
def trees_locked(jobs: Sequence[CompileJob | TargetJob], notify: Notify = lambda _: None) -> Iterator[None]:
    """Hold the locks of the archives and trees of models, or of the common files of targets, during the block.

    The block waits for each lock without a limit, and ``notify`` is called with a sentence if it has to. Hold them only
    for the time of a step: Ninja's steps take the same locks.
    """
    with contextlib.ExitStack() as stack:
        for path in sorted({path for job in jobs for path in _lock_files(job)}):  # in one order, or two would deadlock
            stack.enter_context(step_locked(path, notify))
        yield


def tree_locked(folder: Path, notify: Notify) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of a tree that belongs to no project during the ``with`` block.

    The lock is beside the tree, not in it, so that it is not committed or removed with the tree.
    """
    return step_locked(folder.absolute().parent / f".mlfbuild.{folder.absolute().name}.lock", notify)


def step_locked(path: Path, notify: Notify) -> contextlib.AbstractContextManager[None]:
    """Hold the lock ``path`` during the ``with`` block, which waits for it without a limit.

    ``notify`` is called with a sentence if it has to wait.
    """

    def busy(owner: int | None) -> bool:
        notify(f"waiting for another build{'' if owner is None else f' (process {owner})'}")
        return True

    return locked(path, busy, unprotected=lambda: notify(f"{path.parent}: {_UNPROTECTED}"))


def _lock_files(job: CompileJob | TargetJob) -> Iterator[Path]:
    """Yield the lock, which is in the build folder.

    The folder of a tree may be one that the user commits, and a lock that comes and goes changes the time of a folder.
    """
    if isinstance(job, CompileJob):
        yield job.archive.parents[2] / f".mlfbuild.{job.target}.{job.model}.lock"
    else:
        yield from {model.archive.parents[2] / f".mlfbuild.{job.name}.lock" for model in (*job.models, *job.others)}
