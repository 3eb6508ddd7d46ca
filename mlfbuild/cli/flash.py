"""``mlfbuild flash``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, elf_option, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.cli.progress import building


@verb("file", "target", "jobs", "frozen", "offline", "no_wait", "format")
@click.argument("firmware", required=False)
@elf_option
def flash(options: SharedOptions, firmware: str | None, elf: Path | None) -> None:
    """Write a firmware to the device of its target.

    FIRMWARE is built first; it may be omitted if the project has only one image. The device is the target's runner.
    Its memory is read back and compared with the image, and the firmware starts.
    """
    from mlfbuild.build import load
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
