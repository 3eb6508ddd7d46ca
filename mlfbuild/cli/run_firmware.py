"""``mlfbuild run-firmware``."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, elf_option, verb
from mlfbuild.cli.output.printing import show_json, stream
from mlfbuild.cli.output.progress import building, working


@verb("file", "target", "jobs", "frozen", "offline", "no_wait", "format")
@click.argument("firmware", required=False)
@elf_option
@click.option("--emulator", is_flag=True, help="Run it on the target's board in QEMU, not on the device.")
@click.option("--no-flash", is_flag=True, help="The device already contains the image.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    metavar="SECONDS",
    help="Time limit, default 120.",
)
def run_firmware(
    options: SharedOptions, firmware: str | None, elf: Path | None, emulator: bool, no_flash: bool, timeout: float
) -> None:
    """Run a firmware on the device of its target, or on its board.

    FIRMWARE is built first; it may be omitted if the project has only one image. It runs on the target's runner if it
    has one, otherwise on the board that QEMU emulates, and its output is printed as it comes. The exit status is 0 if
    that of the firmware is 0, and 7 if it is another one, if the firmware faults, or if it has not ended in time.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import chosen_image, run_on_target

    project = load(options.file)
    with building(options, project) as progress:
        image = chosen_image(
            project, firmware, options.target, elf, frozen=options.frozen, jobs=options.jobs, progress=progress
        )
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
