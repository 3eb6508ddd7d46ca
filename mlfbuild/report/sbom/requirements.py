"""External dependencies in a bill of materials: what code needs, who provides it, and which of its files are built."""

from __future__ import annotations

from collections.abc import Iterable

from mlfbuild.build import TargetJob
from mlfbuild.build.tree import DEPENDENCIES_FOLDER
from mlfbuild.core import NotFetchedError, ProjectFileError, shown
from mlfbuild.library import Wish, bundle_names, bundles
from mlfbuild.project import Project, Provision
from mlfbuild.report.sbom.bill import Bill
from mlfbuild.report.sbom.code import BUILD, REPAIR, Code
from mlfbuild.report.sbom.components import bundled_component, dependency_component, wished_component
from mlfbuild.report.sbom.trees import read_dependencies
from mlfbuild.report.sbom.types import Component, How
from mlfbuild.requirements import GitPin, default_cache, pin_of


def add_declared(bill: Bill, project: Project) -> None:
    """Add all that the project provides: before a build nobody knows which of it will be needed."""
    for provision in project.dependencies.values():
        bill.add(_provided(bill, provision))


def add_dependencies(bill: Bill, project: Project, target: TargetJob, codes: Iterable[Code]) -> None:
    """Add the libraries that ``codes``, those of ``target``, need, with those of their files that are built for it.

    Raises ``InputFileError`` and ``ConflictError`` for files that cannot be read.
    """
    files, damage = read_dependencies(target.tree / DEPENDENCIES_FOLDER)
    for line in damage:
        bill.note(f"{line}; {REPAIR}")
    for code in codes:
        for wish in code.wishes:
            component = _component(bill, project, code, wish, files.get(wish.name))
            if not component.files and component.properties.get("provided-by", "package") != "package":
                bill.note(f"{wish.name} for {target.name}: is not built, so its files are not in the bill; {BUILD}")
            bill.relate(code.ref, How.DEPENDS_ON, bill.add(component))


def _component(bill: Bill, project: Project, code: Code, wish: Wish, files: dict[str, bytes] | None) -> Component:
    """Return what ``wish`` of ``code`` is met with: the project's provision before what the archive brings along."""
    provision = project.dependencies.get(wish.name)
    if provision is not None:
        return _provided(bill, provision, files)
    if wish.name in bundle_names(code.library):
        return bundled_component(bundles(code.library, str(code.job.archive))[wish.name].facts, files)
    wanted = shown(f"{wish.name} {wish.version}".rstrip())
    bill.note(f"{code.job.title}: needs {wanted}, which the project does not have; add it to `dependencies`")
    return wished_component(wish)


def _provided(bill: Bill, provision: Provision, files: dict[str, bytes] | None = None) -> Component:
    pin = _pin(bill, provision)
    return dependency_component(provision, pin.commit if pin else "", pin.tree if pin else "", files)


def _pin(bill: Bill, provision: Provision) -> GitPin | None:
    """Return the commit that the version of a repository is; without one a tag may turn out to be anything."""
    if provision.kind != "git":
        return None
    try:
        return pin_of(provision, default_cache())
    except (NotFetchedError, ProjectFileError) as error:  # the latter: not locked, so no build takes it
        bill.note(str(error))
        return None
