"""``MlfFirmware``, ``MlfFlash`` and ``MlfRun``: cross-build an image, write it to its device, and run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlfbuild.core import TimedOutError, UsageError
from mlfbuild.jobs import firmware_called
from mlfbuild.scons.actions import Begin, action, as_user_error, checked_action, show
from mlfbuild.scons.model_nodes import ModelNodes
from mlfbuild.scons.variables import time_limit

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


def _run(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.verify import run_image

    image, log = Path(source[0].get_abspath()), Path(target[0].get_abspath())
    try:
        show(run_image(image, env["MLFTARGETJOB"], log, time_limit(env)))
    except TimedOutError as error:
        error.hint = "let main() return, or set MLFTIMEOUT to more seconds"
        raise
