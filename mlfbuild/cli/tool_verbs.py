"""Verbs about the tool itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.core import ToolNotFoundError, UsageError, counted

if TYPE_CHECKING:
    from mlfbuild.usecases import Diagnosis, Program, TargetState


@verb("format")
@click.option("--report", is_flag=True, help="Of what `mlfbuild report --format json` prints.")
@click.option("--events", is_flag=True, help="Of each line that --format json prints to standard error.")
def schema(_settings: Settings, report: bool, events: bool) -> None:
    """Print the JSON Schema of the project file, for editors."""
    from mlfbuild.cli.event_schema import event_schema
    from mlfbuild.usecases import project_schema, report_schema

    if report and events:
        raise UsageError("--report and --events: two schemas; ask for one at a time")
    show_json(report_schema() if report else event_schema() if events else project_schema())


@verb("format")
def cmake_dir(settings: Settings) -> None:
    """Print the folder of mlfbuild's CMake package and toolchain files."""
    from mlfbuild.usecases import cmake_dir as folder_of_cmake_files

    folder = folder_of_cmake_files()
    if settings.json:
        show_json({"cmake_dir": folder})
    else:
        show(str(folder))


@verb("file", "target", "format")
def doctor(settings: Settings) -> None:
    """Tell what is installed, and what is missing for which target.

    Looks at the project's targets, and without a project file at every CPU there is. Says how to install what is
    missing on this system. Exit status 3 where a target of the project cannot be built.
    """
    from mlfbuild.usecases import diagnose

    asked = "file" in settings.given or bool(settings.target) or settings.file.is_file()
    found = diagnose(settings.file if asked else None, settings.target)
    if settings.json:
        show_json({**vars(found), "healthy": found.healthy})
    elif not (settings.quiet and found.healthy):
        show(_diagnosis_text(found))
    if not found.healthy:
        names = ", ".join(target.name for target in found.targets if not target.builds)
        count = counted(sum(not target.builds for target in found.targets), "target")
        raise ToolNotFoundError(f"{settings.file}: {count} cannot be built: {names}; install what is missing, above")


def _diagnosis_text(found: Diagnosis) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    programs = [f"  {program.name:24} {_presence(program)}" for program in found.programs]
    heading = f"targets of {found.project}" if found.project else "CPUs"
    width = max(len(target.name) for target in found.targets)
    targets = [f"  {target.name:{width}}  {_ability(target)}" for target in found.targets]
    install = ["", "to get what is missing", *(f"  {line}" for line in found.install)] if found.install else []
    libraries = ["", f"dependencies of {found.project}", *_dependencies(found)] if found.dependencies else []
    return "\n".join([versions, "", "programs", *programs, "", heading, *targets, *libraries, *install])


def _dependencies(found: Diagnosis) -> Iterator[str]:
    width = max(len(state.name) for state in found.dependencies)
    for state in found.dependencies:
        version = ", ".join(filter(None, [state.version, state.commit and f"commit {state.commit[:12]}"]))
        from_where = f"{state.kind} {state.place}"
        reason = state.missing.removeprefix(f"dependency {state.name}: ")
        yield f"  {state.name:{width}}  {version or '?'} ({from_where}){reason and f': {reason}'}"


def _presence(program: Program) -> str:
    if program.path is None:
        return f"missing ({program.chosen_by})" if program.chosen_by else "missing"
    return f"{program.version or '?':10} {program.path}"


def _ability(target: TargetState) -> str:
    names = [name for name in (target.cpu, target.board) if name not in {None, target.name}]
    where = f" ({', '.join(map(str, names))})" if names else ""
    if not target.builds:
        return f"cannot be built{where}: {'; '.join(target.missing)}"
    return f"builds{where}; not verified: {target.unverified}" if target.unverified else f"builds and verifies{where}"
