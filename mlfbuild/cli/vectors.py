"""``mlfbuild vectors``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note_all, show_result
from mlfbuild.cli.output.progress import working
from mlfbuild.core import UsageError, counted


@verb("file", "format")
@click.argument("name", metavar="MODEL")
@click.option("--cases", type=click.IntRange(1, 100_000), metavar="N", help="Number of random cases.  [default: 8]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="Seed of the random inputs.  [default: 0]")
@click.option("--from", "inputs", type=FILE, metavar="FILE.npz", help="Inputs of the cases: your own data.")
@click.option("--self", "own", is_flag=True, help="Compute with mlfbuild's own reference.")
def vectors(
    options: SharedOptions, name: str, cases: int | None, seed: int | None, inputs: Path | None, own: bool
) -> None:
    """Compute the vectors of MODEL with another implementation.

    TensorFlow Lite Micro computes the outputs, or LiteRT's reference kernels if it cannot run the model; for .onnx
    files, the ReferenceEvaluator of the package onnx. None installed is exit status 3. Without --cases, --seed and
    --from, the inputs of the present file are used again.

    The file of the model's vectors is written, tests/MODEL.npz if it has none, and src/sample.h if init wrote it.
    Vectors that are not from mlfbuild are never replaced.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import recompute_vectors

    if inputs is not None and (cases is not None or seed is not None):
        raise UsageError.exclusive(
            "--from",
            "the file has the inputs of all cases, and --cases and --seed make random ones",
            "omit --cases and --seed, or --from",
        )
    # The file of the vectors may be missing or outdated: this command writes it.
    project = load(options.file, vectors=False)
    with working(options, f"computing vectors of {name}"):
        found = recompute_vectors(project, name, cases=cases, seed=seed, inputs=inputs, own=own)
    fields = {"model": found.model, "file": found.path, "cases": found.cases, "origin": asdict(found.origin)}
    by = f"outputs by {found.origin.judge}" + ("" if found.origin.checked else ", not by a second implementation")
    text = f"{found.path}: {counted(found.cases, 'case')}, {by}"
    show_result(options, {**fields, "written": found.written, "notes": found.notes}, text)
    note_all(options, [] if options.json else [f"{path}: written; commit it" for path in found.written])
    note_all(options, found.notes)
