"""``mlfbuild run``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import ARCHIVE, FILE, INPUTS, SharedOptions, complete_board, timeout_option, verb
from mlfbuild.cli.output.printing import show, show_json, show_notes
from mlfbuild.cli.output.progress import working
from mlfbuild.core import InputFileError, ProjectFileError, UsageError, counted, printable

if TYPE_CHECKING:
    from mlfbuild.usecases import ArchiveRun, RunInputs

_NO_SHAPE = "the shape is unknown, because neither metadata, graph, C code nor Relay text of the archive states it"


@verb("file", "one_target", "one_model", "format")
@ARCHIVE
@INPUTS
@click.option("--random", is_flag=True, help="Without --inputs: random numbers instead of zeros.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="Seed of the random numbers; default 0.")
@click.option("-o", "output", type=FILE, metavar="Y.npz", help="Outputs to write by tensor name; default: show them.")
@click.option(
    "--board", metavar="BOARD", help="Emulated board such as mps2-an386; default here.", shell_complete=complete_board
)
@timeout_option(default=60.0)
@click.option("--sandbox", is_flag=True, help="Run in a sandbox (bubblewrap), for untrusted archives.")
def run(
    options: SharedOptions,
    archive: Path,
    inputs: Path | None,
    random: bool,
    seed: int | None,
    output: Path | None,
    board: str | None,
    timeout: float,
    sandbox: bool,
) -> None:
    """Run a network of ARCHIVE, here or on an emulated board.

    ARCHIVE may be a .tflite or .onnx file: it is compiled for this machine, the board, or the target.

    Without --inputs, one case runs, whose inputs are zeros, or random numbers with --random. Without -o, the outputs
    are printed in short.

    With --target, it runs on the device of this target of the project file (runner), or on its board.

    This executes code from ARCHIVE with your permissions: run only archives that you trust, or use --sandbox. The
    sandbox has no network, no home folder, a read-only system, its own temporary folder, and limits of CPU and memory.

    The C code is compiled once: for a separate process on this machine, or into firmware that reads its inputs through
    semihosting. If the code crashes or hangs, the exit status is 7 and nothing is written.
    """
    from mlfbuild.usecases import RunInputs, device_target, run_archive

    _check_random(inputs, random=random, seed=seed)
    # The shared option is repeatable, so that a second name is refused here instead of replacing the first.
    if len(options.model) > 1:
        raise UsageError("too-many-models", place="--model", reason="one network runs", hint="name one model")
    for name, given in {"--board": board is not None, "--sandbox": sandbox, "--file": "file" in options.given}.items():
        if given and bool(options.target) != (name == "--file"):
            reason = "the option applies only to a target" if name == "--file" else "a target has its own device"
            hint = "add --target" if name == "--file" else "omit it with --target"
            raise UsageError.not_applicable(name, reason, hint)
    if len(options.target) > 1:
        raise UsageError("too-many-targets", place="--target", reason="one device runs it", hint="name one target")
    _refuse_name(options, archive)
    target = device_target(options.file, options.target[0]) if options.target else None
    chosen = RunInputs(inputs, (seed or 0) if random else None)
    with working(options, f"running {archive}"):
        result = run_archive(
            archive, next(iter(options.model), None), chosen, output, timeout, board, sandbox=sandbox, target=target
        )
    place = board or result.device
    if options.json:
        where = {"board": board} if board is not None else {"device": result.device} if result.device else {}
        values = {"values": result.as_json()} if output is None else {"file": output}
        show_json({"model": result.model, **where, **_json(result, chosen), "notes": result.notes, **values})
    elif not options.quiet:
        _show(result, chosen, output, f" on {place}" if place else "")
        show_notes(options, result.model, result.notes)


def _check_random(inputs: Path | None, *, random: bool, seed: int | None) -> None:
    if random and inputs is not None:
        raise UsageError.exclusive("--random", "the file has the inputs", "omit --inputs")
    if seed is not None and not random:
        raise UsageError.needs_another("--seed", "the inputs are not random", "add --random")


def _refuse_name(options: SharedOptions, archive: Path) -> None:
    """Raise ``InputFileError`` with the file of the model if ``archive`` is not a file, but a model of the project."""
    if archive.exists() or not options.file.is_file():
        return
    from mlfbuild.project import load_project

    # A project file with mistakes is another matter: this verb needs none.
    with contextlib.suppress(ProjectFileError):
        model = load_project(options.file).models.get(str(archive))
        if model is not None:
            hint = f"for the model of {options.file}, write {model.source}"
            raise InputFileError("no-such-input", place=archive, reason="no such archive", hint=hint)


def _show(result: ArchiveRun, inputs: RunInputs, output: Path | None, on: str) -> None:
    of = f"{counted(result.cases, 'case')} of {result.model}{on}"
    show(f"{output}: {of}" if output is not None else of)
    if inputs.path is None:
        show(f"inputs: {inputs}; name others with --inputs")
    if output is None:
        for tensor in result.inputs:
            show(f"  in   {printable(str(tensor))}")
        first = " (of the first case)" if result.cases > 1 else ""
        for tensor, view in result.views():
            show(f"  out  {printable(str(tensor))}\n       {view}{first}")
    for tensor in result.outputs:
        if tensor.shape is None:
            show(f"{printable(tensor.name)}: {_NO_SHAPE}, so a case is a vector of its elements")


def _json(result: ArchiveRun, inputs: RunInputs) -> dict[str, Any]:
    """Return what ran; only made inputs are described, because a file is one that the user named."""
    made = {} if inputs.path is not None else {"inputs": "zeros" if inputs.seed is None else "random"}
    return {
        "cases": result.cases,
        **made,
        **({} if inputs.seed is None else {"seed": inputs.seed}),
        "outputs": [tensor.name for tensor in result.outputs],
        "shapes": [None if tensor.shape is None else list(tensor.shape) for tensor in result.outputs],
    }
