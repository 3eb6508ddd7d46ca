"""The builders of firmware: build, flash and run an image, report its sizes, and verify the models of a target.

``MlfFirmware`` cross-builds an image, ``MlfFlash`` writes it to its device, and ``MlfRun`` runs it. ``MlfReport``
writes the flash and RAM that each model uses to a file. ``MlfVerify`` checks every model that has vectors on the
target's board, and measures those that have a test set on this machine.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from SCons.Builder import Builder

from mlfbuild.core import TimedOutError, UsageError, package_fingerprint, terminal_text, write_atomic
from mlfbuild.jobs import FirmwareJob, firmware_called
from mlfbuild.scons.actions import Begin, action, as_user_error, checked_action, show
from mlfbuild.scons.model_nodes import ModelNodes
from mlfbuild.scons.variables import time_limit

if TYPE_CHECKING:
    from mlfbuild.usecases import EvaluateJob

FIRMWARE_JOB = "mlf_firmware_job"
"""Tag of an image's node; its value is the ``FirmwareJob``."""
REPORT_FORMS = "mlf_report_forms"
"""Tag of an image's node; its value are the suffixes of the reports that SConscripts ask for."""


@as_user_error
def mlf_firmware(env: Any, name: str, models: ModelNodes, source: str = "") -> Any:
    """Cross-build the firmware ``name`` with CMake and Ninja; return the node of its image.

    The project file lists its sources under ``firmware``. A name that is not listed there is built from the
    CMakeLists.txt in the folder ``source``, by default that of the SConscript. Ninja runs in every build, because only
    Ninja knows the firmware's headers; what depends on the image is built again only if the image changed.
    """
    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    folder = Path(env.Dir(source or ".").srcnode().get_abspath())
    job = firmware_called(models.project, name, models.target, folder, build)
    image = env.Command(str(job.elf), models, checked_action(_build, "$MLFFIRMWARECOMSTR"), MLFFIRMWAREJOB=job)
    image[0].Tag(FIRMWARE_JOB, job)
    # Only Ninja knows all files that the image depends on.
    env.AlwaysBuild(image)
    # SCons would remove the image before the step, and Ninja would link it again.
    env.Precious(image)
    env.NoCache(image)  # SCons does not know all of its sources
    env.Clean(image, [env.Dir(str(folder)) for folder in (job.build, *(run.folder for run in job.runs))])
    return image


def _build(target: list[Any], _source: list[Any], env: Any, begin: Begin) -> None:
    from mlfbuild.usecases import build_firmware, reporting_excess  # reads ELF files: not needed to build models

    job, image = env["MLFFIRMWAREJOB"], target[0]
    with reporting_excess(job, Path(str(image)), image.GetTag(REPORT_FORMS) or ()):
        output = build_firmware(
            job, [env.subst(flag) for flag in env["MLFCMAKEFLAGS"]], on_progress=lambda *_: begin(), show=show
        )
    if env["MLFVERBOSE"] or "warning:" in output:
        show(output)


@as_user_error
def mlf_run(env: Any, elf: Any, models: ModelNodes) -> Any:
    """Run the image ``elf`` on the target's device, or on its board in QEMU; write its output to ``<elf>.log``.

    The build fails if the exit status is not 0, and if the image has not ended after ``$MLFTIMEOUT`` seconds.
    """
    # Only to refuse a wrong ``MLFTIMEOUT`` while SConscripts are read, before anything is built.
    time_limit(env)
    (image,) = env.Flatten([elf])
    target = models.target
    if target.board is None and target.runner is None and target.toolchain is not None:
        raise UsageError(
            "board-missing",
            place=f"target {target.name!r}",
            reason=f"no board that can run {image}",
            hint="add a board, or a runner for your own device, to the target",
        )
    log = env.Command(f"{image}.log", image, action(_run, "$MLFRUNCOMSTR"), MLFTARGETJOB=target)
    # The image may be the same while the board or the device is another one.
    env.Depends(log, env.Value(f"{target.settings()} {target.runner}"))
    if target.runner is not None:
        env.AlwaysBuild(log)  # a device may contain another image by now
    env.NoCache(log)  # the output belongs to this machine
    return log


