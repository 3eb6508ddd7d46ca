"""``mlfbuild run``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, SharedOptions, complete_board, inputs_option, timeout_option, verb
from mlfbuild.cli.output.printing import show, show_json, show_notes
from mlfbuild.cli.output.progress import working
from mlfbuild.core import UsageError, counted, printable

_NO_SHAPE = "the shape is unknown, because neither metadata, graph, C code nor Relay text of the archive states it"
_FILE = click.Path(path_type=Path)


@verb("file", "one_target", "one_model", "format")
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

    ARCHIVE may be a .tflite or .onnx file: it is compiled for this machine, the board, or the target.

    With --target, it runs on the device of this target of the project file (runner), or on its board.

    This executes code from ARCHIVE with your permissions: run only archives that you trust, or use --sandbox. The
    sandbox has no network, no home folder, a read-only system, its own temporary folder, and limits of CPU and memory.

    The C code is compiled once: for a separate process on this machine, or into firmware that reads its inputs through
    semihosting. If the code crashes or hangs, the exit status is 7 and nothing is written.
    """
    from mlfbuild.usecases import device_target, run_archive

    # The shared option is repeatable, so that a second name is refused here instead of replacing the first.
    if len(options.model) > 1:
        raise UsageError("too-many-models", place="--model", reason="one network runs", hint="name one model")
    for name, given in {"--board": board is not None, "--sandbox": sandbox, "--file": "file" in options.given}.items():
        if given and bool(options.target) != (name == "--file"):
            reason = "the option applies only to a target" if name == "--file" else "a target has its own device"
            hint = "add --target" if name == "--file" else "omit it with --target"
            raise UsageError("option-not-applicable", place=name, reason=reason, hint=hint)
    if len(options.target) > 1:
        raise UsageError("too-many-targets", place="--target", reason="one device runs it", hint="name one target")
    target = device_target(options.file, options.target[0]) if options.target else None
    with working(options, f"running {archive}"):
        result = run_archive(
            archive, next(iter(options.model), None), inputs, output, timeout, board, sandbox=sandbox, target=target
        )
    if options.json:
        names = [tensor.name for tensor in result.outputs]
        shapes = [None if tensor.shape is None else list(tensor.shape) for tensor in result.outputs]
        place = {"board": board} if board is not None else {"device": result.device} if result.device else {}
        counts = {"cases": result.cases, "outputs": names, "shapes": shapes}
        show_json({"model": result.model, **place, **counts, "notes": result.notes, "file": output})
    elif not options.quiet:
        on = f" on {board or result.device}" if board or result.device else ""
        show(f"{output}: {counted(result.cases, 'case')} of {result.model}{on}")
        for tensor in result.outputs:
            if tensor.shape is None:
                show(f"{printable(tensor.name)}: {_NO_SHAPE}, so a case is a vector of its elements")
        show_notes(options, result.model, result.notes)
