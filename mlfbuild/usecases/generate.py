"""Make one model for another build system, with the stamp and the depfile that this system uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mlfbuild.core import UsageError, write_atomic
from mlfbuild.jobs import CompileJob, compile_if_needed, read_files, target_jobs, trees_locked, unpack_job
from mlfbuild.jobs.tree import recorded_files
from mlfbuild.project import Project
from mlfbuild.usecases.build import ModelResult


def chosen_model(
    project: Project,
    targets: Sequence[str],
    models: Sequence[str],
    build: Path | None = None,
    *,
    frozen: bool = False,
) -> CompileJob:
    """Return the job of the selected model and target, with the locked inputs if ``frozen``.

    Raises ``UsageError`` unless exactly one is selected, and as ``target_jobs`` and ``freeze_beforehand``.
    """
    jobs = [job for job in target_jobs(project, targets, models, build) if job.models]
    count = sum(len(job.models) for job in jobs)
    if count != 1:
        raise UsageError(
            "not-one-model",
            reason=f"generate makes one model for one target, and {count} are chosen",
            hint="choose it with --target and --model",
        )
    if frozen:  # the compiler was checked when CMake was configured
        from mlfbuild.usecases.lock.frozen import freeze_beforehand

        jobs = freeze_beforehand(project, jobs, toolchains=False)
    return jobs[0].models[0]


def generate_model(
    job: CompileJob,
    stamp: Path | None = None,
    depfile: Path | None = None,
    depends: str = "model",
    tree_stamp: Path | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> ModelResult:
    """Compile the job's model unless its archive is current, and restore its tree; correct files keep their time.

    Then write ``stamp``, each time, and ``depfile``, a rule of Make that makes ``stamp`` out of date: if ``depends`` is
    "model", when a file that the archive is made from changes; if it is "tree", when a file of the tree is edited or
    deleted. ``tree_stamp`` is the stamp of a following step with ``depends`` "tree": ``<tree_stamp>.d`` is its depfile,
    and the empty file ``<tree_stamp>.fresh`` says that the tree is correct. ``notify`` is called if another build makes
    this model now, which this one waits for.

    Raises as compiling and unpacking do, and ``UsageError`` for a depfile without a stamp.
    """
    if depfile is not None and stamp is None:
        raise UsageError.needs_another("--depfile", "a depfile is a rule for a stamp", "add --stamp")
    with trees_locked([job], notify):
        return _generated(job, stamp, depfile, depends, tree_stamp, notify)


def _generated(
    job: CompileJob,
    stamp: Path | None,
    depfile: Path | None,
    depends: str,
    tree_stamp: Path | None,
    notify: Callable[[str], None],
) -> ModelResult:
    record = compile_if_needed(job, notify)
    written = len(unpack_job(job).written)
    if depfile is not None:
        # Archives of programs are made when CMake is configured (``plan --complete``). If such an archive is deleted or
        # replaced later, this step makes it again.
        made_from = read_files(job) + ([job.archive] if job.made_first else [])
        made_from += [] if job.quantize is None else [job.quantize.made]
        files = recorded_files(job.tree) if depends == "tree" else made_from
        write_atomic(depfile, _rule(stamp or depfile, files).encode())
    # Before ``stamp``, whose time tells the build system that this step is done: a step that ends early must leave the
    # stamp old, so that it runs again.
    if tree_stamp is not None:
        write_atomic(_beside(tree_stamp, "d"), _rule(tree_stamp, recorded_files(job.tree)).encode())
        write_atomic(_beside(tree_stamp, "fresh"), b"")
    if stamp is not None:
        # Each time, even if nothing was compiled: a stamp that stays older than an input would run this step in every
        # build.
        write_atomic(stamp, b"")
    return ModelResult(job, record.origin if record else "", written)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def _rule(target: Path, files: Iterable[Path]) -> str:
    """Return a rule of Make with absolute paths, as build systems read depfiles in any folder."""
    return f"{_escaped(target)}: {' '.join(_escaped(file) for file in files)}\n"


def _escaped(path: Path) -> str:
    # As GNU Make and Ninja read depfiles: ``$$`` for a dollar, and a backslash before a blank and before ``#``. A
    # backslash of Windows would be such an escape, so paths have slashes.
    text = path.absolute().as_posix()
    return text.replace(" ", "\\ ").replace("#", "\\#").replace("$", "$$")
