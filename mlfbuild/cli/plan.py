"""``mlfbuild plan``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import BUILD_DIR, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_as_it_is, show_json
from mlfbuild.cli.output.progress import showing_progress


@verb("file", "target", "model", "frozen", "offline", "format")
@BUILD_DIR
@click.option("--lines", is_flag=True, help="Print each target and model as a line of JSON.")
@click.option("--complete", is_flag=True, help="First build archives with unknown content.")
def plan(options: SharedOptions, build_dir: Path | None, lines: bool, complete: bool) -> None:
    """List every file that a build reads and writes.

    Nothing is written, except with --complete: the files of an archive that an external program makes are known only
    from that archive, so it is built first, and the required libraries are copied.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import complete_archives, plan_build, plan_lines, plan_text

    project = load(options.file)
    chosen = (project, options.target, options.model, build_dir)
    # Only these archives show which files the plan must list.
    if complete:
        with showing_progress(options) as progress:
            complete_archives(*chosen, frozen=options.frozen, jobs=options.jobs, progress=progress)
    planned = plan_build(*chosen, frozen=options.frozen)
    if lines:
        show_as_it_is(plan_lines(planned))
    elif options.json:
        show_json(planned)
    else:
        show(plan_text(planned))
