"""Verbs that work on a project file."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import note, show, show_json, tell
from mlfbuild.cli.watch import watching
from mlfbuild.core import CheckFailedError, MlfError, ProjectFileError, UsageError

if TYPE_CHECKING:
    from mlfbuild.build import FirmwareJob
    from mlfbuild.usecases import ModelResult, VerifyJob, VerifyReport


@verb("file", "format")
def check(settings: Settings) -> None:
    """Check the project file and list every mistake in it."""
    from mlfbuild.build import load
    from mlfbuild.usecases import check_dependencies

    try:
        project = load(settings.file)
        warnings = check_dependencies(project)
    except ProjectFileError as error:
        if settings.json:
            problems = [str(problem) for problem in error.problems]
            show_json({"file": settings.file, "problems": problems, "warnings": []})
        raise
    if settings.json:
        show_json({"file": settings.file, "problems": [], "warnings": warnings})
        return
    for warning in warnings:
        note(f"warning: {warning}")
    if not settings.quiet:
        counts = [
            f"{len(names)} {noun}{'' if len(names) == 1 or noun == 'firmware' else 's'}"
            for noun, names in (("target", project.targets), ("model", project.models), ("firmware", project.firmware))
        ]
        show(f"{settings.file}: no mistakes ({', '.join(counts)})")


_BUILD_DIR = click.option(
    "--build-dir", "build_dir", type=click.Path(path_type=Path), metavar="DIR",
    help="Where everything goes, default build beside the project file.",
)  # fmt: skip


@verb("file", "target", "model", "frozen", "offline", "format")
@_BUILD_DIR
@click.option("--lines", is_flag=True, help="Names and generator, each target and each model as one line of JSON.")
@click.option(
    "--complete", is_flag=True,
    help="First make the archives that alone tell which files they hold, and copy the libraries that models need.",
)  # fmt: skip
def plan(settings: Settings, build_dir: Path | None, lines: bool, complete: bool) -> None:
    """List every file that a build reads and writes."""
    from mlfbuild.build import load, make_archives, target_jobs, write_target_dependencies
    from mlfbuild.usecases import plan_build, plan_lines, plan_text

    project = load(settings.file)
    if complete:
        targets = target_jobs(project, settings.target, settings.model, build_dir)
        if settings.frozen:
            from mlfbuild.usecases import freeze_beforehand

            freeze_beforehand(project, targets)
        with watching(settings) as watch:
            make_archives(targets, target_jobs(project, build=build_dir), jobs=settings.jobs, progress=watch)
        for target in targets:
            write_target_dependencies(target)
    planned = plan_build(project, settings.target, settings.model, build_dir, frozen=settings.frozen)
    if lines:
        show(plan_lines(planned))
    elif settings.json:
        show_json(planned)
    else:
        show(plan_text(planned))


@verb("file", "target", "model", "jobs", "frozen", "offline", "format")
@click.option(
    "--tree",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write one target's trees to DIR, to be committed, and build no firmware.",
)
@click.option(
    "--with-verify", is_flag=True, help="With --tree: test firmware of each model too, for `mlfbuild verify --elf`."
)
@click.option(
    "--for", "systems", multiple=True, metavar="SYSTEM",
    help="With --tree: DIR is a package of zephyr, rt-thread, esp-idf or platformio, too; may be repeated.",
)  # fmt: skip
def build(settings: Settings, tree: Path | None, with_verify: bool, systems: tuple[str, ...]) -> None:
    """Compile and unpack every model, then build every firmware."""
    from mlfbuild.build import committed, firmware_jobs, load, target_jobs
    from mlfbuild.usecases import build_project

    if with_verify and tree is None:
        raise UsageError(
            "--with-verify means nothing without --tree; add that, or leave it out: `mlfbuild verify` builds its own"
        )
    if systems and tree is None:
        raise UsageError(f"--for {systems[0]} means nothing without --tree; add that, with the folder of the package")
    project = load(settings.file)
    targets = target_jobs(project, settings.target, settings.model)
    firmware = firmware_jobs(project, targets) if tree is None else []
    if tree is not None:
        targets = [committed(project, targets, tree, with_verify=with_verify, systems=systems)]
    lenders = target_jobs(project)
    with watching(settings) as watch:
        if settings.frozen:
            from mlfbuild.usecases import freeze

            targets = freeze(
                project, targets, lenders=lenders, jobs=settings.jobs, progress=watch, toolchains=tree is None
            )
        report = build_project(targets, firmware, lenders=lenders, jobs=settings.jobs, progress=watch)
    if settings.json:
        show_json(
            {
                "models": [_model(result) for result in report.models],
                "firmware": [_image(job) for job in report.firmware],
            }
        )
    elif not settings.quiet:
        trees = [f"{result.job.title}: {result.job.tree}" for result in report.models]
        packages = [f"{target.tree}: package for {', '.join(target.systems)}" for target in targets if target.systems]
        images = [f"{job.name} for {job.target.name}: {job.elf}" for job in report.firmware]
        show("\n".join([*trees, *packages, *images]))


def _model(result: ModelResult) -> dict[str, Any]:
    job = result.job
    return {
        "model": job.model,
        "target": job.target,
        "archive": job.archive,
        "tree": job.tree,
        "compiled": result.compiled,
        "written": result.written,
    }


@verb("file", "target", "model", "frozen", "offline", "format")
@_BUILD_DIR
@click.option("--stamp", type=click.Path(path_type=Path), metavar="FILE", help="Empty file to write when all is done.")
@click.option(
    "--depfile", type=click.Path(path_type=Path), metavar="FILE", help="Rule of Make to write about the stamp."
)
@click.option("--depends", type=click.Choice(["model", "tree"]), default="model", show_default=True,
              help="What the rule lists: what the archive is made from, or the tree's own files.")  # fmt: skip
@click.option(
    "--tree-stamp", type=click.Path(path_type=Path), metavar="FILE",
    help="Stamp of a step that checks the tree: write FILE.d, its rule, and FILE.fresh, that all is right.",
)  # fmt: skip
def generate(
    settings: Settings,
    build_dir: Path | None,
    stamp: Path | None,
    depfile: Path | None,
    depends: str,
    tree_stamp: Path | None,
) -> None:
    """Compile and unpack one model where need be, for another build system.

    The step that mlfbuild's CMake package runs: --target and --model name it, files that are right keep their time.
    """
    from mlfbuild.build import load, target_jobs
    from mlfbuild.usecases import generate_model

    project = load(settings.file)
    jobs = target_jobs(project, settings.target, settings.model, build_dir)
    chosen = [model for target in jobs for model in target.models]
    if len(chosen) != 1:
        raise UsageError(f"{len(chosen)} models are chosen; generate makes one: name it with --target and --model")
    if settings.frozen:  # which compiler there is, CMake asked when it was configured
        from mlfbuild.usecases import freeze_beforehand

        (frozen,) = freeze_beforehand(project, [job for job in jobs if job.models], toolchains=False)
        chosen = list(frozen.models)
    result = generate_model(chosen[0], stamp, depfile, depends, tree_stamp)
    if settings.json:
        show_json(_model(result))
    elif settings.verbose:
        show(f"{result.job.title}: {result.job.tree}")


def _image(job: FirmwareJob) -> dict[str, Any]:
    return {"firmware": job.name, "target": job.target.name, "elf": job.elf}


@verb("file", "target", "model", "jobs", "frozen", "offline", "format")
@click.option(
    "--elf", type=click.Path(path_type=Path), metavar="FILE", help="Check this test firmware; no project file needed."
)
@click.option("--vectors", type=click.Path(path_type=Path), metavar="FILE", help="With --elf: what it is checked with.")
@click.option("--board", metavar="NAME", help="With --elf: the board it must be for.")
def verify(settings: Settings, elf: Path | None, vectors: Path | None, board: str | None) -> None:
    """Run every model that has vectors on QEMU and compare all outputs.

    With --elf run test firmware that somebody else built: a target mlf_<model>_verify of a tree from `mlfbuild build
    --tree DIR --with-verify`.
    """
    if elf is not None:
        _verify_elf(settings, elf, vectors, board)
    elif vectors is not None or board is not None:
        raise UsageError("--vectors and --board need --elf; write those of a project's models in the project file")
    else:
        _verify_project(settings)


def _verify_elf(settings: Settings, elf: Path, vectors: Path | None, board: str | None) -> None:
    from mlfbuild.usecases import verify_elf

    for name in sorted(settings.given & {"file", "target", "model", "frozen"}):
        raise UsageError(f"--{name} means nothing with --elf, as the image says what it is; leave it out")
    if vectors is None:
        raise UsageError(f"--elf {elf}: add --vectors <file>.npz with arrays in0.. and out0..")
    report = verify_elf(elf, vectors, board)
    if settings.json:
        show_json({"elf": elf, "passed": report.passed, **vars(report)})
    elif not (settings.quiet and report.passed):
        show(report.text())
    if not report.passed:
        raise CheckFailedError(f"verify: {elf}: failed; see above")


def _verify_project(settings: Settings) -> None:
    from mlfbuild.build import BUILD_FOLDER, Task, load, target_jobs
    from mlfbuild.usecases import build_project, left_out, verify_job, verify_jobs

    project = load(settings.file)
    targets = target_jobs(project, settings.target, settings.model)
    jobs = verify_jobs(project, targets, project.root / BUILD_FOLDER)
    results: list[tuple[VerifyJob, VerifyReport | MlfError]] = []
    if not settings.quiet:
        for line in left_out(project, targets):
            note(f"not verified: {line}")
    with watching(settings) as watch:
        watch.expect(len(jobs))
        lenders = target_jobs(project)
        if settings.frozen:
            from mlfbuild.usecases import freeze

            targets = freeze(project, targets, lenders=lenders, jobs=settings.jobs, progress=watch)
        build_project(targets, lenders=lenders, jobs=settings.jobs, progress=watch)
        for job in jobs:
            task = Task("verify", job.title, job.target.name, model=job.model.model)
            watch.start(task)
            try:
                report = verify_job(job, functools.partial(watch.step, task))
            except MlfError as error:  # the other models are worth checking all the same
                results.append((job, error))
                watch.fail(task, "could not be checked")
            else:
                results.append((job, report))
                if report.passed:
                    watch.finish(task, "passed")
                else:
                    watch.fail(task, "FAILED")
    if settings.json:
        show_json([_verified(job, result) for job, result in results])
    else:
        for _, result in results:
            if not (isinstance(result, MlfError) or (settings.quiet and result.passed)):
                show(result.text())
    _raise_what_went_wrong(results, events=settings.json)


def _verified(job: VerifyJob, result: VerifyReport | MlfError) -> dict[str, Any]:
    if isinstance(result, MlfError):
        module = job.module or job.model.model
        return {"target": job.target.name, "passed": False, "module": module, "error": str(result)}
    return {"target": job.target.name, "passed": result.passed, **vars(result)}


def _raise_what_went_wrong(results: Sequence[tuple[VerifyJob, VerifyReport | MlfError]], *, events: bool) -> None:
    """Raise an error for models that are wrong, else the first of those that could not be checked; tell the others."""
    errors = [result for _, result in results if isinstance(result, MlfError)]
    failed = [job.title for job, result in results if not isinstance(result, MlfError) and not result.passed]
    for error in errors if failed else errors[1:]:
        tell(error, events=events)
    if failed:
        raise CheckFailedError(f"verify: {', '.join(failed)}: failed; see above")
    if errors:
        raise errors[0]
