"""Find out what models need of the memories of a target, before they are compiled, to divide these among them.

A need is computed from the model file by planning its memory once, in a fraction of a second, or read from an archive.
It is kept in the user's cache by the file and the settings that it depends on. New weights of a model are planned
again, with the same result, so that the requests of other models stay the same, and so do their archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.core import MlfError, cached_text, read_bytes
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.library import CompileRequest
from mlfbuild.library.cgen import aligned

_UNKNOWN = "unknown"


def needs_of(jobs: Mapping[str, CompileJob]) -> Mapping[str, int | None]:
    """Return the bytes that each model needs in a single memory; ``None`` if only the build can know it.

    ``jobs`` are those of models and archives, by name, whose memories need not be those that they get.
    """
    return {name: _need(job) for name, job in jobs.items()}


def _need(job: CompileJob) -> int | None:
    if job.quantize is not None or job.request.npu is not None:
        return None
    compute = _of_archive if job.compiler == "archive" else _computed
    found = cached_text(_content(job), lambda: compute(job.request))
    return None if found == _UNKNOWN else int(found)


def _content(job: CompileJob) -> Iterator[bytes]:
    yield b"needs of memory"
    yield job.settings().encode()
    try:
        yield read_bytes(job.request.source, "model file")
    except MlfError:
        yield b""


def _of_archive(request: CompileRequest) -> str:
    from mlfbuild.archive import open_archive
    from mlfbuild.executor import ram_size

    try:
        # Modules may run at the same time, and each has its own memory.
        return str(sum(aligned(ram_size(module)) for module in open_archive(request.source, request.trust).modules))
    except MlfError:
        return _UNKNOWN


def _computed(request: CompileRequest) -> str:
    from mlfbuild.native import arena_need

    try:
        return str(arena_need(request))
    except MlfError:
        return _UNKNOWN  # compiling the model reports it
