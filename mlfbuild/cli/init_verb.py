"""The verb that begins a project."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json

_FILE = click.Path(path_type=Path)
_WHAT_FOR = {
    "lock": "get the libraries that its code needs",
    "build": "build",
    "run": "run on QEMU",
    "verify": "check every output on QEMU",
}


@verb("format")
@click.argument("folder", metavar="[DIR]", type=_FILE, default=".")
@click.option(
    "--template",
    default="scons",
    show_default=True,
    metavar="NAME",
    help="scons, cmake, or bare-metal (GNU Make).",
)
@click.option("--model", "source", type=_FILE, metavar="FILE", help="Model file to start with.")
@click.option("--archive", type=_FILE, metavar="FILE", help="Model Library Format archive to start with.")
@click.option("--vectors", type=_FILE, metavar="FILE", help="Inputs and expected outputs (.npz) of the model.")
@click.option("--board", default="mps2-an386", show_default=True, metavar="NAME", help="Board that QEMU emulates.")
def init(
    settings: Settings,
    folder: Path,
    template: str,
    source: Path | None,
    archive: Path | None,
    vectors: Path | None,
    board: str,
) -> None:
    """Write a firmware repo around a model.

    Goes into DIR, or this folder; builds and runs on QEMU as it is. Without --model and --archive it is about a small
    example. Nothing is overwritten: all files are written, or none.
    """
    from mlfbuild.usecases.init import InitRequest, init_project

    report = init_project(InitRequest(folder, template, board, source, archive, vectors))
    if settings.json:
        show_json({"written": report.written, "commands": report.commands, "notes": report.notes})
        return
    if settings.quiet:
        return
    own = report.written[: len(report.written) - report.generated]
    lines = [f"wrote {path}" for path in (report.written if settings.verbose else own)]
    if report.generated and not settings.verbose:
        lines.append(f"wrote {report.generated} files of the model as C (-v lists them)")
    lines += [f"note: {note}" for note in report.notes]
    lines.append(f"next{'' if folder == Path() else f', in {shlex.quote(str(folder))}'}:")
    width = max(len(command) for command in report.commands.values())
    lines += [f"  {command:{width}}   # {_WHAT_FOR[name]}" for name, command in report.commands.items()]
    show("\n".join(lines))
