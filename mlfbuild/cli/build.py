"""``mlfbuild build``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.markdown import usage_markdown
from mlfbuild.cli.output.printing import note, note_all, show, show_as_it_is, show_json, show_notes
from mlfbuild.cli.output.progress import building
from mlfbuild.cli.output.usage import show_usages
from mlfbuild.core import UsageError

if TYPE_CHECKING:
    from mlfbuild.jobs import FirmwareJob, TargetJob
    from mlfbuild.project import Project
    from mlfbuild.usecases import ModelResult


def _shard(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", value)
    if found is None or int(found[1]) > int(found[2]):
        raise click.BadParameter(f"{value!r}: write it as 3/8, from 1/8 to 8/8")
    return int(found[1]), int(found[2])


@verb("file", "target", "model", "jobs", "on", "frozen", "offline", "no_wait", "summary_format")
@click.option("--tree", type=FILE, metavar="DIR", help="Write the trees of one target to DIR.")
@click.option("--with-verify", is_flag=True, help="With --tree: add test firmware of each model.")
@click.option(
    "--for", "systems", multiple=True, metavar="SYSTEM", help="With --tree: make a package for SYSTEM; repeatable."
)
@click.option("--affected-by", metavar="REV", help="Build only what changed since the Git commit.")
@click.option("--shard", callback=_shard, metavar="I/N", help="Build part I of N, for CI jobs side by side.")
@click.option("--store-durations", is_flag=True, help="Write how long everything took, for --shard.")
@click.option("--recheck", type=click.IntRange(min=1), metavar="N", help="With --on dask: make N results here too.")
def build(
    options: SharedOptions,
    tree: Path | None,
    with_verify: bool,
    systems: tuple[str, ...],
    affected_by: str | None,
    shard: tuple[int, int] | None,
    store_durations: bool,
    recheck: int | None,
) -> None:
    """Compile and unpack every model, then build every firmware.

    Files that are up to date are not built again.

    With --tree, write the models of one target to a folder that you commit, and build no firmware. Builds of that
    folder need no mlfbuild and no Python. With --with-verify it includes test firmware for `mlfbuild verify --elf`.
    With --for it is also a package of another build system: zephyr, rt-thread, esp-idf, platformio, arduino,
    cmsis-toolbox, nuttx or rust.

    With --affected-by, build the images and models whose inputs differ from those of a commit, such as origin/main.
    --shard divides images by the times in mlfbuild-durations.json, which --store-durations writes and you commit.

    With --recheck, N of the archives that workers made, and N images, are also made here. One that differs is not kept.
    """
    from mlfbuild.jobs import firmware_jobs, load, target_jobs
    from mlfbuild.project import DASK
    from mlfbuild.usecases import build_project, ranked_memories, unchecked_budgets

    if tree is None and (with_verify or systems):
        raise UsageError.needs_another(
            "--with-verify" if with_verify else f"--for {systems[0]}",
            "the option applies only to a folder that you commit",
            "add --tree with the folder, or run `mlfbuild verify` to verify this project",
        )
    if tree is not None and (affected_by is not None or shard is not None or store_durations):
        option = "--affected-by" if affected_by is not None else "--shard" if shard else "--store-durations"
        raise UsageError.not_applicable(option, "a tree that you commit is always whole", f"omit {option}")
    project = options.placed(load(options.file))
    if recheck and project.jobs.engine != DASK:
        raise UsageError.needs_another(
            "--recheck", "this machine compiles all models", "add --on dask, or leave it out"
        )
    targets = target_jobs(project, options.target, options.model)
    firmware = firmware_jobs(project, targets) if tree is None else []
    if affected_by is not None or shard is not None:
        targets, firmware = _part(options, project, targets, firmware, affected_by, shard)
    if tree is not None:
        from mlfbuild.jobs import committed

        targets = [committed(project, targets, tree, with_verify=with_verify, systems=systems)]
    with building(options, project) as progress:
        report = build_project(
            targets,
            firmware,
            lenders=target_jobs(project),
            jobs=options.jobs,
            progress=progress,
            locked=project if options.frozen else None,
            # No firmware is built for a tree that is committed, so its compilers need not be those of the lock file.
            toolchains=tree is None,
            recheck=recheck or 0,
        )
    if store_durations:
        _store_durations(options, project, targets, firmware)
    budgets = {name: model.budget for name, model in project.models.items()}
    usages = [*report.usages(budgets, everything=options.format == "markdown")]
    show_usages(options, usages)
    if options.json:
        images = [{"firmware": job.name, "target": job.target.name, "elf": job.elf} for job in report.firmware]
        show_json({"models": [model_json(result) for result in report.models], "firmware": images})
    elif options.format == "markdown":
        show_as_it_is(usage_markdown(usages))
    elif not options.quiet:
        trees = [f"{result.job.title}: {result.job.tree}" for result in report.models]
        packages = [f"{target.tree}: package for {', '.join(target.systems)}" for target in targets if target.systems]
        show("\n".join([*trees, *packages, *(f"{job.title}: {job.elf}" for job in report.firmware)]))

    note_all(options, unchecked_budgets(project) if tree is None else (), "warning: ")
    planned = dict.fromkeys(
        result.job.target for result in report.models if result.compiled and result.job.request.memories
    )
    note_all(options, ranked_memories(project, [*planned]), "note: ")
    if options.model and tree is None and not options.quiet:
        _note_firmware_without_models(project, {target.name for target in targets}, {job.name for job in firmware})
    for result in report.models:
        show_notes(options, result.job.title, result.notes)


def _part(
    options: SharedOptions,
    project: Project,
    targets: list[TargetJob],
    firmware: list[FirmwareJob],
    affected_by: str | None,
    shard: tuple[int, int] | None,
) -> tuple[list[TargetJob], list[FirmwareJob]]:
    """Return what is built, and note what is not."""
    from mlfbuild.jobs import Selection, affected, share

    part = Selection(tuple(targets), tuple(firmware))
    if affected_by is not None:
        part = affected(project, targets, firmware, affected_by)
    if shard is not None:
        part = share(part, project, *shard)
    show_notes(options, "not built", part.left_out)
    return list(part.targets), list(part.firmware)


def _store_durations(
    options: SharedOptions, project: Project, targets: list[TargetJob], firmware: list[FirmwareJob]
) -> None:
    from mlfbuild.jobs import store_durations

    path = store_durations(project, targets, firmware)
    if not options.quiet:
        note(f"{path}: durations written; commit the file")


def _note_firmware_without_models(project: Project, targets: set[str], built: set[str]) -> None:
    for name, spec in project.firmware.items():
        if name not in built and targets & {*spec.targets}:
            note(f"not built: firmware {name}, which links models that --model leaves out")


def model_json(result: ModelResult) -> dict[str, Any]:
    """Return a model that was built as JSON values.

    ``compiled`` is false if the archive was up to date or copied from another target, ``written`` counts files of the
    tree. `mlfbuild generate` prints the same.
    """
    job = result.job
    return {
        "model": job.model,
        "target": job.target,
        "archive": job.archive,
        "tree": job.tree,
        "compiled": result.compiled,
        "written": result.written,
        "notes": result.notes,
    }
