"""``MlfVerify``: check every model that has vectors on the target's board."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mlfbuild.core import package_fingerprint, terminal_text, write_atomic
from mlfbuild.scons.actions import action, as_user_error, show
from mlfbuild.scons.model_nodes import ModelNodes
from mlfbuild.scons.variables import time_limit


@as_user_error
def mlf_verify(env: Any, models: ModelNodes) -> Any:
    """Check each model of ``models`` that has vectors, and budgets of runs; return a node for each check.

    If an output is wrong, the build fails and prints model, case, element, and the expected and actual value. A model
    is checked again if its tree, its vectors or mlfbuild's harness changed. A case may take ``$MLFTIMEOUT`` seconds. If
    no model has vectors, SCons stops.
    """
    from mlfbuild.usecases import verify_jobs  # reads ELF files: not needed in most builds

    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    nodes = []
    for job in verify_jobs(models.project, [models.target], build, time_limit(env)):
        report = env.Command(
            str(job.folder / "report.txt"),
            # The record has the hash of every file of the tree, so nothing else of it needs to be a source.
            [str(job.model.tree / "RECORD.json"), str(job.vectors)],
            action(_verify, "$MLFVERIFYCOMSTR"),
            MLFVERIFYJOB=job,
        )
        # Values, because neither mlfbuild nor the settings of the job are files of the project.
        env.Depends(report, [env.Value(package_fingerprint()), env.Value(job.settings())])
        env.Depends(report, [env.File(str(path)) for path in models.target.toolchain_files])
        if models.dependencies:
            env.Depends(report, env.File(str(models.target.dependencies_folder / "RECORD.json")))
        if models.target.placed:
            env.Depends(report, env.File(str(models.target.placement_script)))
        env.NoCache(report)  # the result belongs to this machine
        env.Clean(report, env.Dir(str(job.folder)))
        nodes += report
    return [*nodes, *_runs(env, models, build)]


def _runs(env: Any, models: ModelNodes, build: Path) -> Any:
    """Return the node of a check of all budgets of runs; empty if there are none."""
    from mlfbuild.report.budgets import budgeted_jobs

    jobs = budgeted_jobs(models.project, [models.target], build)
    if not jobs:
        return []
    checked = env.Command(
        str(build / "profile" / models.target.name / "within-budget.txt"),
        [str(job.model.tree / "RECORD.json") for job in jobs],
        action(_check_runs, "$MLFVERIFYCOMSTR"),
        MLFPROFILEJOBS=jobs,
        MLFPROJECT=models.project,
    )
    entries = [*models.project.models.values(), *models.project.firmware.values()]
    limits = {entry.name: entry.budget.of_runs for entry in entries}
    env.Depends(
        checked,
        [env.Value(str(each)) for each in (package_fingerprint(), models.target.settings(), models.target.mcu, limits)],
    )
    files = [path for job in jobs for path in job.vectors.values()]
    env.Depends(checked, [env.File(str(path)) for path in (*files, *models.target.toolchain_files)])
    env.NoCache(checked)  # the result belongs to this machine
    env.Clean(checked, [env.Dir(str(job.folder)) for job in jobs])
    return checked


def _check_runs(target: list[Any], _source: list[Any], env: Any) -> None:
    from mlfbuild.report.budgets import check_runs

    check_runs(env["MLFPROJECT"], env["MLFPROFILEJOBS"])
    # The file has no content: that it exists records that the check passed.
    write_atomic(Path(target[0].get_abspath()), b"")


def _verify(_target: list[Any], _source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import verification_failed, verify_job

    job = env["MLFVERIFYJOB"]
    report = verify_job(job)
    if not report.passed:
        sys.stderr.write(f"{terminal_text(report.text())}\n")
        raise verification_failed(job.title)
    show(report.text())
