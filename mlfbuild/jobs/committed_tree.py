"""A target's trees in a folder that the user commits, for builds without mlfbuild or Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import UsageError, counted, real_place, unknown
from mlfbuild.jobs.model_builds import budgets_text
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.tree import ADAPTERS, check_target_tree, read_record, target_files
from mlfbuild.jobs.tree.verification import HOST
from mlfbuild.project import Project


def committed(
    project: Project,
    targets: Sequence[TargetJob],
    folder: Path,
    *,
    with_verify: bool = False,
    systems: Sequence[str] = (),
) -> TargetJob:
    """Return the job of the only target in ``targets``, with its trees in ``folder``; archives stay where they are.

    With ``with_verify``, the trees also have the sources of test firmware. The folder becomes a package of the build
    ``systems``. Raises ``UsageError`` if there are several targets, if the target has no board that can run test
    firmware, for an unknown system or a model name that it does not allow, if ``folder`` is inside another tree or a
    model's source, or if a model's source is inside a tree. Raises ``ConflictError`` if files that mlfbuild did not
    write would be overwritten.
    """
    for name in systems:
        if name not in ADAPTERS:
            raise unknown("build system", name, ADAPTERS).error("--for")
    if len(targets) != 1:
        names = ", ".join(target.name for target in targets)
        raise UsageError(
            "tree-of-several-targets",
            place=f"--tree {folder}",
            reason=f"a tree holds the models of one target, and {counted(len(targets), 'target')} are selected",
            hint=f"choose one with --target (of {names})",
        )
    (target,) = targets
    place = _where_it_runs(target) if with_verify else None
    # Archives stay in the build folder: the user commits C, which shows changes, and not a binary file beside it.
    job = replace(
        target,
        tree=folder,
        models=tuple(_moved(model, folder, place) for model in target.models),
        others=tuple(_moved(model, folder, place) for model in target.others),
        systems=tuple(name for name in ADAPTERS if name in systems),
        version=project.version,
    )
    for code, reason in _objections(project, job):
        raise UsageError(code, place=f"--tree {folder}", reason=reason, hint="choose another folder")
    # Now, because archives are compiled next: that must not end in a conflict that could have been known before.
    models, budgets = job.in_fragment(), budgets_text(job)
    files = target_files(models, job.board, job.cpu, job.systems, job.placed, budgets=budgets)
    check_target_tree(job.tree, models, job.systems, files, budgeted=bool(budgets))
    return job


def _where_it_runs(target: TargetJob) -> str:
    if target.board is None and target.toolchain is not None:
        raise UsageError(
            "target-without-board",
            place="--with-verify",
            reason=f"target {target.name!r} has no board that QEMU emulates",
            hint="add a board in the project file",
        )
    return target.board.name if target.board else HOST


def _moved(job: CompileJob, folder: Path, place: str | None) -> CompileJob:
    return replace(job, tree=folder / job.model, verified_on=place)


def _objections(project: Project, job: TargetJob) -> Iterator[tuple[str, str]]:
    """Yield (code, reason) for each reason not to write the trees of ``job``."""
    # With links resolved: a folder that is inside a tree by a link is overwritten just as well.
    folder = real_place(job.tree)
    for above in folder.parents:
        if read_record(above) is not None:
            yield "tree-inside-tree", f"is inside {above}, which is an unpacked tree"
    trees = {real_place(model.tree): model.model for model in (*job.models, *job.others)}
    for name, model in project.models.items():
        source = real_place(model.source)
        if folder == source or source in folder.parents:
            yield "tree-inside-source", f"is inside {model.source}, the source of model {name!r}"
        for tree, other in trees.items():
            if tree in source.parents:
                reason = f"{model.source}, the source of model {name!r}, is inside the tree of model {other!r}"
                yield "source-inside-tree", reason
