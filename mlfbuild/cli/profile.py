"""``mlfbuild profile``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import note_all, show, show_json
from mlfbuild.cli.output.progress import building

if TYPE_CHECKING:
    from mlfbuild.report import ModelRun, OperatorRun


@verb("file", "target", "model", "jobs", "on", "frozen", "offline", "no_wait", "format")
@click.option("--runs", type=click.IntRange(1, 1000), metavar="N", help="Runs that a device measures.  [default: 5]")
@click.option("--emulator", is_flag=True, help="Do not use the devices of targets.")
def profile(options: SharedOptions, runs: int | None, emulator: bool) -> None:
    """Count the instructions of each operator, and model or measure its cycles.

    Each model runs once in QEMU, with the first case of its vectors, or with zeros. Instructions are exact. If the
    target has a microcontroller (mcu), its cycles and milliseconds are modelled, with a stated error. If it has a
    device (runner), a counter of its core also measures cycles there. The exit status is 1 if a model, or all models of
    a firmware, exceed a budget.
    """
    from mlfbuild.jobs import load, target_jobs
    from mlfbuild.report import MEASURED_RUNS, run_text
    from mlfbuild.report.budgets import check_profiles
    from mlfbuild.usecases import not_profiled, profile_models, unchecked_in_runs

    project = options.placed(load(options.file))
    targets = target_jobs(project, options.target, options.model)
    note_all(options, not_profiled(targets), "not profiled: ")
    note_all(options, unchecked_in_runs(project, targets), "not checked: ")
    with building(options, project) as progress:
        found = profile_models(
            project,
            options.target,
            options.model,
            frozen=options.frozen,
            jobs=options.jobs,
            progress=progress,
            runs=runs or MEASURED_RUNS,
            emulator=emulator,
        )
    if options.json:
        show_json({"profiles": [_json(each) for each in found]})
    else:
        show("\n\n".join(run_text(each, verbose=options.verbose) for each in found))
    # Last, so that the profile is printed even if it exceeds a budget.
    check_profiles(project, found)


def _json(found: ModelRun) -> dict[str, Any]:
    from mlfbuild.report import measured_json, modelled_json

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
        **modelled_json(profile, profile.rest_cycles),
        **measured_json(found),
        "operators": [_operator(each) for each in found.operators],
    }


def _operator(each: OperatorRun) -> dict[str, Any]:
    from mlfbuild.report import cycles_json, spread_json

    plain = {key: value for key, value in vars(each).items() if key not in {"cycles", "measured"}}
    measured = {"measured": spread_json(each.measured)} if each.measured else {}
    return {**plain, **cycles_json(each.cycles), **measured}
