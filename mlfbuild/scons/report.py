"""``MlfReport``: write the flash and RAM that each model uses to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from SCons.Builder import Builder

from mlfbuild.core import UsageError, package_fingerprint
from mlfbuild.jobs import FirmwareJob
from mlfbuild.scons.actions import action, as_user_error
from mlfbuild.scons.firmware import FIRMWARE_JOB, REPORT_FORMS


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
