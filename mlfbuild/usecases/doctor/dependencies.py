"""What models need of other libraries: whether it is on this machine, and in which version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mlfbuild.core import InputFileError, MlfError
from mlfbuild.project import Project, Provision
from mlfbuild.usecases.check import known_wishes


@dataclass(frozen=True)
class DependencyState:
    """A dependency of the project, as it is on this machine."""

    name: str
    kind: str
    """``git``, ``path``, ``url`` or ``package``."""
    place: str
    """As the project file has it."""
    version: str
    """As the project states it; empty where it does not."""
    commit: str = ""
    """Of a repository, where it was fetched."""
    missing: str = ""
    """Why it cannot be built; empty where it can, and for packages, which the firmware's own build has."""
    advice: str = ""


def dependency_states(project: Project) -> Iterator[DependencyState]:
    """Yield the dependencies of ``project``, needed or not, in file order, as a build would take them.

    Fetched files are checked.
    """
    for provision in _as_built(project).dependencies.values():
        state = DependencyState(provision.name, provision.kind, provision.place, provision.version)
        yield state if provision.kind == "package" else _looked_at(provision, state)


def needed_on(project: Project, target: str, missing: Iterable[DependencyState]) -> tuple[str, ...]:
    """Return why models of ``target`` cannot be built, by those of ``missing`` that they are known to need."""
    needed = {wish.name for model in project.models_on(target) for wish in known_wishes(model) or ()}
    return tuple(state.missing for state in missing if state.missing and state.name in needed)


def _as_built(project: Project) -> Project:
    """Return ``project`` with its repositories at the commits that are locked; of a damaged lock file each says so."""
    if not project.dependencies:
        return project
    from mlfbuild.build import pinned, with_pins  # few projects have any

    try:
        return pinned(project)
    except InputFileError as error:
        return with_pins(project, {}, dict.fromkeys(project.dependencies, str(error)))


def _looked_at(provision: Provision, state: DependencyState) -> DependencyState:
    from mlfbuild.build import provided_source  # few projects have any

    try:
        source = provided_source(provision)
    except MlfError as error:
        reason, _, advice = str(error).partition("\n")[0].rpartition("; ")
        reason = reason.removeprefix(f"{provision.where}: ")
        return replace(state, missing=f"dependency {state.name}: {reason}", advice=advice)
    return replace(state, commit=source.commit)
