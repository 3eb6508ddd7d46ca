"""``mlfbuild report``."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note, note_all, report_error, show, show_as_it_is, show_json
from mlfbuild.cli.output.progress import building
from mlfbuild.core import LinkFaultsError, UsageError

if TYPE_CHECKING:
    from mlfbuild.project import Project
    from mlfbuild.report import ReportDocument
    from mlfbuild.usecases import LinkReport, ProjectReport

_ONLY_OF_PROJECTS = {
    "--update-baseline": "a baseline has the images of a project",
    "--profile": "models run with the inputs and boards of a project",
}


@verb("file", "target", "model", "jobs", "on", "frozen", "offline", "no_wait", "summary_format")
@click.option("--elf", type=FILE, metavar="FILE", help="Report this image; no project needed.")
@click.option("--map", "linker_map", type=FILE, metavar="FILE", help="With --elf: its map, default <elf>.map.")
@click.option("--fail-over-budget", "check", is_flag=True, help="With --elf: exit with 1 if it is over a budget.")
@click.option("--budgets", type=FILE, metavar="FILE", help="Compare with this budgets.json, not the project file.")
@click.option("--firmware", metavar="NAME", help="The firmware that the image is; default: its name.")
@click.option("--from", "saved", type=FILE, metavar="FILE.json", help="Show this saved report; build nothing.")
@click.option("--compare", "old", type=FILE, metavar="OLD.json", help="Show what changed since this report.")
@click.option("-o", "outputs", type=FILE, multiple=True, metavar="FILE", help="Also write FILE (.txt, .json, .html).")
@click.option("--update-baseline", "update", is_flag=True, help="Accept the sizes: write the budget-file.")
@click.option("--operators", is_flag=True, help="Also list the operators and peak RAM of each model.")
@click.option("--profile", is_flag=True, help="Also count instructions and model cycles of each model.")
def report(
    options: SharedOptions,
    elf: Path | None,
    linker_map: Path | None,
    check: bool,
    budgets: Path | None,
    firmware: str | None,
    saved: Path | None,
    old: Path | None,
    outputs: tuple[Path, ...],
    update: bool,
    operators: bool,
    profile: bool,
) -> None:
    """Build, then report the flash and RAM that each model uses.

    The report lists code, weights, tables and RAM of each model with its largest parts (-v: all of them), then the
    firmware and the libraries. The sums are those of the linked image. The exit status is 1 if an image is over its
    budget, has grown too much since its baseline, or if the linker put data of a model in a wrong place.

    With --elf, build nothing and report an image of any build; its models are the libraries libmlf_<model>.a or the
    objects <model>_lib0.o in the linker map. Add --fail-over-budget to compare it with the budgets of the project file,
    or of a tree's budgets.json: those of flash, RAM and stack; budgets that require a run are listed with the command
    that checks them.

    With --from, show a report that was written with `-o FILE.json`. With --compare, show what changed since such a
    report, the largest change first.
    """
    from mlfbuild.jobs import load
    from mlfbuild.report import check_report_output, compared_with, read_report, saved_report
    from mlfbuild.usecases import ProjectReport, accept_sizes

    given = {"--elf": elf, "--map": linker_map, "--from": saved, "--compare": old, "--budgets": budgets}
    flags = {"--update-baseline": update, "--profile": profile, "--operators": operators, "--fail-over-budget": check}
    _check_options(options, {**given, **flags, "--firmware": firmware})
    # Before the build, which may take minutes; a damaged file ends the command at once.
    for path in outputs:
        check_report_output(path, *(source for source in (elf, linker_map, saved, old) if source is not None))
    before = None if old is None else (read_report(old), old)
    built: ProjectReport | LinkReport | None = None
    document: ReportDocument | None
    if saved is not None:
        document = saved_report(saved, operators=operators)
    elif elf is not None and check:
        built = _linked(options, elf, linker_map, budgets, firmware or "")
        document = built.document
    elif elf is not None:
        document = _of_image(options, elf, linker_map)
    else:
        project = options.placed(load(options.file))
        built = _built(project, options, operators=operators, profile=profile, accept=update)
        document = built.document
    if document is not None:
        _show(options, document if before is None else compared_with(document, *before), outputs)
    # After the report, which shows what is wrong. A baseline is accepted only from images without faults.
    _raise_failures(options, built, document)
    if isinstance(built, ProjectReport) and update:
        path, changed = accept_sizes(project, built.images)
        note_all(options, [f"{path}: {'written; commit it' if changed else 'has these sizes already'}"])


def _check_options(options: SharedOptions, given: Mapping[str, object]) -> None:
    """Refuse options of the report that exclude each other, or that need another one; ``given`` has their values."""
    elf, check = given["--elf"], given["--fail-over-budget"]
    if given["--from"] is not None and elf is not None:
        raise UsageError.exclusive("--from and --elf", "these are two reports", "omit one")
    if given["--map"] is not None and elf is None:
        raise UsageError.needs_another(
            "--map", "images of a project have their map beside them", "add --elf, or omit it"
        )
    source = "--elf" if elf is not None else "--from" if given["--from"] is not None else ""
    reasons = {name: reason for name, reason in _ONLY_OF_PROJECTS.items() if given[name]}
    shared = sorted(options.given & ({"frozen"} if check else {"file", "target", "frozen"}))
    reasons |= dict.fromkeys([f"--{name}" for name in shared], "nothing is built")
    for name, reason in reasons.items() if source else ():
        raise UsageError.not_applicable(name, reason, f"omit it with {source}")
    if check and elf is None:
        raise UsageError.needs_another(
            "--fail-over-budget",
            "a build of the project fails anyway if an image is over its budget",
            "omit it, or name an image of another build with --elf",
        )
    of_budgets = {"--budgets": given["--budgets"], "--firmware": given["--firmware"], "--model": options.model or None}
    for name in (name for name, value in of_budgets.items() if value is not None and not check):
        raise UsageError.needs_another(
            name, "the option selects the budgets of an image", "add --elf FILE --fail-over-budget, or omit it"
        )
    if given["--budgets"] is not None and options.given & {"file", "target"}:
        both = f"--budgets and --{min(options.given & {'file', 'target'})}"
        raise UsageError.exclusive(both, "the file has the budgets of one target", "omit one")
    other = next((name for name in ("--elf", "--compare") if given[name] is not None), "")
    if given["--operators"] and other:
        reason = "operators are listed in the archives of a project"
        raise UsageError.not_applicable(
            "--operators", reason if elf else "a comparison lists no operators", f"omit it with {other}"
        )


def _raise_failures(
    options: SharedOptions, built: ProjectReport | LinkReport | None, document: ReportDocument | None
) -> None:
    """Raise the error about budgets, or else about faults of links; report the other one."""
    from mlfbuild.usecases import LinkReport

    if isinstance(built, LinkReport):
        failures = built.errors
    else:
        excess = built.over_budget if built is not None else None
        failures = [excess] if excess is not None else []
        # If the build failed because of its link, its error has the faults already.
        if document is not None and not isinstance(excess, LinkFaultsError) and (faults := document.faults()):
            failures.insert(0, LinkFaultsError(faults))
    for failure in failures[:-1]:
        report_error(failure, options.format)
    if failures:
        raise failures[-1]


def _of_image(options: SharedOptions, elf: Path, linker_map: Path | None) -> ReportDocument:
    """Return the report of an image; print that it is not compared with the budgets that a project file mentions."""
    from mlfbuild.usecases import report_image

    document = report_image(elf, linker_map)
    with contextlib.suppress(OSError):
        # The file is not parsed: it may have mistakes, and this command needs no project.
        if b"budget" in options.file.read_bytes() and not options.quiet:
            note(f"{elf}: not compared with the budgets in {options.file}; add --fail-over-budget")
    return document


def _linked(options: SharedOptions, elf: Path, linker_map: Path | None, file: Path | None, firmware: str) -> LinkReport:
    """Return the report of an image that another build linked, and print the budgets that it does not check."""
    from mlfbuild.jobs import load, read_budgets
    from mlfbuild.usecases import report_link, target_budgets

    found = target_budgets(load(options.file), options.target) if file is None else read_budgets(file)
    result = report_link(elf, linker_map, found, models=options.model, firmware=firmware)
    for line in result.unchecked:
        note(f"mlfbuild: {elf.name}: not checked: {line}")
    return result


def _built(project: Project, options: SharedOptions, *, operators: bool, profile: bool, accept: bool) -> ProjectReport:
    from mlfbuild.usecases import report_project

    with building(options, project) as progress:
        return report_project(
            project,
            options.target,
            operators=operators,
            profile=profile,
            accept=accept,
            frozen=options.frozen,
            jobs=options.jobs,
            progress=progress,
        )


def _show(options: SharedOptions, document: ReportDocument, outputs: tuple[Path, ...]) -> None:
    for path in outputs:
        document.write(path)
    if options.json:
        show_json(document.as_json())
    elif options.format == "markdown":
        show_as_it_is(document.as_markdown())
    elif not options.quiet:
        show(document.as_text(verbose=options.verbose))
    note_all(options, [f"{path}: written" for path in outputs])
