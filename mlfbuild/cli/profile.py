"""``mlfbuild profile``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import FILE, SharedOptions, timeout_option, verb
from mlfbuild.cli.output.printing import note_all, show, show_json
from mlfbuild.cli.output.progress import building
from mlfbuild.core import UsageError

if TYPE_CHECKING:
    from mlfbuild.project import Project
    from mlfbuild.report import ImageProfile, ModelRun, OperatorRun
    from mlfbuild.usecases import NpuRun


@verb("file", "target", "model", "jobs", "on", "frozen", "offline", "no_wait", "format")
@click.option("--in", "image", type=FILE, metavar="FILE", help="Count all code between the marks of this image.")
@click.option(
    "--runs", type=click.IntRange(1, 1000), metavar="N", help="Runs that a device or an image makes.  [default: 5]"
)
@timeout_option(usual=120, what="With --in: time limit of the image")
@click.option("--emulator", is_flag=True, help="Do not use the devices of targets.")
def profile(
    options: SharedOptions, image: Path | None, runs: int | None, timeout: float | None, emulator: bool
) -> None:
    """Count the instructions of each operator, and model or measure its cycles.

    Each model runs once in QEMU, with the first case of its vectors, or with zeros. Instructions are exact. If the
    target has a microcontroller (mcu), its cycles and milliseconds are modelled, with a stated error. If it has a
    device (runner), a counter of its core also measures cycles there. The exit status is 1 if a model, or all models of
    a firmware, exceed a budget.

    For a target with an NPU, which QEMU does not emulate, print the estimate of Vela.

    With --in, run your firmware image on the emulated board for which it is linked, and count all its code between
    calls of mlf_bench_begin() and mlf_bench_end(), by function. Budgets are not checked.
    """
    from mlfbuild.jobs import load, target_jobs
    from mlfbuild.report import MEASURED_RUNS, npu_text, run_text
    from mlfbuild.report.budgets import check_profiles
    from mlfbuild.usecases import not_profiled, npu_estimates, profile_models, unchecked_in_runs

    project = options.placed(load(options.file))
    if image is not None:
        _profile_image(options, project, image, runs, timeout)
        return
    if timeout is not None:
        raise UsageError.needs_another("--timeout", "the option applies only to an image", "add --in")
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
    estimates = npu_estimates(project, options.target, options.model)
    if options.json:
        vela = {"vela": [_npu_json(each) for each in estimates]} if estimates else {}
        show_json({"profiles": [_json(each) for each in found], **vela})
    else:
        texts = [run_text(each, verbose=options.verbose) for each in found]
        texts += [npu_text(f"{each.model} for {each.target}", each.facts) for each in estimates]
        show("\n\n".join(texts))
    # Last, so that the profile is printed even if it exceeds a budget.
    check_profiles(project, found)


def _profile_image(
    options: SharedOptions, project: Project, image: Path, runs: int | None, timeout: float | None
) -> None:
    from mlfbuild.report import MEASURED_RUNS, image_text
    from mlfbuild.usecases import SECONDS_AN_IMAGE, profile_in

    with building(options, project) as progress:
        found = profile_in(
            project,
            image,
            options.target,
            options.model,
            frozen=options.frozen,
            jobs=options.jobs,
            progress=progress,
            runs=runs or MEASURED_RUNS,
            timeout=timeout or SECONDS_AN_IMAGE,
        )
    note_all(options, found.remarks)
    if options.json:
        show_json(_image_json(found))
    else:
        show(image_text(found, verbose=options.verbose))


def _image_json(found: ImageProfile) -> dict[str, Any]:
    from mlfbuild.report import cycles_json

    part = found.part
    return {
        "image": found.image,
        "target": found.target,
        "board": found.board,
        **({} if part is None else {"modelled": vars(part)}),
        "median": found.median,
        "remarks": found.remarks,
        "runs": [
            {
                "instructions": run.instructions,
                **cycles_json(run.cycles),
                **({} if part is None or run.cycles is None else {"latency": part.latency(run.cycles.total)}),
                **({} if part is None else {"register_accesses": run.register_accesses}),
                "functions": [
                    {
                        "owner": each.owner,
                        "function": each.function,
                        "instructions": each.instructions,
                        **cycles_json(each.cycles),
                        **({} if part is None else {"register_accesses": each.register_accesses}),
                    }
                    for each in run.functions
                ],
            }
            for run in found.runs
        ],
    }


def _npu_json(run: NpuRun) -> dict[str, Any]:
    facts = {key: value for key, value in asdict(run.facts).items() if key != "estimate"}
    return {"target": run.target, "model": run.model, "module": run.module, **facts, **asdict(run.facts.estimate)}


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
