"""``mlfbuild parameters``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from mlfbuild.cli.options import FILE, SharedOptions, setting, verb
from mlfbuild.cli.output.printing import show_result
from mlfbuild.cli.output.progress import working
from mlfbuild.core import UsageError


@verb("file", "format")
@click.argument("new", type=FILE, metavar="NEW")
@click.option("--for", "firmware", required=True, metavar="MODEL", help="Model of the project, or archive OLD.tar.")
@click.option("-o", "output", type=FILE, required=True, metavar="BLOB", help="Blob to write.")
@click.option("--number", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Your version of the values.")
@click.option("--vectors", type=FILE, metavar="X.npz", help="Inputs for both networks; default MODEL's vectors.")
@click.option(
    "--self-test", "tests", type=click.IntRange(0, 1000), default=0, metavar="N", help="Test vectors in the blob."
)
@click.option("--target", metavar="NAME", help="Target of the project file.")
@click.option("-O", "settings", multiple=True, metavar="KEY=VALUE", help="Compiler option of OLD.tar; repeatable.")
def parameters(
    options: SharedOptions,
    new: Path,
    firmware: str,
    output: Path,
    number: int,
    vectors: Path | None,
    tests: int,
    target: str | None,
    settings: tuple[str, ...],
) -> None:
    """Write the values of NEW as a blob for firmware in the field.

    NEW is a .tflite or .onnx file, or an archive. MODEL is the one that the firmware was built with, and has the key
    `parameters: replaceable`. If NEW has another structure, the message names the first operator that differs, and the
    exit status is 1. Both networks run on this machine with the vectors of MODEL, and their outputs are compared.

    Keep the archive of each release and pass it as MODEL, because sources and mlfbuild change.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import NewParameters, make_parameters

    of_archive = Path(firmware).suffix == ".tar"
    if of_archive and ("file" in options.given or target is not None):
        option = "--file" if target is None else "--target"
        raise UsageError.not_applicable(option, f"{firmware} records its core", "omit it, or name a model with --for")
    chosen = dict(setting(each) for each in settings)
    wanted = NewParameters(new, firmware, output, number, vectors, tests, target, chosen)
    project = None if of_archive else load(options.file)
    with working(options, f"comparing {new} with {firmware}"):
        made = make_parameters(wanted, project)
    show_result(options, {**asdict(made), "path": str(made.path)}, made.text())
