"""``mlfbuild doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import FAILED, PASSED, show, show_json
from mlfbuild.core import ToolNotFoundError, counted, listed, text_table

if TYPE_CHECKING:
    from mlfbuild.usecases import Diagnosis, TargetState

_COLOURS = {"missing ": FAILED, "cannot be built": FAILED, "builds and verifies": PASSED}


@verb("file", "target", "format")
def doctor(options: SharedOptions) -> None:
    """Show which tools are installed and which are missing.

    Checks the targets of the project, or every CPU if there is no project file, and prints how to install on this
    system what is missing. The exit status is 3 if a target of the project cannot be built.
    """
    from mlfbuild.usecases import diagnose

    # A project file that is named but missing is an error; one that is only looked for is not.
    with_project = "file" in options.given or bool(options.target) or options.file.is_file()
    found = diagnose(options.file if with_project else None, options.target)
    if options.json:
        show_json({**vars(found), "healthy": found.healthy})
    elif not (options.quiet and found.healthy):
        show("\n\n".join(_parts(found)), _COLOURS)
    if not found.healthy:
        broken = [target.name for target in found.targets if not target.builds]
        raise ToolNotFoundError(
            "targets-not-buildable",
            place=options.file,
            reason=f"{counted(len(broken), 'target')} cannot be built: {listed(broken)}",
            hint="install what is missing, as listed above",
        )


def _parts(found: Diagnosis) -> Iterator[str]:
    yield ", ".join(f"{name} {version}" for name, version in found.versions.items())
    programs = [
        (program.name, program.version or "?", str(program.path))
        if program.path
        else (program.name, "missing", program.chosen_by)
        for program in found.programs
    ]
    yield f"programs\n{text_table(programs, indent=2)}"
    title = f"targets of {found.project}" if found.project else "CPUs"
    targets = [(target.name, _ability(target)) for target in found.targets]
    yield f"{title}\n{text_table(targets, indent=2)}"
    if found.dependencies:
        yield f"dependencies of {found.project}\n{text_table(_dependencies(found), indent=2)}"
    if found.outdated:
        yield "\n  ".join(["outdated files", *found.outdated])
    if found.conflicts:
        yield "\n  ".join(["Python packages in conflict", *found.conflicts])
    if found.install:
        yield "\n  ".join(["to install what is missing", *found.install])


def _dependencies(found: Diagnosis) -> Iterator[tuple[str, str]]:
    for state in found.dependencies:
        version = ", ".join(filter(None, [state.version, state.commit and f"commit {state.commit[:12]}"]))
        reason = state.missing.removeprefix(f"dependency {state.name}: ")
        yield state.name, f"{version or '?'} ({state.kind} {state.place}){reason and f': {reason}'}"


def _ability(target: TargetState) -> str:
    names = [name for name in (target.cpu, target.board) if name not in {None, target.name}]
    device = f" ({', '.join(map(str, names))})" if names else ""
    if not target.builds:
        return f"cannot be built{device}: {', '.join(target.missing)}"
    return f"builds{device}; not verified: {target.unverified}" if target.unverified else f"builds and verifies{device}"
