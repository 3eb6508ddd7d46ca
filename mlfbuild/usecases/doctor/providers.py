"""The providers of a project: whether their files are on this machine, and in which version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mlfbuild.core import Diagnostic, InputFileError, MlfError, ProjectFileError
from mlfbuild.project import Project, Provider
from mlfbuild.usecases.check import known_requirements


@dataclass(frozen=True)
class ProviderState:
    """A provider of the project, as it is on this machine."""

    name: str
    kind: str
    """``git``, ``path``, ``url`` or ``package``."""
    place: str
    """As the project file has it."""
    version: str
    """As the project states it; empty if it does not."""
    commit: str = ""
    """The commit of a repository, if it was fetched."""
    missing: str = ""
    """Why it cannot be built; empty if it can, and for packages, which the firmware's own build has."""
    advice: str = ""


def dependency_states(project: Project) -> Iterator[ProviderState]:
    """Yield the states of all providers of ``project`` in file order, as a build would use them; files are hashed."""
    for provider in _as_built(project).dependencies.values():
        state = ProviderState(provider.name, provider.kind, provider.place, provider.version)
        yield state if provider.kind == "package" else _examined(provider, state)


def needed_on(project: Project, target: str, missing: Iterable[ProviderState]) -> tuple[str, ...]:
    """Return why models of ``target`` cannot be built, for those of ``missing`` that they are known to require."""
    required = {one.name for model in project.models_on(target) for one in known_requirements(model) or ()}
    return tuple(state.missing for state in missing if state.missing and state.name in required)


def _as_built(project: Project) -> Project:
    """Return ``project`` with its repositories at the locked commits; a damaged lock file is reported for each."""
    if not project.dependencies:
        return project
    from mlfbuild.jobs import pinned, with_pins  # imported late, because few projects need it

    try:
        return pinned(project)
    except InputFileError as error:
        return with_pins(
            project, {}, dict.fromkeys(project.dependencies, ": ".join(filter(None, (error.place, error.reason))))
        )


def _examined(provider: Provider, state: ProviderState) -> ProviderState:
    from mlfbuild.requirements import provided_library  # imported late, because few projects need it

    try:
        library = provided_library(provider)
    except MlfError as error:
        problems = error.problems if isinstance(error, ProjectFileError) else ()
        # The first problem is enough, as the row of a table has room for one.
        found = next((each for each in problems if isinstance(each, Diagnostic)), None) or error
        # The row already names the provider.
        place = found.place.removeprefix(provider.where).strip(": ")
        reason = f"{place}: {found.reason}" if place else found.reason
        return replace(state, missing=f"dependency {state.name}: {reason}", advice=found.hint)
    return replace(state, commit=library.commit)
