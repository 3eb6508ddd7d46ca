"""Compilations that another machine can make: tasks of a farm from jobs, and what a worker does with them.

Only the native compiler's jobs travel: they are a request and files. Programs of other compilers need their own
installation and folder, and bundled libraries a checkout; they are compiled here. So are copies and trees, which take
less time than sending them.
"""

from __future__ import annotations

from mlfbuild.archive import EPOCH
from mlfbuild.core import make_folder, read_bytes
from mlfbuild.farm import FarmTask
from mlfbuild.jobs.actions import Action
from mlfbuild.jobs.compilation import compile_model
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.native import SourceFiles

ARCHIVE = "archive.tar"
"""The output of a compilation, for workers and in the cache."""


def can_travel(job: CompileJob) -> bool:
    """Return whether the job's model can be compiled by a worker."""
    # A worker has its own environment, and would date the archive otherwise.
    return job.compiler == "native" and not job.bundles and EPOCH not in job.named_settings()


def compile_task(job: CompileJob, action: Action) -> FarmTask:
    """Return the task that compiles the job's model, which is ``action``; raises as ``SourceFiles.weights``."""
    source = job.request.source
    files = [source, *SourceFiles(source).weights.values()]
    return FarmTask(action.key, f"compile {job.title}", f"{__name__}:compile_here", job, source.parent, files)


def compile_here(job: CompileJob) -> dict[str, bytes]:
    """Compile the model of ``job``, which has travelled to this worker; return its archive."""
    make_folder(job.archive.parent)
    compile_model(job)
    return {ARCHIVE: read_bytes(job.archive, "archive")}
