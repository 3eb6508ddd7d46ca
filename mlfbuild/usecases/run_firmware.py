"""Choose an image of the project, build it, and run it on its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild import verify
from mlfbuild.core import UsageError, listed
from mlfbuild.jobs import Progress, TargetJob, firmware_jobs, target_jobs
from mlfbuild.project import Project
from mlfbuild.usecases.build import build_project


@dataclass(frozen=True)
class ChosenImage:
    """An image and the target that it is for."""

    elf: Path
    target: TargetJob


def chosen_image(
    project: Project,
    firmware: str | None,
    targets: Sequence[str],
    elf: Path | None = None,
    *,
    frozen: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> ChosenImage:
    """Build the image of ``firmware`` for one of ``targets`` and return it, or return ``elf``, which is built already.

    Either may be omitted if the project has only one. Raises ``UsageError`` if the choice leaves none or several, and
    as ``build_project``.
    """
    chosen = target_jobs(project, targets)
    # Nothing is built: the image may come from another build, and the project file describes only its target.
    if elf is not None:
        if len(chosen) != 1:
            names = listed([target.name for target in chosen])
            reason = f"the project has several targets: {names}"
            raise UsageError("target-not-chosen", place=elf, reason=reason, hint="add --target")
        return ChosenImage(elf, chosen[0])
    images = [job for job in firmware_jobs(project, chosen) if firmware in (None, job.name)]
    if len(images) != 1:
        raise _ambiguous(project, firmware, [job.title for job in images])
    (image,) = images
    locked = project if frozen else None
    build_project([image.target], [image], lenders=target_jobs(project), jobs=jobs, progress=progress, locked=locked)
    return ChosenImage(image.elf, image.target)


def _ambiguous(project: Project, firmware: str | None, found: Sequence[str]) -> UsageError:
    if found:
        reason, hint = f"the project has several images: {listed(found)}", "name the firmware, and add --target"
    elif firmware is not None and firmware not in project.firmware:
        names = listed([*project.firmware]) or "none"
        reason = f"the project file has no such firmware, only {names}" if project.firmware else "it defines none"
        hint = "name one of them, or an image with --elf"
    else:
        reason, hint = "no image is built for the chosen targets", "name its target, or an image with --elf"
    place = project.path if firmware is None else f"firmware {firmware!r}"
    return UsageError("firmware-not-chosen", place=place, reason=reason, hint=hint)


def run_on_target(
    image: ChosenImage,
    timeout: float,
    *,
    emulator: bool = False,
    flash: bool = True,
    printed: Callable[[str], object] = str,
) -> str:
    """Run ``image`` to its end and return its output; ``printed`` is called with the output as it comes.

    With ``emulator`` it runs on the target's board in QEMU even if the target has a runner. Without ``flash`` the
    device already contains the image. Raises as ``verify.run_firmware``.
    """
    target = image.target
    if emulator:
        if target.board is None:
            reason, hint = "it has no board that QEMU emulates", "add a board, or omit --emulator"
            raise UsageError("board-missing", place=f"target {target.name!r}", reason=reason, hint=hint)
        # Without its runner a target runs on its board.
        target = replace(target, runner=None)
    return verify.run_firmware(image.elf, target, timeout, printed=printed, load=flash)
