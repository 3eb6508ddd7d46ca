"""``mlfbuild report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output import note, show, show_json
from mlfbuild.cli.progress import building
from mlfbuild.core import LinkFaultsError, UsageError

if TYPE_CHECKING:
    from mlfbuild.project import Project
    from mlfbuild.report import ReportDocument
    from mlfbuild.usecases import ProjectReport

_FILE = click.Path(path_type=Path)
_ONLY_OF_PROJECTS = {
    "--update-baseline": "a baseline has the images of a project",
    "--profile": "models run with the inputs and boards of a project",
}


@verb("file", "target", "jobs", "frozen", "offline", "no_wait", "format")
@click.option("--elf", type=_FILE, metavar="FILE", help="Report this image; no project needed.")
@click.option("--map", "linker_map", type=_FILE, metavar="FILE", help="With --elf: its map, default <elf>.map.")
@click.option("--from", "saved", type=_FILE, metavar="FILE.json", help="Show this saved report; build nothing.")
@click.option("--compare", "old", type=_FILE, metavar="OLD.json", help="Show what changed since this report.")
@click.option("-o", "outputs", type=_FILE, multiple=True, metavar="FILE", help="Also write FILE (.txt, .json, .html).")
@click.option("--update-baseline", "update", is_flag=True, help="Accept the sizes: write the budget-file.")
@click.option("--operators", is_flag=True, help="Also list the operators and peak RAM of each model.")
@click.option("--profile", is_flag=True, help="Also count the instructions of each model in QEMU.")
def report(
    options: SharedOptions,
    elf: Path | None,
    linker_map: Path | None,
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
    objects <model>_lib0.o in the linker map. With --from, show a report that was written with `-o FILE.json`. With
    --compare, show what changed since such a report, the largest change first.
    """
    from mlfbuild.build import load
    from mlfbuild.report import check_report_output, compared_with, read_report, saved_report
    from mlfbuild.usecases import accept_sizes, report_image

    _check_options(options, elf, linker_map, saved, {"--update-baseline": update, "--profile": profile})
    if operators and (elf is not None or old is not None):
        raise UsageError(
            "option-not-applicable",
            place="--operators",
            reason="operators are listed in the archives of a project" if elf else "a comparison lists no operators",
            hint=f"omit it with {'--elf' if elf else '--compare'}",
        )
    for path in outputs:
        check_report_output(path, *(source for source in (elf, linker_map, saved, old) if source is not None))
    before = None if old is None else (read_report(old), old)
    built: ProjectReport | None = None
    if saved is not None:
        document = saved_report(saved, operators=operators)
    elif elf is not None:
        document = report_image(elf, linker_map)
    else:
        project = load(options.file)
        built = _built(project, options, operators=operators, profile=profile, accept=update)
        document = built.document
    _show(options, document if before is None else compared_with(document, *before), outputs)
    if built is not None and built.over_budget is not None:
        raise built.over_budget
    faults = document.faults()
    if faults:
        raise LinkFaultsError(faults)
    if built is not None and update:
        path, changed = accept_sizes(project, built.images)
        if not options.quiet:
            note(f"{path}: {'written; commit it' if changed else 'has these sizes already'}")


def _check_options(
    options: SharedOptions, elf: Path | None, linker_map: Path | None, saved: Path | None, flags: dict[str, bool]
) -> None:
    if saved is not None and elf is not None:
        raise UsageError(
            "options-exclude-each-other", place="--from and --elf", reason="these are two reports", hint="omit one"
        )
    if linker_map is not None and elf is None:
        raise UsageError(
            "option-needs-another",
            place="--map",
            reason="images of a project have their map beside them",
            hint="add --elf, or omit it",
        )
    source = "--elf" if elf is not None else "--from" if saved is not None else ""
    if not source:
        return
    reasons = {name: _ONLY_OF_PROJECTS[name] for name, given in flags.items() if given}
    shared = sorted(options.given & {"file", "target", "frozen"})
    reasons |= dict.fromkeys([f"--{name}" for name in shared], "nothing is built")
    for name, reason in reasons.items():
        raise UsageError("option-not-applicable", place=name, reason=reason, hint=f"omit it with {source}")


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
    elif not options.quiet:
        show(document.as_text(verbose=options.verbose))
    if not options.quiet:
        for path in outputs:
            note(f"{path}: written")
