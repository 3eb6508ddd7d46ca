"""``mlfbuild split``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json


@verb("model", "format")
@ARCHIVE
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="OUT",
    help="Output folder, or output archive of one module.",
)
def split(options: SharedOptions, archive: Path, output: Path) -> None:
    """Write each module of ARCHIVE as an archive.

    OUT is a folder, which gets an archive <module>.tar for each module. With one --model NAME, OUT is the archive of
    this module. Files that several modules need are copied. If another file is in the way, nothing is written and the
    exit status is 6.
    """
    from mlfbuild.usecases import split_archive

    written = split_archive(archive, output, options.model)
    if options.json:
        show_json({"archives": written})
    elif not options.quiet:
        show("\n".join(f"{each.archive}: module {each.module}, {each.size:,} bytes" for each in written))
