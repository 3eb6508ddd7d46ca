"""``mlfbuild add``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note, show, show_json
from mlfbuild.cli.output.progress import showing_progress
from mlfbuild.core.keys import size_text


@verb("file", "target", "jobs", "format")
@click.argument("source", metavar="MODEL", type=FILE)
@click.option("--name", metavar="NAME", help="Name in C; default: that of the file.")
def add(options: SharedOptions, source: Path, name: str | None) -> None:
    """Add a model to the project file.

    MODEL is a model file or an archive in the project's folder. It is compiled for its targets: all, or those of
    --target. The entry has the model's vectors, which another implementation computes as for `mlfbuild vectors`, and a
    budget of today's flash and RAM and a tenth of them. All other lines of the project file stay as they are; if
    anything fails, no file is changed.

    Prints the inputs and outputs, and C that calls the model.
    """
    from mlfbuild.usecases import add_model

    with showing_progress(options) as progress:
        added = add_model(options.file, source, name, options.target, jobs=options.jobs, progress=progress)
    if options.json:
        show_json({**vars(added), "interface": added.interface.splitlines()})
        return
    if options.quiet:
        return
    show(f"{added.project}: model {added.name} added\n{added.interface}")
    if added.budget:
        sizes = ", ".join(f"{memory} {size_text(size)}" for memory, size in added.budget.items())
        show(f"budget: {sizes}, a tenth above today's sizes")
    show(f"\n{added.code.rstrip()}")
    for line in added.notes:
        note(line)