@as_user_error
def mlf_flash(env: Any, elf: Any, models: ModelNodes) -> Any:
    """Write the image ``elf`` to the target's device and let it run; for an alias, such as ``scons flash``.

    It runs whenever it is asked for, because SCons does not know what the device contains.
    """
    (image,) = env.Flatten([elf])
    flashed = env.Command(f"{image}.flashed", image, action(_flash, "$MLFFLASHCOMSTR"), MLFTARGETJOB=models.target)
    env.AlwaysBuild(flashed)
    env.NoCache(flashed)
    return flashed


def _flash(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.verify import flash_image

    device = flash_image(Path(source[0].get_abspath()), env["MLFTARGETJOB"])
    Path(target[0].get_abspath()).write_text(f"{device}\n")


@as_user_error
def mlf_parameters(
    env: Any, blob: Any, new: Any, models: ModelNodes, model: str, number: int = 0, self_test: int = 0
) -> Any:
    """Write the values of the network ``new`` as ``blob`` for firmware with ``model``, a name in the project file.

    ``number`` is your version of the values, and ``self_test`` the number of test vectors in the blob. Outputs of both
    networks are compared and printed. The build fails if ``new`` has another structure.
    """
    from mlfbuild.usecases import NewParameters  # few builds need it

    (source,), (output,) = env.Flatten([new]), env.Flatten([blob])
    place, path = (env.File(str(each)).get_abspath() for each in (output, source))
    wanted = NewParameters(Path(path), model, Path(place), number, tests=self_test, target=models.target.name)
    job = next((job for job in models.target.models if job.model == model), None)
    made = env.Command(
        str(output),
        [str(source), *([str(job.tree / "RECORD.json")] if job is not None else [])],
        action(_parameters, "$MLFPARAMETERSCOMSTR"),
        MLFPARAMETERS=(wanted, models.project),
    )
    spec = models.project.models.get(model)
    if spec is not None and "" in spec.vectors:
        env.Depends(made, str(spec.vectors[""]))  # the first ones are the tests in the blob
    # Values, because neither mlfbuild nor these numbers are files.
    env.Depends(made, [env.Value(package_fingerprint()), env.Value(f"{number} {self_test}")])
    return made


def _parameters(target: list[Any], source: list[Any], env: Any) -> None:  # noqa: ARG001 - SCons passes them
    from mlfbuild.usecases import make_parameters

    made = make_parameters(*env["MLFPARAMETERS"])
    show(made.text())


def _run(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.verify import run_image

    image, log = Path(source[0].get_abspath()), Path(target[0].get_abspath())
    try:
        show(run_image(image, env["MLFTARGETJOB"], log, time_limit(env)))
    except TimedOutError as error:
        error.hint = "let main() return, or set MLFTIMEOUT to more seconds"
        raise


def report_builder() -> Any:
    """Return ``MlfReport``: ``env.MlfReport("report.txt", app)``, ``"report.json"`` or ``"report.html"``.

    Writes the flash and RAM that each model, library and the firmware use, in the form of the suffix. For an image of
    ``MlfFirmware``, models and budgets are those of the project file; for any other image, models are the libraries in
    its map, ``<image>.map``. With ``MLFPROFILE=True``, models run on an emulated board and the report includes their
    instructions and, if the target has a microcontroller, their modelled cycles.
    """
    return Builder(action=action(_write, "$MLFREPORTCOMSTR"), suffix=".txt", single_source=True, emitter=_emitter)


@as_user_error
def _emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    if not source:
        raise UsageError(
            "report-without-image",
            place=target[0],
            reason="a report requires an image",
            hint=f'write env.MlfReport("{target[0]}", app)',
        )
    from mlfbuild.report import form_of  # not needed in most builds

    form = form_of(Path(str(target[0])))
    job = source[0].GetTag(FIRMWARE_JOB)
    if job is not None and job.target.toolchain is None:
        raise UsageError(
            "report-of-this-machine",
            place=f"target {job.target.name!r}",
            reason="images for this machine have no report",
            hint="choose firmware for a target with a board or toolchain",
        )
    # The step of the image writes these forms if it exceeds a budget: this step does not run then.
    source[0].Tag(REPORT_FORMS, {*(source[0].GetTag(REPORT_FORMS) or ()), form})
    env.Depends(target, env.Value(package_fingerprint()))
    if job is not None:
        env.Depends(target, env.Value(job.report_settings()))
    if job is not None and job.budget_file is not None:
        env.Depends(target, env.File(str(job.budget_file.path)))
    if job is not None and form != ".txt":  # the others list operators and tensors
        env.Depends(target, [env.File(str(model.archive)) for model in job.target.models])
    if env["MLFPROFILE"]:
        _depend_on_runs(target, job, env)
    env.NoCache(target)  # it also depends on the map, which SCons does not know
    return target, source


def _depend_on_runs(target: list[Any], job: FirmwareJob | None, env: Any) -> None:
    if job is None:
        raise UsageError(
            "profile-without-firmware",
            place=target[0],
            reason="MLFPROFILE requires an image of MlfFirmware",
            hint="pass such an image, or omit MLFPROFILE",
        )
    if not job.runs:
        raise UsageError(
            "profile-without-board",
            place=target[0],
            reason="MLFPROFILE requires a board or an mcu",
            hint=f"add a board or an mcu to target {job.target.name!r}",
        )
    settings = (package_fingerprint(), job.target.settings(), job.target.mcu)
    env.Depends(target, [env.Value(str(each)) for each in settings])
    files = [path for run in job.runs for path in (run.model.archive, *run.vectors.values())]
    env.Depends(target, [env.File(str(path)) for path in (*files, *job.target.toolchain_files)])


def _write(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import write_report  # reads ELF files: not needed in most builds

    image = source[0]
    job = image.GetTag(FIRMWARE_JOB)
    write_report(Path(target[0].get_abspath()), Path(str(image)), job, profile=env["MLFPROFILE"])


@as_user_error
def mlf_verify(env: Any, models: ModelNodes) -> Any:
    """Check each model of ``models`` that has vectors or a test set, and budgets of runs; return a node for each check.

    If an output is wrong, the build fails and prints model, case, element, and the expected and actual value. A model
    is checked again if its tree, its vectors or mlfbuild's harness changed. Its accuracy is measured on this machine,
    once if several targets have it. A case may take ``$MLFTIMEOUT`` seconds. If no model has vectors or a test set,
    SCons stops.
    """
    from mlfbuild.usecases import check_test_data, evaluate_jobs, verify_jobs  # read ELF files: most builds need none

    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    evaluations = evaluate_jobs(models.project, [models.target], timeout=time_limit(env))
    check_test_data(models.project, evaluations)
    nodes = [_evaluation(env, models, replace(job, folder=build / "evaluate" / job.title)) for job in evaluations]
    for job in verify_jobs(models.project, [models.target], build, time_limit(env), needed=not evaluations):
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


def _evaluation(env: Any, models: ModelNodes, job: EvaluateJob) -> Any:
    """Return the node of the evaluation of a model, which the nodes of another target may have already."""
    from mlfbuild.usecases import evaluated_files

    target = env.File(str(job.folder / "within-limits.txt"))
    if target.has_builder():
        return target
    measured = env.Command(
        target,
        [str(job.model.tree / "RECORD.json"), *map(str, evaluated_files(job))],
        action(_evaluate, "$MLFVERIFYCOMSTR"),
        MLFEVALUATEJOB=job,
        MLFPROJECT=models.project,
    )
    limits = sorted(job.keys.limits.items())
    env.Depends(measured, [env.Value(str(each)) for each in (package_fingerprint(), job.settings(), limits)])
    if models.dependencies:
        env.Depends(measured, env.File(str(models.target.dependencies_folder / "RECORD.json")))
    env.NoCache(measured)  # the result belongs to this machine
    env.Clean(measured, env.Dir(str(job.folder)))
    return target


def _evaluate(target: list[Any], _source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import evaluate_job, evaluation_failed

    job = env["MLFEVALUATEJOB"]
    report = evaluate_job(job)
    for error in evaluation_failed(env["MLFPROJECT"], [(job, report)]):
        raise error
    show(report.text())
    # The file has no content: that it exists records that no limit is missed.
    write_atomic(Path(target[0].get_abspath()), b"")


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
