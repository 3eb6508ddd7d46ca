"""Compile models on a farm: tasks of jobs, and archives of their results.

Only the native compiler's jobs travel: they are a request and files. Programs of other compilers need their own
installation and folder, and bundled libraries a checkout; they are compiled here. So are copies and trees, which take
less time than sending them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import MlfError, make_folder, read_bytes, write_atomic
from mlfbuild.farm import Farm, FarmResult, FarmTask
from mlfbuild.jobs.actions import COMPILED
from mlfbuild.jobs.compilation import compile_model
from mlfbuild.jobs.configure_time import SharedArchive
from mlfbuild.jobs.locks import trees_locked
from mlfbuild.jobs.model_builds import archive_is_known, compile_action, least_ram, record_made
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.jobs.progress import Progress, Task, raise_first
from mlfbuild.native import SourceFiles

_ARCHIVE = "archive.tar"


def can_travel(job: CompileJob) -> bool:
    """Return whether the job's model can be compiled by a worker."""
    return job.compiler == "native" and job.request.program is None and not job.bundles


def compile_task(job: CompileJob) -> FarmTask:
    """Return the task that compiles the job's model; raises as ``compile_action``."""
    source = job.request.source
    weights = SourceFiles(source).weights.values()
    files = {source.name: source, **{path.relative_to(source.parent).as_posix(): path for path in weights}}
    # The worker has other paths, and none of this machine's may be in what it makes.
    request = replace(job.request, source=Path(source.name))
    travelling = replace(job, request=request, archive=Path(_ARCHIVE), tree=Path("tree"))
    action = compile_action(job)
    return FarmTask(action.key, f"compile {job.title}", f"{__name__}:compile_here", travelling, files)


def compile_here(job: CompileJob, folder: Path) -> dict[str, bytes]:
    """Compile the model of ``job``, a job of ``compile_task``, in ``folder`` on a worker; return its archive."""
    request = replace(job.request, source=folder / job.request.source)
    archive = folder / "out" / _ARCHIVE
    make_folder(archive.parent)
    compile_model(replace(job, request=request, archive=archive))
    return {_ARCHIVE: read_bytes(archive, "archive")}


def make_on_farm(farm: Farm, groups: Sequence[SharedArchive], watch: Progress) -> None:
    """Compile on ``farm`` one archive for each of ``groups`` whose job can travel and that is nowhere here yet.

    Archives are written with their records, so that a build then finds them up to date. Raises the first error in the
    order of the groups, after all tasks have ended; archives that were made stay.
    """
    tasks: dict[str, tuple[int, CompileJob]] = {}

    def sent() -> Iterator[FarmTask]:
        for number, group in enumerate(groups):
            job = least_ram(group.jobs)
            if can_travel(job) and not archive_is_known(group.jobs, group.lenders):
                task = compile_task(job)
                tasks[task.key] = number, job
                watch.expect(1)
                watch.start(_shown(job))
                yield task

    errors: dict[int, MlfError] = {}
    for task, result in farm.run(sent()):
        number, job = tasks[task.key]
        if isinstance(result, MlfError):
            errors[number] = result
            watch.fail(_shown(job))
        else:
            _keep(job, result)
            watch.finish(_shown(job), f"compiled on {result.worker}")
    raise_first(errors, watch)


def _shown(job: CompileJob) -> Task:
    return Task("compile", job.title, job.target, model=job.model)


def _keep(job: CompileJob, result: FarmResult) -> None:
    outputs: Mapping[str, bytes] = result.outputs
    with trees_locked([job]):
        write_atomic(job.archive, outputs[_ARCHIVE])
        record_made(job, compile_action(job), COMPILED, result.seconds, result.worker)
