"""The input files of a model's archive, which are compared by content.

An entry of ``inputs`` in the project file is a file, a folder with everything below it, or a pattern (``**`` matches
any folders). In folders and patterns, names that begin with a dot and ``__pycache__`` are ignored.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.core import (
    Mistake,
    UsageError,
    file_sha256,
    folders_of_pattern,
    is_pattern,
    matching_files,
    open_binary,
    real_place,
    sha256,
    signature_path,
    visible_files,
    walk_visible,
)
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.library import CompilerProgram
from mlfbuild.native import SourceFiles
from mlfbuild.project import KeyPath, Project


def read_files(job: CompileJob) -> list[Path]:
    """Return the model file of ``job``, the files with its weights, those that its program reads, and its signature.

    For a model that the build quantises, this is the float network, with the data that calibrate it. Raises
    ``InputFileError`` if a file with weights is missing or outside of the model's folder.
    """
    source, step = job.request.source, job.quantize
    files = [source, *SourceFiles(source).weights.values()] if step is None else step.reads
    npu = job.request.npu
    config = [] if npu is None or npu.config is None else [npu.config]
    return list(dict.fromkeys([*files, *config, *_inputs(job.request.program), *trust_files(job).values()]))


def trust_files(job: CompileJob) -> dict[str, Path]:
    """Return the files that decide whether the source of ``job`` is trusted, by what they are; none without ``trust``.

    They decide no byte of the archive, but an archive whose signature is no longer accepted is out of date.
    """
    request = job.request
    if request.trust is None:
        return {}
    return {"signature": signature_path(request.source), "allowed signers": request.trust.signers}


def watched_inputs(job: CompileJob) -> list[Path]:
    """Return the files and folders whose change can give the archive other files; none if these are always the same.

    Folders change if a file is added or removed.
    """
    if job.request.program is not None:
        return [*read_files(job), *_folders(job.request.program)]
    if job.request.npu is not None:
        return read_files(job)
    return [job.request.source, *trust_files(job).values()] if job.compiler == "archive" else []


def inputs_hash(program: CompilerProgram) -> str:
    """Return one hash of names and contents of all inputs; raises ``InputFileError``."""
    return sha256([f"{name}\0{digest}\n".encode() for name, digest in input_digests(program).items()])


def input_digests(program: CompilerProgram) -> dict[str, str]:
    """Return the SHA-256 of each input by its path from the program's folder; raises ``InputFileError``."""
    digests = {}
    for path in _inputs(program):
        with open_binary(path, "input") as file:
            # Relative and with forward slashes, so that all checkouts and systems have the same names.
            digests[Path(os.path.relpath(path, program.folder)).as_posix()] = file_sha256(file)
    return digests


def input_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the place and the mistake of every entry of ``inputs`` that matches no file."""
    for model in project.models.values():
        for index, entry in enumerate(model.program.inputs if model.program else ()):
            if next(_entry(entry, project.root), None) is None:
                kind = "matches no file" if glob.has_magic(entry) else "no such file, and no folder with files"
                mistake = Mistake("no-input-file", reason=f"{project.root / entry}: {kind}", hint="correct the path")
                yield ("models", model.name, "inputs", index), mistake


def check_inputs(job: CompileJob) -> None:
    """Raise ``UsageError`` if ``job`` reads files that the build writes, because it would never be up to date."""
    program = job.request.program
    if program is None:
        return
    built = real_place(job.archive.parent)
    for entry in program.inputs:
        place = real_place(program.folder / entry)
        files = _entry(entry, program.folder) if glob.has_magic(entry) else ()
        # Otherwise the archive would be among its inputs, and out of date as soon as it is written.
        if place in {built, *built.parents} or any(built in real_place(path).parents for path in (place, *files)):
            raise UsageError(
                "inputs-in-build-folder",
                place=f"model {job.model!r}: inputs",
                reason=f"{entry!r} contains {job.archive.parent}, where the build writes",
                hint="name only the files that the command reads",
            )


def _inputs(program: CompilerProgram | None) -> list[Path]:
    if program is None:
        return []
    return sorted({path for entry in program.inputs for path in _entry(entry, program.folder)})


def _entry(entry: str, folder: Path) -> Iterator[Path]:
    path = folder / entry
    if path.is_dir():
        yield from visible_files(path)
    elif is_pattern(entry, folder):
        yield from matching_files(entry, folder)
    else:
        yield from [path] if path.is_file() else []


def _folders(program: CompilerProgram) -> Iterator[Path]:
    """Yield every folder in which a new file would be an input."""
    for entry in program.inputs:
        path = program.folder / entry
        if path.is_dir():
            yield from (inside for inside, _ in walk_visible(path))
        elif is_pattern(entry, program.folder):
            yield from folders_of_pattern(entry, program.folder)
