"""The verbs that use a target's device: flash, run-firmware and calibrate."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import (
    SharedOptions,
    bundle_option,
    complete_board,
    elf_option,
    runner_option,
    signers_option,
    timeout_option,
    verb,
)
from mlfbuild.cli.output.hashes import hashes_json, shown_image
from mlfbuild.cli.output.printing import show, show_json, show_result, stream
from mlfbuild.cli.output.progress import building, showing_progress, working
from mlfbuild.core import UsageError

if TYPE_CHECKING:
    from mlfbuild.jobs import Progress
    from mlfbuild.project import Project
    from mlfbuild.usecases import ChosenImage


@verb("file", "target", "jobs", "frozen", "offline", "no_wait", "format")
@click.argument("firmware", required=False)
@elf_option
@bundle_option
@click.option("--board", metavar="NAME", help="With --bundle: board that QEMU emulates.", shell_complete=complete_board)
@runner_option
@signers_option
def flash(
    options: SharedOptions,
    firmware: str | None,
    elf: Path | None,
    bundle: Path | None,
    board: str | None,
    runner: tuple[str, ...],
    signers: Path | None,
) -> None:
    """Write a firmware to the device of its target.

    FIRMWARE is built first; it may be omitted if the project has only one image. The device is the target's runner.
    Its memory is read back and compared with the image, and the firmware starts.

    With --bundle and --elf, no project is needed: the image is compared with the bundle first. The device is that of
    --board or --runner, or the bundle's board. With --signers, the bundle must have a provenance of the image that one
    of them signed.
    """
    if bundle is not None:
        _flash_received(options, firmware, elf, bundle, board, runner, signers)
        return
    for name, value in (("--board", board), ("--runner", runner), ("--signers", signers)):
        if value:
            raise UsageError.needs_another(
                name, "without a bundle, the project file selects the device", "add --bundle"
            )
    from mlfbuild.jobs import load
    from mlfbuild.usecases import flash_firmware

    project = load(options.file)
    with building(options, project) as progress:
        image = _built(options, project, firmware, elf, progress)
        device = flash_firmware(image, progress)
    written = {"elf": image.elf, "target": image.target.name, "device": device}
    show_result(options, written, f"{image.elf}: written to {device}")


def _built(
    options: SharedOptions, project: Project, firmware: str | None, elf: Path | None, progress: Progress
) -> ChosenImage:
    from mlfbuild.usecases import chosen_image

    return chosen_image(
        project, firmware, options.target, elf, frozen=options.frozen, jobs=options.jobs, progress=progress
    )


def _flash_received(
    options: SharedOptions,
    firmware: str | None,
    elf: Path | None,
    bundle: Path,
    board: str | None,
    runner: tuple[str, ...],
    signers: Path | None,
) -> None:
    from mlfbuild.usecases import ChosenImage, flash_firmware

    given = [f"--{name.replace('_', '-')}" for name in sorted(options.given & {"file", "target", "frozen", "jobs"})]
    if given or firmware is not None:
        raise UsageError.not_applicable(
            given[0] if given else str(firmware), "applies only to a project", "omit it with --bundle"
        )
    received = shown_image(options, bundle, elf, "--elf FILE", board=board, runner=runner, signers=signers)
    with showing_progress(options, "flash") as progress:
        device = flash_firmware(ChosenImage(received.elf, received.target), progress)
    show_result(options, {**hashes_json(received), "device": device}, f"{received.elf}: written to {device}")


@verb("file", "target", "jobs", "frozen", "offline", "no_wait", "format")
@click.argument("firmware", required=False)
@elf_option
@click.option("--emulator", is_flag=True, help="Run it on the target's board in QEMU, not on the device.")
@click.option("--no-flash", is_flag=True, help="The device already contains the image.")
@timeout_option(default=120.0, what="Time limit")
def run_firmware(
    options: SharedOptions, firmware: str | None, elf: Path | None, emulator: bool, no_flash: bool, timeout: float
) -> None:
    """Run a firmware on the device of its target, or on its board.

    FIRMWARE is built first; it may be omitted if the project has only one image. It runs on the target's runner if it
    has one, otherwise on the board that QEMU emulates, and its output is printed as it comes. The exit status is 0 if
    that of the firmware is 0, and 7 if it is another one, if the firmware faults, or if it has not ended in time.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import run_on_target

    project = load(options.file)
    with building(options, project) as progress:
        image = _built(options, project, firmware, elf, progress)
    # The lock of the build folder is released, because firmware may run for minutes.
    with contextlib.ExitStack() as row:

        def printed(text: str) -> None:
            # The first output removes the row, which would otherwise be drawn between the lines of the firmware.
            row.close()
            if not options.json:
                stream(text)

        row.enter_context(working(options, f"running {image.elf.name}"))
        output = run_on_target(image, timeout, emulator=emulator, flash=not no_flash, printed=printed)
    if options.json:
        show_json({"elf": image.elf, "target": image.target.name, "output": output, "exit_status": 0})


@verb("file", "one_target", "no_wait", "format")
def calibrate(options: SharedOptions) -> None:
    """Measure the wait states of a device's memories.

    Small kernels run on the device of a target (runner), which also needs a microcontroller (mcu or timing). The output
    is the part of the project file with the wait states of flash and RAM with which the cycle model is closest to the
    measured cycles. It lists what the measurement does not determine, and the largest difference.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import calibrate_target

    project = load(options.file)
    with building(options, project) as progress:
        found = calibrate_target(project, options.target, progress)
    if options.json:
        show_json(
            {
                **{name: getattr(found, name) for name in ("target", "mcu", "device", "counter")},
                "memories": found.found.changed(),
                "residual": round(found.found.residual, 3),
                "not_identifiable": list(found.found.unknown),
            }
        )
    else:
        show(found.snippet())
