"""``mlfbuild convert``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, OUTPUT, SharedOptions, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.core import counted, listed, printable


@verb("format")
@ARCHIVE
@click.option("--to", "version", type=int, default=7, metavar="VERSION", help="Format version, 1 to 7 (default).")
@click.option("--module-name", "names", multiple=True, metavar="[OLD=]NEW", help="Rename a module in all its code.")
@OUTPUT
def convert(options: SharedOptions, archive: Path, version: int, names: tuple[str, ...], output: Path) -> None:
    """Write ARCHIVE in another version of the format.

    Nothing is lost: if the version cannot hold the content, such as several modules before version 7, the exit status
    is 2. Rename modules to link archives whose modules have the same name, such as TVM's "default".
    """
    from mlfbuild.usecases import convert_archive

    result = convert_archive(archive, version, output, names)
    if options.json:
        show_json({"archive": output, "version": version, "size": result.size, "moved": result.moved})
    elif not options.quiet:
        show(f"{output}: version {version}, {result.size:,} bytes")
        if result.moved:
            fields = counted(len(result.moved), "unknown field")
            show(f"{fields} of the metadata kept in the key mlfbuild: {printable(listed(result.moved))}")
