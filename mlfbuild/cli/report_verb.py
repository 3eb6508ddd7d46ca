"""The verb that tells whose each byte of an image is."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import note, show, show_json
from mlfbuild.cli.watch import watching
from mlfbuild.errors import OverBudgetError, UsageError


@verb("file", "target", "jobs", "format")
@click.option("--elf", type=click.Path(path_type=Path), metavar="FILE", help="Of this image; no project file needed.")
@click.option(
    "--map", "linker_map", type=click.Path(path_type=Path), metavar="FILE",
    help="With --elf: the linker's map of it, default <elf>.map.",
)  # fmt: skip
@click.option(
    "--update-baseline", "update", is_flag=True, help="Write the sizes to the project's budget-file: they are accepted."
)
@click.option(
    "--operators", is_flag=True, help="Also list the operators of each model, and what its arena holds at its fullest."
)
def report(settings: Settings, elf: Path | None, linker_map: Path | None, update: bool, operators: bool) -> None:
    """Build, then tell whose each byte of each firmware image is.

    Models by code, weights, tables and RAM, with their largest pieces (-v: all of them), then everybody else. The sums
    are those of the linked image. Exit status 1 where one is over its budget, or has grown too much since its baseline.

    With --elf build nothing: tell it of an image that somebody else linked, whose models are its libraries
    libmlf_<model>.a.
    """
    if elf is not None and update:
        raise UsageError("--update-baseline means nothing with --elf: a baseline has the images of a project")
    if elf is not None and operators:
        raise UsageError("--operators means nothing with --elf: they stand in the archives of a project's models")
    if elf is not None:
        _report_of_image(settings, elf, linker_map)
    elif linker_map is not None:
        raise UsageError("--map needs --elf; the images of a project have their map beside them")
    else:
        _report_of_project(settings, update=update, operators=operators)


def _report_of_image(settings: Settings, elf: Path, linker_map: Path | None) -> None:
    from mlfbuild.steps.report import report_json, report_text
    from mlfbuild.steps.sizes import any_image_sizes

    for name in sorted(settings.given & {"file", "target"}):
        raise UsageError(f"--{name} means nothing with --elf: the image is there, whatever it was built for")
    found = any_image_sizes(elf, linker_map)
    if settings.json:
        show_json(report_json([found]))
    elif not settings.quiet:
        show(report_text([found], verbose=settings.verbose))


def _report_of_project(settings: Settings, *, update: bool, operators: bool) -> None:
    from mlfbuild.steps import baseline
    from mlfbuild.steps import report as reports
    from mlfbuild.steps.build import build as build_all
    from mlfbuild.steps.project import firmware_jobs, load, target_jobs

    project = load(settings.file)
    baseline.check_baseline(project, update=update)
    targets = target_jobs(project, settings.target)
    firmware = firmware_jobs(project, targets)
    checked = baseline.unchecked(firmware) if update else firmware
    over = None
    try:
        with watching(settings) as watch:
            build_all(targets, checked, jobs=settings.jobs, progress=watch)
    except OverBudgetError as error:
        over = error
    found = reports.report(firmware)
    if settings.json:
        show_json(reports.report_json(found))
    elif not settings.quiet:
        show(reports.report_text(found, verbose=settings.verbose, operators=operators))
    if over is not None:
        raise over
    if update:
        path, changed = reports.accept(project, found)
        if not settings.quiet:
            note(f"{path}: {'written; commit it' if changed else 'has these sizes already'}")
