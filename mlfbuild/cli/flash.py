"""``mlfbuild flash``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, bundle_option, complete_board, elf_option, runner_option, verb
from mlfbuild.cli.output.hashes import hashes_json, shown_image
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.cli.output.progress import building, showing_progress
from mlfbuild.core import UsageError


@verb("file", "target", "jobs", "frozen", "offline", "no_wait", "format")
@click.argument("firmware", required=False)
@elf_option
@bundle_option
@click.option("--board", metavar="NAME", help="With --bundle: board that QEMU emulates.", shell_complete=complete_board)
@runner_option
def flash(
    options: SharedOptions,
    firmware: str | None,
    elf: Path | None,
    bundle: Path | None,
    board: str | None,
    runner: tuple[str, ...],
) -> None:
    """Write a firmware to the device of its target.

    FIRMWARE is built first; it may be omitted if the project has only one image. The device is the target's runner.
    Its memory is read back and compared with the image, and the firmware starts.

    With --bundle and --elf, no project is needed: the image is compared with the bundle first. The device is that of
    --board or --runner, or the bundle's board.
    """
    if bundle is not None:
        _flash_received(options, firmware, elf, bundle, board, runner)
        return
    for name, value in (("--board", board), ("--runner", runner)):
        if value:
            raise UsageError.needs_another(
                name, "without a bundle, the project file selects the device", "add --bundle"
            )
    from mlfbuild.jobs import load
    from mlfbuild.usecases import chosen_image, flash_firmware

    project = load(options.file)
    with building(options, project) as progress:
        image = chosen_image(
            project, firmware, options.target, elf, frozen=options.frozen, jobs=options.jobs, progress=progress
        )
        device = flash_firmware(image, progress)
    if options.json:
        show_json({"elf": image.elf, "target": image.target.name, "device": device})
    elif not options.quiet:
        show(f"{image.elf}: written to {device}")


def _flash_received(
    options: SharedOptions,
    firmware: str | None,
    elf: Path | None,
    bundle: Path,
    board: str | None,
    runner: tuple[str, ...],
) -> None:
    from mlfbuild.usecases import ChosenImage, flash_firmware

    given = [f"--{name.replace('_', '-')}" for name in sorted(options.given & {"file", "target", "frozen", "jobs"})]
    if given or firmware is not None:
        raise UsageError.not_applicable(
            given[0] if given else str(firmware), "applies only to a project", "omit it with --bundle"
        )
    received = shown_image(options, bundle, elf, "--elf FILE", board=board, runner=runner)
    with showing_progress(options, "flash") as progress:
        device = flash_firmware(ChosenImage(received.elf, received.target), progress)
    if options.json:
        show_json({**hashes_json(received), "device": device})
    elif not options.quiet:
        show(f"{received.elf}: written to {device}")
