"""``mlfbuild lock``."""

from __future__ import annotations

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import PASSED, note_all, show, show_json, show_result
from mlfbuild.cli.output.progress import building
from mlfbuild.core import DriftError


@verb("file", "target", "model", "jobs", "offline", "no_wait", "format")
@click.option("--check", is_flag=True, help="Write nothing; fail if anything differs from the lock.")
def lock(options: SharedOptions, check: bool) -> None:
    """Write the hashes of all inputs to mlfbuild.lock.

    The lock file lists models, archives, dependencies and compilers. Every model is compiled, as archives are locked by
    their content. Builds with --frozen then accept nothing else. With --target or --model, only the chosen models are
    locked again.

    Dependencies are fetched: a tag or branch is locked at its current commit. With --offline, or if only some models
    are chosen, locked dependencies keep their commit.
    """
    if check:
        _check(options)
    else:
        _write(options)


def _check(options: SharedOptions) -> None:
    from mlfbuild.jobs import load, target_jobs
    from mlfbuild.requirements import lock_path
    from mlfbuild.usecases import check_lock

    project = load(options.file)
    targets = target_jobs(project, options.target, options.model)
    path = lock_path(project.path)
    try:
        with building(options, project) as progress:
            notes = check_lock(project, targets, lenders=target_jobs(project), jobs=options.jobs, progress=progress)
    except DriftError as error:
        # JSON has the differences although the check fails; the error itself follows on stderr.
        if options.json:
            show_json({"lock": path, "drift": error.problems})
        raise
    note_all(options, notes, "not checked: ")
    if options.json:
        show_json({"lock": path, "drift": []})
    elif not options.quiet:
        show(f"{path}: everything is as locked", {"as locked": PASSED})


def _write(options: SharedOptions) -> None:
    from mlfbuild.jobs import load
    from mlfbuild.usecases import lock_project

    project = load(options.file)
    with building(options, project) as progress:
        locked = lock_project(
            project, options.target, options.model, offline=options.offline, jobs=options.jobs, progress=progress
        )
    note_all(options, locked.notes)
    value = {"lock": locked.path, "written": locked.written, "changes": locked.changes}
    show_result(options, value, "\n".join(locked.changes or (f"{locked.path}: everything is as locked",)))
    if locked.written and not options.json:
        note_all(options, [f"{locked.path}: written; commit it"])
