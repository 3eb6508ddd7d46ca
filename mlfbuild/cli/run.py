"""``mlfbuild run``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, SharedOptions, complete_board, inputs_option, timeout_option, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.cli.progress import working
from mlfbuild.core import UsageError, counted

_FILE = click.Path(path_type=Path)


@verb("model", "format")
@ARCHIVE
@inputs_option(required=True)
@click.option("-o", "output", type=_FILE, required=True, metavar="Y.npz", help="Outputs to write, by tensor name.")
@click.option(
    "--board", metavar="BOARD", help="Emulated board such as mps2-an386; default here.", shell_complete=complete_board
)
@timeout_option(default=60.0)
@click.option("--sandbox", is_flag=True, help="Run in a sandbox (bubblewrap), for untrusted archives.")
def run(
    options: SharedOptions,
    archive: Path,
    inputs: Path,
    output: Path,
    board: str | None,
    timeout: float,
    sandbox: bool,
) -> None:
    """Run a network of ARCHIVE, here or on an emulated board.

    ARCHIVE may be a .tflite or .onnx file: it is compiled for this machine, or for the board.

    This executes code from ARCHIVE with your permissions: run only archives that you trust, or use --sandbox. The
    sandbox has no network, no home folder, a read-only system, an own temporary folder, and limits of CPU and memory.

    The C code is compiled once: for a separate process on this machine, or into firmware that reads its inputs through
    semihosting. If the code crashes or hangs, the exit status is 7 and nothing is written.
    """
    from mlfbuild.usecases import run_archive

    if len(options.model) > 1:
        raise UsageError("too-many-models", place="--model", reason="one network runs", hint="name one model")
    with working(options, f"running {archive}"):
        result = run_archive(archive, next(iter(options.model), None), inputs, output, timeout, board, sandbox=sandbox)
    if options.json:
        names = [tensor.name for tensor in result.outputs]
        place = {} if board is None else {"board": board}
        show_json({"model": result.model, **place, "cases": result.cases, "outputs": names, "file": output})
    elif not options.quiet:
        on = "" if board is None else f" on {board}"
        show(f"{output}: {counted(result.cases, 'case')} of {result.model}{on}")
