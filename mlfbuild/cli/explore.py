"""``mlfbuild explore``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import note, note_all, show, show_json
from mlfbuild.cli.output.progress import building
from mlfbuild.core import UsageError, counted, write_atomic

if TYPE_CHECKING:
    from mlfbuild.usecases import ExploreResult


@verb("file", "target", "jobs", "on", "offline", "no_wait", "format")
@click.argument("model")
@click.option("--choose", metavar="CHOICE", help='Such as "min cycles where flash < 64 KiB and accuracy > 0.9".')
@click.option("--write", is_flag=True, help="Write the choice into the project file and the lock.")
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a page with a plot.")
def explore(options: SharedOptions, model: str, choose: str | None, write: bool, output: Path | None) -> None:
    """Try settings of MODEL, and show what each of them costs.

    The key explore of the model says which. Each point is linked, profiled and evaluated; a second run repeats nothing.
    The result is also in mlfbuild.explore.json, from which the key goal takes its settings.

    The exit status is 1 if no point fulfils the conditions of --choose.
    """
    from mlfbuild.exploration import (
        check_choice,
        chosen,
        exploration_json,
        exploration_text,
        limits_missed,
        settings_text,
    )
    from mlfbuild.jobs import chosen_names, load
    from mlfbuild.usecases import explore_model, write_settings

    if write and choose is None:
        raise UsageError.needs_another("--write", "it writes the settings of one point", "add --choose")
    if output is not None:
        _check_page(output)
    project = options.placed(load(options.file, changes={}))
    chosen_names("model", [model], project.models)
    if choose is not None:
        keys = project.models[model].evaluate
        check_choice(choose, keys.metric if keys else "")
    with building(options, project) as progress:
        result = explore_model(project, model, options.target, jobs=options.jobs, progress=progress)
    found = result.exploration
    if output is not None:
        from mlfbuild.report.html import exploration_page

        write_atomic(output, exploration_page(found).encode())
    if not options.json and not options.quiet:
        show(exploration_text(found))
        _note(result, output)
    note_all(options, [*limits_missed(found)], "misses a limit: ")
    best = chosen(found, choose) if choose is not None else None
    if options.json:
        counts = {"compiled": result.compiled, "measured": result.measured}
        picked = {} if best is None else {"chosen": dict(best.settings)}
        show_json({**exploration_json(found), **counts, "record": result.path, **picked})
    elif best is not None:
        show(f"chosen: {settings_text(best.settings)}")
    if write and best is not None:
        with building(options, project) as progress:
            written = write_settings(
                project, found, best, offline=options.offline, jobs=options.jobs, progress=progress
            )
        note_all(options, [f"{path}: written" for path in written], "")


def _note(result: ExploreResult, output: Path | None) -> None:
    if result.omitted:
        note(
            f"left out, because there are at most 24 usual points: {', '.join(result.omitted)} (declare it in explore)"
        )
    points = len(result.exploration.points)
    note(f"{counted(points, 'point')}: {result.compiled} compiled and {result.measured} measured now")
    note(f"{result.path}: recorded")
    if output is not None:
        note(f"{output}: written")


def _check_page(output: Path) -> None:
    """Raise unless ``output`` is the name of a page, and no file of another kind."""
    from mlfbuild.jobs import check_replaced

    if output.suffix != ".html":
        raise UsageError("not-a-page", place=f"-o {output}", reason="the page is HTML", hint="name a .html file")

    def is_page(path: Path) -> bool:
        data = path.read_bytes()
        return not data or b"mlfbuild explore</title>" in data[:2000]

    check_replaced(output, (), "page", "page of `mlfbuild explore`", is_page)
