"""``mlfbuild convert``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import ARCHIVE, OUTPUT, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.core import counted, listed, printable

if TYPE_CHECKING:
    from mlfbuild.archive.repair import RepairedLibrary
    from mlfbuild.usecases import Conversion

_FORMS = ("params", "json", "bson")


@verb("format")
@ARCHIVE
@click.option("--to", "version", type=int, default=7, metavar="VERSION", help="Format version, 1 to 7 (default).")
@click.option("--params", type=click.Choice(_FORMS), default="params", help="Form of the parameters; default params.")
@click.option("--repair", is_flag=True, help="Correct known bugs of exporters, and list them.")
@click.option("--module-name", "names", multiple=True, metavar="[OLD=]NEW", help="Rename a module in all its code.")
@OUTPUT
def convert(
    options: SharedOptions,
    archive: Path,
    version: int,
    params: str,
    repair: bool,
    names: tuple[str, ...],
    output: Path,
) -> None:
    """Write ARCHIVE in another version of the format.

    Nothing is lost: if the version cannot hold the content, such as several modules before version 7, the exit status
    is 2. Rename modules to link archives whose modules have the same name, such as TVM's "default".

    With --repair, mlfbuild corrects the errors of known exporter bugs and lists each correction.
    """
    from mlfbuild.usecases import convert_archive

    done = convert_archive(archive, version, output, names, params, repair=repair)
    if options.json:
        found = {} if done.repair is None else {"repairs": done.repair.repairs, "in_doubt": done.repair.in_doubt}
        show_json({"archive": output, "version": version, "size": done.size, "moved": done.moved, **found})
    elif not options.quiet:
        lines = [] if done.repair is None else _repair_lines(done.repair)
        show("\n".join([*lines, f"{output}: version {version}, {done.size:,} bytes", *_moved_lines(done)]))


def _moved_lines(done: Conversion) -> Iterator[str]:
    """Yield a line for the fields that could not stay in their places."""
    if done.moved:
        fields = counted(len(done.moved), "unknown field")
        yield f"{fields} of the metadata kept in the key mlfbuild: {printable(listed(done.moved))}"


def _repair_lines(result: RepairedLibrary) -> Iterator[str]:
    """Yield a line for each repair and each date in doubt, and one that counts them."""
    for each in result.repairs:
        yield f"repaired {each.code} {each.place}: {each.before} -> {each.after}"
    for date in result.in_doubt:
        yield f"unchanged MLF206 {date.place}: {date.reason}"
    yield counted(len(result.repairs), "repair") if result.repairs else "nothing to repair"
