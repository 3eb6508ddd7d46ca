"""Dependencies as far as they are known before anything is compiled: archives of the project tell what they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlfbuild.build import wishes_of
from mlfbuild.core import MlfError, ProjectFileError
from mlfbuild.library import Wish
from mlfbuild.project import ModelSpec, Project, Provision
from mlfbuild.requirements import folder_source, wish_problems


def check_dependencies(project: Project) -> list[str]:
    """Return a line for each dependency of ``project`` that no model needs; none where not all models tell.

    Raises ``ProjectFileError`` for what archives need and the project does not provide, and for folders that are not
    what the project says of them; ``InputFileError`` for archives and folders that are not to be trusted.
    """
    known = {name: known_wishes(model) for name, model in project.models.items()}
    found = [wish for of_model in known.values() for wish in of_model or ()]
    needed = {wish.name for wish in found}
    provisions = project.dependencies.values()
    problems = list(_unmet(project, known))
    problems += _unfit(provision for provision in provisions if provision.name in needed)
    if problems:
        raise ProjectFileError(list(dict.fromkeys(problems)))
    if any(of_model is None for of_model in known.values()):
        return []
    return [
        f"{provision.where}: no model needs it; leave it out, or correct its name"
        for provision in provisions
        if provision.name not in needed
    ]


def known_wishes(model: ModelSpec) -> tuple[Wish, ...] | None:
    """Return what ``model`` needs; ``None`` where only compiling tells, or where the archive is unsound."""
    if model.compiler == "native":
        return ()
    if model.compiler != "archive":
        return None
    from mlfbuild.archive import open_archive  # few projects have one to look at

    try:
        modules = open_archive(model.source).modules
        return tuple(wish for module in modules for wish in wishes_of(module, model.name, model.source))
    except MlfError:  # what is wrong with it is for who builds it
        return None


def _unmet(project: Project, known: dict[str, tuple[Wish, ...] | None]) -> Iterator[str]:
    """Yield what keeps the models of each target from getting what they need."""
    for target in project.targets:
        wanted = [wish for model in project.models_on(target) for wish in known[model.name] or ()]
        yield from wish_problems(wanted, project.dependencies.values())


def _unfit(provisions: Iterable[Provision]) -> Iterator[str]:
    """Yield which folders are not what the project says of them."""
    for provision in provisions:
        if provision.kind == "path" and provision.folder is not None:
            try:
                folder_source(provision.folder, provision)
            except ProjectFileError as error:
                yield from map(str, error.problems)
