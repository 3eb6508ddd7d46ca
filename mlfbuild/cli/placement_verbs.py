"""The verb that writes constants of an image for external flash."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json

_FILE = click.Path(path_type=Path)


@verb("format")
@click.argument("elf", type=_FILE)
@click.option("--section", default=".mlf_params", show_default=True, metavar="NAME", help="Section of the constants.")
@click.option("-o", "output", type=_FILE, required=True, metavar="OUT.bin", help="File of bytes to write.")
def params(settings: Settings, elf: Path, section: str, output: Path) -> None:
    """Write the constants in a section of the linked image ELF to a file of their bytes alone, for external flash.

    Says what address they are linked for.
    """
    from mlfbuild.build import write_params_binary

    written = write_params_binary(elf, section, output)
    if settings.json:
        show_json({"file": output, **vars(written)})
    elif not settings.quiet:
        show(f"{output}: {written.size:,} bytes of {section} for address {written.address:#010x}")
