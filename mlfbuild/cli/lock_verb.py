"""The verb that writes ``mlfbuild.lock``."""

from __future__ import annotations

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import note, show, show_json
from mlfbuild.cli.watch import watching
from mlfbuild.core import DriftError


@verb("file", "target", "model", "jobs", "offline", "format")
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 where anything is not as locked.")
def lock(settings: Settings, check: bool) -> None:
    """Write mlfbuild.lock: models, archives, dependencies and compilers, each by its hash.

    Compiles every model, as archives are locked by what they hold. Builds with --frozen then take nothing else. With
    --target or --model only these are locked anew, the others stay as they were.

    Fetches dependencies: a tag or branch is locked as it is now. With --offline, or where only some models are chosen,
    those that are locked stay where they are.
    """
    if check:
        _check(settings)
    else:
        _write(settings)


def _check(settings: Settings) -> None:
    from mlfbuild.build import load, target_jobs
    from mlfbuild.usecases import check_lock, lock_path

    project = load(settings.file)
    targets = target_jobs(project, settings.target, settings.model)
    path = lock_path(project.path)
    try:
        with watching(settings) as watch:
            notes = check_lock(project, targets, lenders=target_jobs(project), jobs=settings.jobs, progress=watch)
    except DriftError as error:
        if settings.json:
            show_json({"lock": path, "drift": error.problems})
        raise
    for line in () if settings.quiet else notes:
        note(f"not checked: {line}")
    if settings.json:
        show_json({"lock": path, "drift": []})
    elif not settings.quiet:
        show(f"{path}: everything is as locked")


def _write(settings: Settings) -> None:
    from mlfbuild.build import load
    from mlfbuild.usecases import lock_project

    project = load(settings.file)
    with watching(settings) as watch:
        locked = lock_project(
            project,
            settings.target,
            settings.model,
            offline=settings.offline,
            jobs=settings.jobs,
            progress=watch,
        )
    for line in () if settings.quiet else locked.notes:
        note(line)
    if settings.json:
        show_json({"lock": locked.path, "written": locked.written, "changes": locked.changes})
    elif not settings.quiet:
        show("\n".join(locked.changes or (f"{locked.path}: everything is as locked",)))
        if locked.written:
            note(f"{locked.path}: written; commit it")
