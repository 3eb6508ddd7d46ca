"""``mlfbuild unpack``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, PLACE, SharedOptions, verb
from mlfbuild.cli.output.printing import note_unless_quiet, show, show_json
from mlfbuild.core import counted
from mlfbuild.project import DEFAULT_LEVEL, LEVELS


@verb("format")
@ARCHIVE
@click.option(
    "-o", "output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder to unpack into."
)
@PLACE
@click.option(
    "--optimize",
    type=click.Choice(LEVELS),
    default=DEFAULT_LEVEL,
    help="Optimisation level of its code.",
)
def unpack(options: SharedOptions, archive: Path, output: Path, places: tuple[str, ...], optimize: str) -> None:
    """Unpack ARCHIVE into a folder that a CMake build includes.

    Files that an earlier unpack wrote are updated or removed. If any other file is in the way, nothing is written and
    the exit status is 6.
    """
    from mlfbuild.usecases import unpack_file

    notify = note_unless_quiet(options)
    result = unpack_file(archive, output, places=places, optimize=optimize, notify=notify)
    if options.json:
        show_json({"directory": output, **vars(result)})
    elif not options.quiet:
        written, unchanged, removed = len(result.written), len(result.unchanged), len(result.removed)
        show(f"{output}: {counted(written, 'file')} written, {unchanged} unchanged, {removed} removed")
