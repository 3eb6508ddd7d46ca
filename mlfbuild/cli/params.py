"""``mlfbuild params``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json

_FILE = click.Path(path_type=Path)


@verb("format")
@click.argument("elf", type=_FILE)
@click.option("--section", default=".mlf_params", metavar="NAME", help="Section to write, default .mlf_params.")
@click.option("-o", "output", type=_FILE, required=True, metavar="OUT.bin", help="File to write.")
def params(options: SharedOptions, elf: Path, section: str, output: Path) -> None:
    """Write the constants of the image ELF to a file.

    The file has the bytes of one section, for the programmer of external flash. The address that they are linked for
    is printed.
    """
    from mlfbuild.usecases import write_params

    written = write_params(elf, section, output)
    if options.json:
        show_json({"file": output, **vars(written)})
    elif not options.quiet:
        show(f"{output}: {written.size:,} bytes of {section} for address {written.address:#010x}")
