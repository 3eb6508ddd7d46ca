"""The verb that tells whose each byte of an image is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import note, show, show_json
from mlfbuild.cli.watch import watching
from mlfbuild.core import OverBudgetError, UsageError

if TYPE_CHECKING:
    from mlfbuild.usecases import Presented

_NO_OPERATORS = {
    "--elf": "--operators means nothing with --elf: they stand in the archives of a project's models",
    "--compare": "--operators means nothing with --compare, which tells of those that changed",
}


@verb("file", "target", "jobs", "frozen", "offline", "format")
@click.option("--elf", type=click.Path(path_type=Path), metavar="FILE", help="Of this image; no project file needed.")
@click.option(
    "--map", "linker_map", type=click.Path(path_type=Path), metavar="FILE",
    help="With --elf: the linker's map of it, default <elf>.map.",
)  # fmt: skip
@click.option(
    "--from", "saved", type=click.Path(path_type=Path), metavar="FILE.json",
    help="Of this report, written before; no project file needed, nothing is built.",
)  # fmt: skip
@click.option(
    "--compare", "old", type=click.Path(path_type=Path), metavar="OLD.json",
    help="Tell what changed since this report, written with -o before.",
)  # fmt: skip
@click.option(
    "-o", "outputs", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="Write the report to FILE, too: text, JSON or HTML by its suffix, .txt, .json or .html; may be repeated.",
)  # fmt: skip
@click.option(
    "--update-baseline", "update", is_flag=True, help="Write the sizes to the project's budget-file: they are accepted."
)
@click.option(
    "--operators", is_flag=True, help="Also list the operators of each model, and what its arena holds at its fullest."
)
@click.option(
    "--profile", is_flag=True, help="Also run each model on its target's board in QEMU and tell its instructions."
)
def report(
    settings: Settings,
    elf: Path | None,
    linker_map: Path | None,
    saved: Path | None,
    old: Path | None,
    outputs: tuple[Path, ...],
    update: bool,
    operators: bool,
    profile: bool,
) -> None:
    """Build, then tell whose each byte of each firmware image is.

    Models by code, weights, tables and RAM, with their largest pieces (-v: all of them), then everybody else. The sums
    are those of the linked image. Exit status 1 where one is over its budget, or has grown too much since its baseline.

    With --elf build nothing: tell it of an image that somebody else linked, whose models are its libraries
    libmlf_<model>.a. With --from tell it of a report that -o wrote as JSON.

    With --compare tell what changed since an older report, the largest change first.
    """
    from mlfbuild.usecases import check_report_output, older as read_older

    _check_options(settings, elf, linker_map, saved, update=update, profile=profile)
    if operators and (elf is not None or old is not None):
        raise UsageError(f"{_NO_OPERATORS['--elf' if elf is not None else '--compare']}; leave it out")
    for path in outputs:
        check_report_output(path, *(source for source in (elf, linker_map, saved, old) if source is not None))
    older = None if old is None else (read_older(old), old)
    show_in = partial(_show, settings, older, outputs)
    if saved is not None:
        _report_saved(saved, show_in, operators=operators)
    elif elf is not None:
        _report_of_image(elf, linker_map, show_in)
    else:
        _report_of_project(settings, show_in, update=update, operators=operators, profile=profile)


def _check_options(
    settings: Settings, elf: Path | None, linker_map: Path | None, saved: Path | None, *, update: bool, profile: bool
) -> None:
    if saved is not None and elf is not None:
        raise UsageError("--from and --elf are two reports; name one of them")
    source = "--elf" if elf is not None else "--from" if saved is not None else ""
    if source and update:
        raise UsageError(
            f"--update-baseline means nothing with {source}: a baseline has the images of a project; leave it out"
        )
    if source and profile:
        raise UsageError(
            f"--profile means nothing with {source}: models run with the inputs and boards of a project; leave it out"
        )
    if linker_map is not None and elf is None:
        raise UsageError("--map needs --elf, as the images of a project have their map beside them; leave it out")
    for name in sorted(settings.given & {"file", "target", "frozen"}) if source else ():
        raise UsageError(f"--{name} means nothing with {source}: the {'image' if elf else 'report'} is there, "
                         "whatever it was built for; leave it out")  # fmt: skip


def _show(
    settings: Settings, older: tuple[Mapping[str, Any], Path] | None, outputs: Sequence[Path], found: Presented
) -> None:
    from mlfbuild.usecases import compared_with

    told = found if older is None else compared_with(found, *older)
    for path in outputs:
        told.write(path)
    if settings.json:
        show_json(told.as_json())
    elif not settings.quiet:
        show(told.as_text(verbose=settings.verbose))
    if not settings.quiet:
        for path in outputs:
            note(f"{path}: written")


def _report_saved(saved: Path, show_in: Callable[[Presented], None], *, operators: bool) -> None:
    from mlfbuild.usecases import saved as saved_report

    show_in(saved_report(saved, operators=operators))


def _report_of_image(elf: Path, linker_map: Path | None, show_in: Callable[[Presented], None]) -> None:
    from mlfbuild.report import any_image_sizes
    from mlfbuild.usecases import presented

    show_in(presented([any_image_sizes(elf, linker_map)]))


def _report_of_project(
    settings: Settings, show_in: Callable[[Presented], None], *, update: bool, operators: bool, profile: bool
) -> None:
    from mlfbuild.build import firmware_jobs, load, target_jobs
    from mlfbuild.report import check_boards, profiled
    from mlfbuild.report.budgets import check_baseline, unchecked
    from mlfbuild.usecases import accept, build_project, presented, report_images

    project = load(settings.file)
    check_baseline(project, update=update)
    targets = target_jobs(project, settings.target)
    firmware = firmware_jobs(project, targets)
    if profile:
        check_boards(firmware)
    checked = unchecked(firmware) if update else firmware
    over = None
    try:
        with watching(settings) as watch:
            if settings.frozen:
                from mlfbuild.usecases import freeze

                targets = freeze(project, targets, jobs=settings.jobs, progress=watch)
            build_project(targets, checked, jobs=settings.jobs, progress=watch)
    except OverBudgetError as error:
        over = error
    found = report_images(firmware)
    if profile:
        with watching(settings) as watch:
            found = profiled(found, watch)
    show_in(presented(found, operators=operators))
    if over is not None:
        raise over
    if update:
        path, changed = accept(project, found)
        if not settings.quiet:
            note(f"{path}: {'written; commit it' if changed else 'has these sizes already'}")
