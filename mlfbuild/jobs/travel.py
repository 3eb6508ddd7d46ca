"""Compilations that another machine can make: tasks of a farm from jobs, and what a worker does with them.

Jobs of the native compiler travel: they are a request and files. So do those of a ``command`` whose ``inputs`` are
listed, which caches share as well, and whose program is the same file on the worker. TVM needs its own installation,
and bundled libraries a checkout; they are compiled here. So are copies and trees, which take less time than sending
them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mlfbuild.archive import EPOCH
from mlfbuild.core import MlfError, StorageError, make_folder, read_bytes
from mlfbuild.farm import FarmTask
from mlfbuild.jobs.actions import Action, hash_of
from mlfbuild.jobs.compilation import compile_model
from mlfbuild.jobs.inputs import read_files
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.library import CompilerProgram

ARCHIVE = "archive.tar"
"""The output of a compilation, for workers and in the cache."""
REASON = "reason.txt"
"""The only output of a task that a worker leaves to the machine that asks: why."""


def stays(job: CompileJob) -> str:
    """Return why the job's model is compiled by no worker; empty if it may travel."""
    if EPOCH in job.named_settings():
        return f"{EPOCH} is set"  # a worker has its own environment, and would date the archive otherwise
    if job.bundles:
        return "it may bundle libraries of this machine"
    if job.request.npu is not None:
        return "Vela runs on this machine"
    if job.compiler == "native":
        return ""
    program = job.request.program
    if job.compiler != "command" or program is None:
        return f"compiler {job.compiler} runs on this machine"
    if not program.inputs:
        return "its inputs are not listed"
    files = read_files(job)
    outside = next((path for path in files if not path.absolute().is_relative_to(program.folder.absolute())), None)
    if outside is not None:
        return f"{outside} is outside of the project's folder"
    own = _is_own(program) and _place(program).absolute() not in {path.absolute() for path in files}
    return f"its program {program.command[0]} is not among its inputs" if own else ""


def compile_task(job: CompileJob, action: Action) -> FarmTask:
    """Return the task that compiles the job's model, which is ``action``; raises as ``read_files``."""
    program = job.request.program
    root = job.request.source.parent if program is None else program.folder
    argument = job, "" if program is None else hash_of(_place(program))
    return FarmTask(action.key, f"compile {job.title}", f"{__name__}:compile_here", argument, root, read_files(job))


def compile_here(argument: tuple[CompileJob, str]) -> dict[str, bytes]:
    """Compile the model of a job that has travelled to this worker; return its archive, or only the reason why not.

    The second part of ``argument`` is the SHA-256 of the job's program.
    """
    job, digest = argument
    program = job.request.program
    make_folder(job.archive.parent)
    if program is None:
        compile_model(job)
        return {ARCHIVE: read_bytes(job.archive, "archive")}
    if hash_of(_place(program)) != digest:
        return {REASON: f"{program.command[0]} is another file on the worker".encode()}
    if _is_own(program):
        _place(program).chmod(0o755)
    try:
        compile_model(job)
    except StorageError:
        raise  # of this worker: another one tries
    except MlfError as error:  # compiling here reports it
        return {REASON: str(error).encode(errors="replace")}
    content = read_bytes(job.archive, "archive")
    named = os.fsencode(program.folder.absolute().parent) in content
    return {REASON: b"the archive names the folder in which it was made"} if named else {ARCHIVE: content}


def _is_own(program: CompilerProgram) -> bool:
    """Return whether the command's program is a file of the project."""
    return os.sep in program.command[0] and not Path(program.command[0]).is_absolute()


def _place(program: CompilerProgram) -> Path:
    word = program.command[0]
    return program.folder / word if os.sep in word else Path(shutil.which(word) or word)
