"""Compile one model file into an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlfbuild.build import (
    Compiled,
    CompileJob,
    check_output,
    compile_job,
    compile_model,
    default_compiler,
    default_name,
    placement_of,
)
from mlfbuild.compilers import OptionValue


def file_job(
    source: Path,
    archive: Path,
    cpu: str,
    *,
    name: str = "",
    compiler: str = "",
    executor: str = "",
    python: str = "",
    options: Mapping[str, OptionValue] | None = None,
    places: Sequence[str] = (),
    extensions: Mapping[str, OptionValue] | None = None,
) -> CompileJob:
    """Return the job that compiles the file ``source`` into ``archive`` for ``cpu``.

    An empty ``name`` or ``compiler`` is derived from the file, an empty ``executor`` or ``python`` is the compiler's
    default. ``places`` are ``CLASS=SECTION`` words, and ``extensions`` are recorded in the archive. Raises
    ``UsageError`` for unknown or inconsistent values.
    """
    return compile_job(
        name=name or default_name(source),
        source=source,
        cpu=cpu,
        compiler=compiler or default_compiler(source),
        executor=executor or None,
        options=options or {},
        archive=archive,
        python=python or None,
        placement=placement_of(places),
        extensions=extensions,
    )


def compile_file(source: Path, archive: Path, cpu: str, **choices: Any) -> tuple[str, Compiled]:
    """Compile the file ``source`` into ``archive`` for ``cpu``; return the name of the model and its sizes in bytes.

    ``choices`` are the keywords of ``file_job``. Raises as ``file_job`` and ``build.compile_model``, and
    ``ConflictError`` if the output exists and is not an archive.
    """
    check_output(archive, source)
    job = file_job(source, archive, cpu, **choices)
    return job.model, compile_model(job)
