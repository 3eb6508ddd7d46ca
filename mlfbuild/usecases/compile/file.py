"""Compile one model file into an archive, an unpacked tree, or one C file with its header."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlfbuild import jobs
from mlfbuild.core import Trust, UsageError, write_atomic
from mlfbuild.jobs.tree import RECORD
from mlfbuild.library import OptionValue, chunks
from mlfbuild.usecases.unpack import unpack_file

_SEPARATORS = ("/", os.sep)
# So a file that is in the way is recognized without reading all of it, which may be of any size.
_NOTICE_BYTES = 1000
"""Bytes at the beginning of a generated file that contain its notice."""


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
    trust: Trust | None = None,
) -> jobs.CompileJob:
    """Return the job that compiles the file ``source`` into ``archive`` for ``cpu``.

    ``cpu`` is a name of ``mlfbuild boards``, or ``host``. An empty ``name`` or ``compiler`` is derived from the file,
    an empty ``executor`` or ``python`` is the compiler's default. ``places`` are ``CLASS=SECTION`` words, and
    ``extensions`` are recorded in the archive. ``trust`` must have signed a source that is an archive. Nothing is
    compiled yet::

        job = file_job(Path("kws.tflite"), Path("kws.tar"), "cortex-m4", places=["params=.ext"])

    Raises ``UsageError`` for unknown or inconsistent values.
    """
    job = jobs.compile_job(
        name=name or jobs.default_name(source),
        source=source,
        cpu=cpu,
        compiler=compiler or jobs.default_compiler(source),
        executor=executor or None,
        options=options or {},
        archive=archive,
        python=python or None,
        placement=jobs.placement_of(places),
        extensions=extensions,
    )
    return replace(job, request=replace(job.request, trust=trust)) if job.compiler == "archive" else job


@dataclass(frozen=True)
class CompiledFile:
    """The output of ``compile_file``."""

    model: str
    made: jobs.Compiled
    """Sizes in bytes; ``size`` is that of the archive, or of the files of C."""
    archive: Path | None = None
    tree: Path | None = None
    sources: tuple[Path, ...] = ()
    """The C file and its header."""


def compile_file(source: Path, output: str, cpu: str, **choices: Any) -> CompiledFile:
    """Compile the file ``source`` into ``output`` for ``cpu``.

    The name of ``output`` decides: ``kws.tar`` is the archive, ``kws/`` the unpacked tree, ``kws.c`` one C file, beside
    which its header ``tvmgen_<model>.h`` is written. ``choices`` are the keywords of ``file_job``. Raises as
    ``file_job`` and ``build.compile_model``, ``UsageError`` for other names and for what the output cannot hold, and
    ``ConflictError`` if the output exists and mlfbuild did not write it.
    """
    path, is_tree = Path(output), output.endswith(_SEPARATORS)
    if path.suffix == ".c" and not is_tree and not path.is_dir():
        return _compile_to_c(source, path, cpu, choices)
    # A folder with a record is a tree that mlfbuild wrote, even without a slash at the end of its name.
    if is_tree or (path / RECORD).is_file():
        # A tree is unpacked from an archive, so one is made where it disturbs no other file.
        with TemporaryDirectory() as folder:
            job = file_job(source, Path(folder) / "model.tar", cpu, **choices)
            made = jobs.compile_model(job)
            unpack_file(job.archive, path, places=choices.get("places", ()))
        return CompiledFile(job.model, made, tree=path)
    if path.suffix != ".tar":
        stem = (
            path / jobs.default_name(source)
            if path.is_dir()
            else path.with_name(path.name.partition(".")[0] or path.name)
        )
        raise UsageError(
            "output-kind-unknown",
            place=f"-o {output}",
            reason="is a folder" if path.is_dir() else "its name does not say what to write",
            hint=f"name an archive {stem}.tar, a folder {stem}/ or a C file {stem}.c",
        )
    jobs.check_output(path, source)
    job = file_job(source, path, cpu, **choices)
    return CompiledFile(job.model, jobs.compile_model(job), archive=path)


def _compile_to_c(source: Path, output: Path, cpu: str, choices: dict[str, Any]) -> CompiledFile:
    """Write the C file of the layout ``single-file`` and its header, as they are in the archive."""
    options = {"layout": "single-file", **(choices.pop("options", None) or {})}
    reason = next((text for wrong, text in _not_one_file(source, options, choices) if wrong), None)
    if reason is not None:
        raise UsageError(
            "not-one-c-file", place=f"-o {output}", reason=reason, hint=f"write a tree: -o {output.with_suffix('')}/"
        )
    job = file_job(source, output, cpu, options=options, **choices)
    library = jobs.compiled_library(job)
    (module,) = library.modules
    texts = {
        output if file.path.suffix == ".c" else output.with_name(file.path.name): file.content
        for file in module.codegen
    }
    # Both before the first is written: a header without its C file would be of no use.
    for path in texts:
        jobs.check_replaced(path, (source,), "file", "file that mlfbuild generated", _is_generated)
    for path, content in texts.items():
        write_atomic(path, chunks(content))
    size = sum(path.stat().st_size for path in texts)
    return CompiledFile(
        job.model, jobs.sizes(library, size), sources=tuple(sorted(texts, key=lambda path: path != output))
    )


def _not_one_file(
    source: Path, options: Mapping[str, OptionValue], choices: Mapping[str, Any]
) -> Iterator[tuple[bool, str]]:
    """Yield for each reason why a model is not one C file whether it applies."""
    compiler = choices.get("compiler") or jobs.default_compiler(source)
    yield compiler != "native", f"the compiler {compiler} writes several files"
    yield (
        choices.get("executor") == "graph",
        "the graph executor reads a graph and parameters from files beside the code",
    )
    yield options["layout"] != "single-file", "the option layout asks for several files"
    yield options.get("interface-api", "c") != "c", "packed functions need headers of TVM"
    yield bool(choices.get("extensions")), "C files record no extensions"


def _is_generated(path: Path) -> bool:
    with path.open("rb") as file:
        return b"Generated by mlfbuild" in file.read(_NOTICE_BYTES)
