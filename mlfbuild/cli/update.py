"""``mlfbuild update``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note_all, show_result
from mlfbuild.cli.output.progress import building
from mlfbuild.core import change_text, counted, printable, text_table

if TYPE_CHECKING:
    from mlfbuild.usecases import ModelUpdate, OutputDifference, UpdatedFigure


@verb("file", "target", "jobs", "offline", "no_wait", "format")
@click.argument("name", metavar="MODEL")
@click.argument("new", metavar="FILE", type=FILE)
@click.option("--vectors", type=FILE, metavar="FILE.npz", help="Inputs and outputs of the new version.")
@click.option("--check", is_flag=True, help="Only compare; write nothing.")
@click.option("--accept", is_flag=True, help="Replace the file even if the interface differs.")
def update(options: SharedOptions, name: str, new: Path, vectors: Path | None, check: bool, accept: bool) -> None:
    """Replace the file of MODEL by FILE, a newer version.

    Both versions are built and compared: the interface that firmware was built with, sizes, instructions on emulated
    boards, and outputs for the inputs of the model's vectors. Then FILE replaces the model's source, and the lock file
    is written. If the interface differs, the exit status is 1 and nothing is replaced.

    With --vectors, the new version must have their outputs, and they replace the model's vectors. Without it, vectors
    that mlfbuild computed are computed again, and others stay as they are, which a note says. If FILE is the
    model's own file, which was replaced already, it is compared with the archive of the last build.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import update_model

    project = load(options.file)
    with building(options, project) as progress:
        found = update_model(
            project,
            name,
            new,
            options.target,
            vectors=vectors,
            check=check,
            accept=accept,
            offline=options.offline,
            jobs=options.jobs,
            progress=progress,
        )
    show_result(options, _json(found), "\n".join(_lines(found)))
    # After the comparison was printed, which shows what differs.
    if found.problem is not None and not accept:
        raise found.problem
    note_all(options, [f"{path}: replaced; commit it" for path in found.written])
    if found.locked is not None and found.locked.written:
        note_all(options, [f"{found.locked.path}: written; commit it"])


def _json(found: ModelUpdate) -> dict[str, Any]:
    return {
        "model": found.model,
        "source": found.source,
        "interface": [asdict(each) for each in found.interface],
        "same_header": found.same_header,
        "figures": [asdict(each) for each in found.figures],
        "outputs": [asdict(each) for each in found.outputs],
        "notes": found.notes,
        "written": found.written,
        "lock": None if found.locked is None else {"path": found.locked.path, "changes": found.locked.changes},
    }


def _lines(found: ModelUpdate) -> Iterator[str]:
    if found.interface:
        yield "interface:"
        yield from (f"  {each.port}: {printable(each.before)} -> {printable(each.now)}" for each in found.interface)
    else:
        yield "interface: unchanged"
    if found.same_header:
        yield "header: unchanged, so no source of the firmware is compiled again"
    yield ""
    rows = [_row(each) for each in found.figures]
    yield text_table(rows, header=("", "before", "now", "change"), align="lrrr")
    if found.outputs or found.notes:
        yield ""
    # New vectors, which were written or will be, so that differences from the old ones need no action.
    then = "so that `verify` will fail: pass new ones with --vectors"
    if any(path.suffix == ".npz" for path in found.written):
        then = "which were computed again"
    elif found.renewable and not found.written:
        then = "which are computed again when the file is replaced"
    yield from (_output(each, then) for each in found.outputs)
    yield from (f"note: {line}" for line in found.notes)


def _row(figure: UpdatedFigure) -> tuple[str, ...]:
    before, now = figure.before or 0, figure.now or 0
    return f"{figure.name}, {figure.target}", f"{before:,}", f"{now:,}", change_text(before, now)


def _output(output: OutputDifference, then: str) -> str:
    name, cases = printable(output.name), counted(output.cases, "case")
    if not output.different:
        text = f"output {name}: equal in {cases}"
    else:
        text = (
            f"output {name}: differs in {output.different:,} of {cases}, by at most {output.largest:g}; "
            f"the greatest element is another one in {output.decisions:,}"
        )
    if output.expected is not None and output.expected < output.cases:
        wrong = output.cases - output.expected
        text += f"\n  {wrong:,} of {cases} differ from the vectors, {then}"
    return text
