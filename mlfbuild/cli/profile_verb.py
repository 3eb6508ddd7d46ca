"""The verb that counts instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.cli.watch import watching

if TYPE_CHECKING:
    from mlfbuild.report import ModelRun


@verb("file", "target", "model", "jobs", "frozen", "offline", "format")
def profile(settings: Settings) -> None:
    """Count the instructions of each model's operators on its boards.

    One run of each model in QEMU, with the first case of its vectors, or zeros. Counts are exact and repeat; they are
    no cycles. Exit status 1 where a model is over its budget of them.
    """
    from mlfbuild.build import load, target_jobs
    from mlfbuild.report import profiles, run_text
    from mlfbuild.report.budgets import check_profiles
    from mlfbuild.usecases import build_project

    project = load(settings.file)
    targets = target_jobs(project, settings.target, settings.model)
    with watching(settings) as watch:
        lenders = target_jobs(project)
        if settings.frozen:
            from mlfbuild.usecases import freeze

            targets = freeze(project, targets, lenders=lenders, jobs=settings.jobs, progress=watch)
        build_project(targets, [], lenders=lenders, jobs=settings.jobs, progress=watch)
        found = list(profiles(project, targets, watch))
    if settings.json:
        show_json({"profiles": [_profile_json(each) for each in found]})
    else:
        show("\n\n".join(run_text(each, verbose=settings.verbose) for each in found))
    check_profiles(project, found)


def _profile_json(found: ModelRun) -> dict[str, Any]:
    profile = found.profile
    return {
        "target": found.target,
        "model": found.model,
        "module": profile.module,
        "board": profile.board,
        "inputs": found.inputs,
        "instructions": profile.instructions,
        "rest": profile.rest,
        "stack": profile.stack,
        "operators": [vars(each) for each in found.operators],
    }
