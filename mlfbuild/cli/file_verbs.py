"""Verbs that work on single files, with no project."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.core import UsageError, counted

_FILE = click.Path(path_type=Path)


_PLACE = click.option(
    "--place", "places", multiple=True, metavar="CLASS=SECTION",
    help="Linker section of params, or weights, biases, tables, workspace, state; may be repeated.",
)  # fmt: skip


@verb("format")
@click.argument("model", type=_FILE)
@click.option("--cpu", required=True, metavar="CPU", help="Processor core to compile for, as cortex-m4 or host.")
@click.option("-O", "options", multiple=True, metavar="KEY=VALUE", help="Option of the compiler; may be repeated.")
@click.option("-o", "output", type=_FILE, required=True, metavar="OUT.tar", help="Archive to write.")
@click.option("--name", metavar="NAME", help="Name of the model in C, default made from the file's name.")
@click.option("--compiler", metavar="NAME", help="native, archive for an archive, or tvm; default by the file.")
@click.option("--executor", metavar="NAME", help="aot or graph; default aot, or what an archive was exported for.")
@click.option("--python", metavar="PROGRAM", help="With --compiler tvm: the Python that has TVM, default python3.")
@_PLACE
def compile_model(
    settings: Settings,
    model: Path,
    cpu: str,
    options: tuple[str, ...],
    output: Path,
    name: str | None,
    compiler: str | None,
    executor: str | None,
    python: str | None,
    places: tuple[str, ...],
) -> None:
    """Compile MODEL into a Model Library Format archive."""
    from mlfbuild.build import (
        check_output,
        compile_job,
        compile_model as compile_archive,
        default_compiler,
        default_name,
        placement_of,
    )

    check_output(output, model)
    job = compile_job(
        name=name or default_name(model),
        source=model,
        cpu=cpu,
        compiler=compiler or default_compiler(model),
        executor=executor,
        options=dict(_option(text) for text in options),
        archive=output,
        python=python,
        placement=placement_of(places),
    )
    made = compile_archive(job)
    if settings.json:
        show_json({"model": job.model, "archive": output, **vars(made)})
    elif not settings.quiet:
        show(f"{output}: model {job.model} for {cpu}, {made.size:,} bytes")
        if settings.verbose:
            workspace = f"{made.workspace:,} bytes{_bound(made.workspace_bound)}"
            show(f"  constants {made.constants:,} bytes, workspace {workspace}")


compile_model.name = "compile"


def _bound(size: int | None) -> str:
    return "" if size is None else f", {size:,} of them in use at one time: no plan of its calls is smaller"


@verb("format")
@click.argument("archive", type=_FILE)
@click.option("-o", "output", type=_FILE, required=True, metavar="DIR", help="Folder to unpack into.")
@_PLACE
def unpack(settings: Settings, archive: Path, output: Path, places: tuple[str, ...]) -> None:
    """Unpack ARCHIVE into a folder that a CMake build includes.

    Files that an earlier unpack wrote there are updated or removed; any other file that is in the way is left alone,
    with exit status 6.
    """
    from mlfbuild.build import placement_of, unpack_archive

    result = unpack_archive(archive, output, placement=placement_of(places))
    if settings.json:
        show_json({"directory": output, **vars(result)})
    elif not settings.quiet:
        written, unchanged, removed = len(result.written), len(result.unchanged), len(result.removed)
        show(f"{output}: {written} files written, {unchanged} unchanged, {removed} removed")


@verb("model", "format")
@click.argument("archive", type=_FILE)
@click.option(
    "--inputs",
    type=_FILE,
    required=True,
    metavar="X.npz",
    help="Arrays in0 or in_NAME or NAME; the first axis counts cases.",
)
@click.option("-o", "output", type=_FILE, required=True, metavar="Y.npz", help="Outputs to write, by tensor name.")
@click.option("--board", metavar="BOARD", help="Run on this board in QEMU, as mps2-an386; default this machine.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
              metavar="SECONDS", help="What one case may take.")  # fmt: skip
def run(settings: Settings, archive: Path, inputs: Path, output: Path, board: str | None, timeout: float) -> None:
    """Run a network of ARCHIVE, here or on an emulated board.

    Its C is compiled once, with this machine's compiler for a process of its own, or into firmware that gets its inputs
    through semihosting: a crash or a hang is exit status 7, and nothing is written.
    """
    from mlfbuild.usecases import run_archive

    if len(settings.model) > 1:
        raise UsageError("--model: name one")
    result = run_archive(archive, next(iter(settings.model), None), inputs, output, timeout, board)
    if settings.json:
        names = [tensor.name for tensor in result.outputs]
        place = {} if board is None else {"board": board}
        show_json({"model": result.model, **place, "cases": result.cases, "outputs": names, "file": output})
    elif not settings.quiet:
        on = "" if board is None else f" on {board}"
        show(f"{output}: {counted(result.cases, 'case')} of {result.model}{on}")


@verb("format")
@click.argument("libraries", nargs=-1, metavar="[MODEL=]LIBRARY...")
@click.option("--list", "listing", type=_FILE, metavar="FILE", help="More of them, one a line.")
@click.option("--image", default="image", metavar="NAME", help="What they are linked into, for messages.")
@click.option("--stamp", type=_FILE, metavar="FILE", help="Empty file to write when nothing is wrong.")
def clashes(
    settings: Settings, libraries: tuple[str, ...], listing: Path | None, image: str, stamp: Path | None
) -> None:
    """Fail where two models that are linked together share a global symbol.

    The step that mlfbuild's CMake package runs before it links. Each LIBRARY is a static library or an object of one
    model; without MODEL= its file name says of which, and =LIBRARY is of none but of the firmware.
    """
    from mlfbuild.usecases import compare_linked

    compared = compare_linked(libraries, listing=listing, image=image, stamp=stamp)
    if settings.json:
        show_json({"image": image, "models": compared})
    elif settings.verbose:
        show(f"{image}: no global symbol of one model in another ({', '.join(compared)})")


def _option(text: str) -> tuple[str, str | int | float | bool]:
    """Split ``key=value``; the value is a number, true or false where it reads like one."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"-O {text}: write KEY=VALUE")
    try:
        read = json.loads(value)
    except ValueError:
        return key, value
    return key, read if isinstance(read, (bool, int, float)) else value
