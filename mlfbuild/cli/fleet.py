"""``mlfbuild fleet report``."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import FILE, SharedOptions, format_option, verb
from mlfbuild.cli.output.printing import copy, note, show, show_as_it_is
from mlfbuild.cli.output.progress import working
from mlfbuild.core import UsageError, counted, listed

if TYPE_CHECKING:
    from mlfbuild.report.fleet import Fleet

_MOST_NOTES = 5


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Do not look for cycles among what is allocated: figures form none, and it takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@verb()
@format_option("text", "json", "csv", "parquet", "markdown")
@click.argument("action", type=click.Choice(["report"]), metavar="report")
@click.argument("folders", type=FILE, nargs=-1, metavar="[DIR]...")
@click.option("--git", "revisions", metavar="OLD..NEW", help="Read the reports that these commits have.")
@click.option("--path", "pattern", metavar="GLOB", help="With --git: paths of reports, default **/*.json.")
@click.option("-o", "outputs", type=FILE, multiple=True, metavar="FILE", help="Write FILE (.html, .csv, ...).")
def fleet(
    options: SharedOptions,
    action: str,  # noqa: ARG001 - the only one
    folders: tuple[Path, ...],
    revisions: str | None,
    pattern: str | None,
    outputs: tuple[Path, ...],
) -> None:
    """Collect the reports of many images and commits in one table.

    The reports are JSON files that `mlfbuild report -o FILE.json` wrote, and baselines of sizes (budget-file): those in
    each DIR, or with --git those that are committed, for each commit of the range. Nothing is built or checked out.
    What was read once is in the cache, so that only new reports are parsed.

    CSV, JSON and Parquet have a row for each commit that changed an image; Parquet needs pyarrow. The page (-o
    fleet.html) also draws the figures over time. The exit status is 5 if a report cannot be read.
    """
    from mlfbuild.report.fleet import check_fleet_output, write_fleet
    from mlfbuild.usecases import check_readable, fleet_report

    _check_options(options, folders, revisions, pattern)
    for path in outputs:
        check_fleet_output(path)
    with _no_garbage_collection():
        with working(options, "reading reports"):
            found, parsed = fleet_report(folders, revisions or "", pattern or "")
        if not options.quiet:
            for line in _notes(found, options, parsed):
                note(line)
        for path in outputs:
            write_fleet(path, found)
        _show(options, found, printed=not outputs)
    if not options.quiet:
        for path in outputs:
            note(f"{path}: written")
    # Last, so that the others are there even if one report is damaged.
    check_readable(found)


def _check_options(
    options: SharedOptions, folders: tuple[Path, ...], revisions: str | None, pattern: str | None
) -> None:
    if revisions is not None and folders:
        raise UsageError.exclusive("--git and DIR", "reports are committed, or files in folders", "omit one")
    if revisions is None and not folders:
        raise UsageError.needs_another(
            "fleet report", "no reports are named", "add folders with reports, or --git OLD..NEW"
        )
    if pattern is not None and revisions is None:
        raise UsageError.needs_another("--path", "it selects committed files", "add --git, or omit it")
    if options.format == "parquet" and sys.stdout.isatty():
        raise UsageError(
            "binary-on-terminal",
            place="--format parquet",
            reason="Parquet is not text, and the output is a terminal",
            hint="use -o fleet.parquet instead",
        )


def _show(options: SharedOptions, found: Fleet, *, printed: bool) -> None:
    from mlfbuild.report import fleet as forms

    if options.format == "parquet":
        copy([forms.fleet_parquet(found)])
    elif options.format in {"csv", "json"}:
        show_as_it_is((forms.fleet_csv if options.format == "csv" else forms.fleet_json)(found).rstrip("\n"))
    elif options.format == "markdown":
        show_as_it_is(forms.fleet_markdown(found))
    elif printed and not options.quiet:
        show(forms.fleet_text(found, verbose=options.verbose))


def _notes(found: Fleet, options: SharedOptions, parsed: int) -> Iterator[str]:
    """Yield what is missing in the overview, or may surprise."""
    if options.verbose:
        yield f"{counted(found.files, 'file')} read, {parsed:,} of them parsed, the others from the cache"
    if found.shallow:
        yield "note: the clone is shallow, so older commits are missing; `git fetch --unshallow` fetches them"
    # The first file that cannot be read now is the error that ends the command.
    lines = [
        f"note: {f'commit {each.commit.id[:8]}: ' if each.commit else ''}{each.problem.place}: {each.problem.reason}"
        for index, each in enumerate(found.unreadable)
        if index or not each.current
    ]
    lines += [
        f"note: {title} is in {counted(len(paths), 'file')}, each with a row: {listed(paths)}"
        for title, paths in found.repeated.items()
    ]
    yield from lines if options.verbose else lines[:_MOST_NOTES]
    if len(lines) > _MOST_NOTES and not options.verbose:
        yield f"note: {counted(len(lines) - _MOST_NOTES, 'more note')}; -v lists all"
