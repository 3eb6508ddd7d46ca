"""``MlfFirmware`` and ``MlfRun``: the cross build, and the image on its board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlfbuild.build import firmware_called
from mlfbuild.core import UsageError
from mlfbuild.scons.actions import action, as_user_error, show
from mlfbuild.scons.models import ModelNodes

FIRMWARE_JOB = "mlf_firmware_job"
"""Tag of an image's node; its value is the ``FirmwareJob``."""
REPORT_FORMS = "mlf_report_forms"
"""Tag of an image's node; its value are the suffixes of the reports that SConscripts ask for."""


@as_user_error
def mlf_firmware(env: Any, name: str, models: ModelNodes, source: str = "") -> Any:
    """Cross-build the firmware ``name`` with CMake and Ninja; returns the node of its image.

    What it is made of stands in the project file under ``firmware``; a name that is not there is built from the
    CMakeLists.txt in the folder ``source`` (the SConscript's own by default). The action always asks Ninja, which
    alone knows the firmware's headers; nothing that depends on the image is made again unless the image changed.
    """
    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    folder = Path(env.Dir(source or ".").srcnode().get_abspath())
    job = firmware_called(models.project, name, models.target, folder, build)
    image = env.Command(str(job.elf), models, action(_build, "$MLFFIRMWARECOMSTR"), MLFFIRMWAREJOB=job)
    image[0].Tag(FIRMWARE_JOB, job)
    env.AlwaysBuild(image)
    env.Precious(image)
    env.NoCache(image)  # SCons does not know all that it is made of
    env.Clean(image, [env.Dir(str(folder)) for folder in (job.build, *(run.folder for run in job.runs))])
    return image


def _build(target: list[Any], _source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import build_firmware, reporting_excess  # reads ELF files: builds of models do without

    job, image = env["MLFFIRMWAREJOB"], target[0]
    with reporting_excess(job, Path(str(image)), image.GetTag(REPORT_FORMS) or ()):
        output = build_firmware(job, [env.subst(flag) for flag in env["MLFCMAKEFLAGS"]])
    if env["MLFVERBOSE"] or "warning:" in output:
        show(output)


@as_user_error
def mlf_run(env: Any, elf: Any, models: ModelNodes) -> Any:
    """Run the image ``elf`` on the target's board in QEMU, print what it prints, and keep that in ``<elf>.log``.

    An exit status other than 0 fails the build.
    """
    (image,) = env.Flatten([elf])
    if models.target.board is None and models.target.toolchain is not None:
        raise UsageError(f"target {models.target.name!r}: has no board, so nothing can run {image}; add one")
    log = env.Command(f"{image}.log", image, action(_run, "$MLFRUNCOMSTR"), MLFTARGETJOB=models.target)
    env.Depends(log, env.Value(models.target.settings()))
    env.NoCache(log)  # it tells what happened here
    return log


def _run(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.verify import run_image

    show(run_image(Path(source[0].get_abspath()), env["MLFTARGETJOB"], Path(target[0].get_abspath())))
