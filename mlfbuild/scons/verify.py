"""``MlfVerify``: the numbers of every model that has vectors, checked on the target's board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlfbuild.core import CheckFailedError, package_fingerprint
from mlfbuild.scons.actions import action, as_user_error, show
from mlfbuild.scons.models import ModelNodes


@as_user_error
def mlf_verify(env: Any, models: ModelNodes) -> Any:
    """Check each model of ``models`` that has vectors; returns a report node for each.

    A mismatch fails the build with model, case, element, expected and got. A model is checked again when its tree,
    its vectors or mlfbuild's harness changed. Stops SCons where no model has vectors.
    """
    from mlfbuild.usecases import verify_jobs  # reads ELF files: most builds start without it

    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    nodes = []
    for job in verify_jobs(models.project, [models.target], build):
        report = env.Command(
            str(job.folder / "report.txt"),
            [str(job.model.tree / "RECORD.json"), str(job.vectors)],
            action(_verify, "$MLFVERIFYCOMSTR"),
            MLFVERIFYJOB=job,
        )
        env.Depends(report, [env.Value(package_fingerprint()), env.Value(job.settings())])
        env.Depends(report, [env.File(str(path)) for path in models.target.toolchain_files])
        if models.dependencies:
            env.Depends(report, env.File(str(models.target.dependencies_folder / "RECORD.json")))
        if models.target.placed:
            env.Depends(report, env.File(str(models.target.placement_script)))
        env.NoCache(report)  # it tells what happened here
        env.Clean(report, env.Dir(str(job.folder)))
        nodes += report
    return nodes


def _verify(_target: list[Any], _source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import verify_job

    report = verify_job(env["MLFVERIFYJOB"])
    text = report.text()
    if not report.passed:
        raise CheckFailedError(text)
    show(text)
