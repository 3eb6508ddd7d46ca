"""Required libraries in a bill of materials: the code that requires them, their providers, and the built files."""

from __future__ import annotations

from collections.abc import Iterable

from mlfbuild.core import NotFetchedError, ProjectFileError, shown
from mlfbuild.jobs import TargetJob
from mlfbuild.jobs.tree import DEPENDENCIES_FOLDER
from mlfbuild.library import Requirement, bundle_names, bundles
from mlfbuild.project import Project, Provider
from mlfbuild.report.sbom.bom import Component, How
from mlfbuild.report.sbom.components import bundled_component, dependency_component, required_component
from mlfbuild.report.sbom.sbom_document import BUILD, REPAIR, Bill, Code
from mlfbuild.report.sbom.trees import read_dependencies
from mlfbuild.requirements import GitPin, default_cache, pin_of


def add_declared(bill: Bill, project: Project) -> None:
    """Add all providers of ``project``: before a build, it is not known which of them are required."""
    for provider in project.dependencies.values():
        bill.add(_provided(bill, provider))


def add_dependencies(bill: Bill, project: Project, target: TargetJob, codes: Iterable[Code]) -> None:
    """Add the libraries that ``codes``, those of ``target``, require, with the files that are built for it.

    Raises ``InputFileError`` and ``ConflictError`` for files that cannot be read.
    """
    # As built, and not as the project requires them now: a bill describes what is there.
    files, damage = read_dependencies(target.tree / DEPENDENCIES_FOLDER)
    for line in damage:
        bill.note(f"{line}; {REPAIR}")
    for code in codes:
        for requirement in code.requirements:
            component = _component(bill, project, code, requirement, files.get(requirement.name))
            # A package belongs to the firmware's own build, so its files are not known here.
            if not component.files and component.properties.get("provided-by", "package") != "package":
                bill.note(
                    f"{requirement.name} for {target.name}: is not built, so its files are not in the bill; {BUILD}"
                )
            bill.relate(code.ref, How.DEPENDS_ON, bill.add(component))


def _component(
    bill: Bill, project: Project, code: Code, requirement: Requirement, files: dict[str, bytes] | None
) -> Component:
    """Return the library for ``requirement`` of ``code``: that of the project's provider, else the bundled one."""
    provider = project.dependencies.get(requirement.name)
    # As in builds: what the project provides is used instead of what the archive bundles.
    if provider is not None:
        return _provided(bill, provider, files)
    if requirement.name in bundle_names(code.library):
        return bundled_component(bundles(code.library, str(code.job.archive))[requirement.name], files)
    bill.note(
        f"{code.job.title}: requires {shown(requirement.title)}, which the project does not provide; add it to "
        "`dependencies`"
    )
    return required_component(requirement)


def _provided(bill: Bill, provider: Provider, files: dict[str, bytes] | None = None) -> Component:
    pin = _pin(bill, provider)
    return dependency_component(provider, pin.commit if pin else "", pin.tree if pin else "", files)


def _pin(bill: Bill, provider: Provider) -> GitPin | None:
    """Return the commit of a repository; without one, a tag may turn out to be any commit."""
    if provider.kind != "git":
        return None
    try:
        return pin_of(provider, default_cache())
    except (NotFetchedError, ProjectFileError) as error:  # the latter if it is not locked
        bill.note(str(error))
        return None
