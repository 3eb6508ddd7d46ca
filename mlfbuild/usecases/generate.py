"""One model for another build system, which decides when: made if need be, with a stamp and a depfile to decide by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mlfbuild.build import CompileJob, compile_if_needed, read_files, unpack_job
from mlfbuild.build.tree import recorded_files
from mlfbuild.core import UsageError, write_atomic
from mlfbuild.usecases.build import ModelResult


def generate_model(
    job: CompileJob,
    stamp: Path | None = None,
    depfile: Path | None = None,
    depends: str = "model",
    tree_stamp: Path | None = None,
) -> ModelResult:
    """Compile the job's model unless its archive is current, and put its tree right; good files keep their time.

    Then write ``stamp``, anew each time, and ``depfile``, which says in Make's words when ``stamp`` is out of date:
    with ``depends`` "model" by what the archive is made from, with "tree" by the tree's own files, so that the build
    system notices one that was edited or deleted. ``tree_stamp`` is the stamp of a step with ``depends`` "tree" that
    follows this one: ``<tree_stamp>.d`` is its depfile, and ``<tree_stamp>.fresh`` says that the tree is right.

    Raises what compiling and unpacking do, and ``UsageError`` for a depfile without a stamp.
    """
    if depfile is not None and stamp is None:
        raise UsageError("--depfile: is about a stamp; add --stamp")
    compiled = compile_if_needed(job)
    written = len(unpack_job(job).written)
    if depfile is not None:
        files = recorded_files(job.tree) if depends == "tree" else _made_from(job)
        write_atomic(depfile, _rule(stamp or depfile, files).encode())
    if tree_stamp is not None:
        write_atomic(_beside(tree_stamp, "d"), _rule(tree_stamp, recorded_files(job.tree)).encode())
        write_atomic(_beside(tree_stamp, "fresh"), b"")
    if stamp is not None:
        write_atomic(stamp, b"")
    return ModelResult(job, compiled, written)


def _made_from(job: CompileJob) -> list[Path]:
    """Return what the archive is made from, and itself where it may have been made when the build was configured."""
    return read_files(job) + ([] if job.request.program is None else [job.archive])


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def _rule(target: Path, files: Iterable[Path]) -> str:
    """Return a rule of Make; build systems read depfiles with absolute paths wherever they run."""
    return f"{_escaped(target)}: {' '.join(_escaped(file) for file in files)}\n"


def _escaped(path: Path) -> str:
    text = path.absolute().as_posix()
    return text.replace(" ", "\\ ").replace("#", "\\#").replace("$", "$$")
