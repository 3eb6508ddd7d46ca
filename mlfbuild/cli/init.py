"""``mlfbuild init``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, complete_board, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.core import text_table

_FILE = click.Path(path_type=Path)
_PURPOSE = {
    "lock": "get the libraries that its code needs",
    "build": "build",
    "run": "run on QEMU",
    "verify": "check every output on QEMU",
}


@verb("format")
@click.argument("folder", metavar="[DIR]", type=_FILE, default=".")
@click.option("--template", default="scons", metavar="NAME", help="scons (default), cmake or bare-metal (Make).")
@click.option("--model", "source", type=_FILE, metavar="FILE", help="Model file to start with.")
@click.option("--archive", type=_FILE, metavar="FILE", help="Archive to start with.")
@click.option("--vectors", type=_FILE, metavar="FILE", help="Inputs and expected outputs of the model.")
@click.option(
    "--board",
    default="mps2-an386",
    metavar="NAME",
    help="Emulated board, default mps2-an386.",
    shell_complete=complete_board,
)
def init(
    options: SharedOptions,
    folder: Path,
    template: str,
    source: Path | None,
    archive: Path | None,
    vectors: Path | None,
    board: str,
) -> None:
    """Create a firmware project around a model.

    The project is written to DIR, or to this folder, and builds and runs on QEMU as it is. Without --model and
    --archive it contains a small example. Existing files are not overwritten: either all files are written, or none.
    """
    from mlfbuild.usecases.init import InitRequest, init_project

    report = init_project(InitRequest(folder, template, board, source, archive, vectors))
    if options.json:
        show_json({"written": report.written, "commands": report.commands, "notes": report.notes})
        return
    if options.quiet:
        return
    own = report.written[: len(report.written) - report.generated]
    lines = [f"wrote {path}" for path in (report.written if options.verbose else own)]
    if report.generated and not options.verbose:
        lines.append(f"wrote {report.generated} files of the model as C (-v lists them)")
    lines += [f"note: {note}" for note in report.notes]
    lines.append(f"next{'' if folder == Path() else f', in {shlex.quote(str(folder))}'}:")
    commands = [(command, f" # {_PURPOSE[name]}") for name, command in report.commands.items()]
    show("\n".join([*lines, text_table(commands, indent=2)]))
