"""``mlfbuild check``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import PASSED, note, show, show_json
from mlfbuild.core import Diagnostic, ProjectFileError, ToolNotFoundError, counted

if TYPE_CHECKING:
    from mlfbuild.project import Project


@verb("file", "format")
@click.option("--no-tools", is_flag=True, help="Do not look for compilers and Python packages.")
def check(options: SharedOptions, *, no_tools: bool) -> None:
    """Check the project file and list every mistake.

    Also checks options of compilers, files that the project names, the dependencies that archives require, and
    everything else that a build or a verification would refuse and that is known without compiling. It lists budgets
    that no build of the project checks, sections whose memory the cycle model assumes, and files that another version
    of mlfbuild wrote into the repository. The exit status is 2 if there are mistakes, otherwise 3 if a compiler or a
    Python package is missing on this machine.
    """
    from mlfbuild.jobs import read_project
    from mlfbuild.usecases import missing_tools

    missing: list[str] = []
    try:
        project = read_project(options.file)
        # Before the mistakes: missing tools are listed even if there are some.
        missing += () if no_tools else _missing_lines(missing_tools(project))
        warnings = _checked(project, options.file)
    except ProjectFileError as error:
        if options.json:
            problems = [str(problem) for problem in error.problems]
            show_json({"file": options.file, "problems": problems, "warnings": [], "missing": missing})
        _note_all(options, missing)
        raise
    if options.json:
        show_json({"file": options.file, "problems": [], "warnings": warnings, "missing": missing})
    _note_all(options, [*warnings, *missing])
    if missing:
        raise ToolNotFoundError(
            "tools-missing",
            place=options.file,
            reason="has no mistakes, but cannot be built on this machine",
            hint="run `mlfbuild doctor`, which prints how to install what is missing",
        )
    if not options.quiet and not options.json:
        targets, models = counted(len(project.targets), "target"), counted(len(project.models), "model")
        for name, path in project.found_vectors.items():
            show(f"{name}: vectors {path}, found by the name of the model")
        show(
            f"{options.file}: no mistakes ({targets}, {models}, {len(project.firmware)} firmware)",
            {"no mistakes": PASSED},
        )


def _checked(project: Project, file: Path) -> list[str]:
    """Return the warnings about ``project``; raises ``ProjectFileError`` with all mistakes beyond its file."""
    from mlfbuild.jobs import project_mistakes
    from mlfbuild.usecases import (
        assumed_places,
        check_dependencies,
        foreseen,
        ranked_memories,
        unchecked_budgets,
        unused_devices,
    )
    from mlfbuild.usecases.init import outdated_lines

    mistakes, found = dict(project_mistakes(project)), foreseen(project)
    # Those of ``project_mistakes`` are first. Another one at the same key, or without a key, would most likely be a
    # consequence.
    more = [(place, mistake) for place, mistake in found.mistakes if not mistakes or (place and place not in mistakes)]
    problems: list[str | Diagnostic] = [*project.problems([*mistakes.items(), *more])]
    warnings: list[str] = []
    try:
        warnings += check_dependencies(project) if not mistakes else ()
    except ProjectFileError as error:
        problems += error.problems
    if problems:
        raise ProjectFileError(problems)
    warnings += [*unused_devices(project), *unchecked_budgets(project), *assumed_places(project)]
    warnings += ranked_memories(project, [*project.targets])
    return [*warnings, *map(str, project.problems(found.warnings)), *outdated_lines(file)]


def _missing_lines(missing: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each missing tool, with the targets that need it."""
    lines = dict.fromkeys(line for lines in missing.values() for line in lines)
    return [f"{', '.join(name for name in missing if line in missing[name])}: {line}" for line in lines]


def _note_all(options: SharedOptions, lines: Iterable[str]) -> None:
    for line in () if options.json else lines:
        note(f"warning: {line}")
