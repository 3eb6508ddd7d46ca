"""Find out what models need of the memories of a target, before they are compiled, to divide these among them.

A need is computed from the model file by planning its memory once, in a fraction of a second, and kept in the user's
cache by the file and the settings that it depends on. New weights of a model are planned again, with the same result,
so that the requests of other models stay the same, and so do their archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.core import MlfError, cached_text, read_bytes
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.library import CompileRequest

_UNKNOWN = "unknown"


def needs_of(jobs: Mapping[str, CompileJob]) -> Mapping[str, int | None]:
    """Return the bytes that each model needs in a single memory; ``None`` if only the build can know it.

    ``jobs`` are those of native models, by name, whose memories need not be those that they get.
    """
    return {name: _need(job) for name, job in jobs.items()}


def _need(job: CompileJob) -> int | None:
    if job.quantize is not None or job.request.npu is not None:
        return None
    found = cached_text(_content(job), lambda: _computed(job.request))
    return None if found == _UNKNOWN else int(found)


def _content(job: CompileJob) -> Iterator[bytes]:
    yield b"needs of memory"
    yield job.settings().encode()
    try:
        yield read_bytes(job.request.source, "model file")
    except MlfError:
        yield b""


def _computed(request: CompileRequest) -> str:
    from mlfbuild.native import arena_need

    try:
        return str(arena_need(request))
    except MlfError:
        return _UNKNOWN  # compiling the model reports it
