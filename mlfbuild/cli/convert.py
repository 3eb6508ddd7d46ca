"""``mlfbuild convert``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, OUTPUT, SharedOptions, verb
from mlfbuild.cli.output import show, show_json


@verb("format")
@ARCHIVE
@click.option("--to", "version", type=int, default=7, metavar="VERSION", help="Format version: 7 (default), 6 or 5.")
@click.option("--module-name", "names", multiple=True, metavar="[OLD=]NEW", help="Rename a module in all its code.")
@OUTPUT
def convert(options: SharedOptions, archive: Path, version: int, names: tuple[str, ...], output: Path) -> None:
    """Write ARCHIVE in another version of the format.

    Nothing is lost: if the version cannot hold the content, such as several modules before version 7, the exit status
    is 2. Rename modules to link archives whose modules have the same name, such as TVM's "default".
    """
    from mlfbuild.usecases import convert_archive

    size = convert_archive(archive, version, output, names)
    if options.json:
        show_json({"archive": output, "version": version, "size": size})
    elif not options.quiet:
        show(f"{output}: version {version}, {size:,} bytes")
