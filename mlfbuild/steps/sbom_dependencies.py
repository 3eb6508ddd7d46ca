"""External dependencies in a bill of materials: what code needs, who provides it, and which of its files are built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlfbuild.dependencies.cache import default_cache
from mlfbuild.dependencies.git import GitPin
from mlfbuild.dependencies.roots import pin_of
from mlfbuild.errors import NotFetchedError
from mlfbuild.firmware.dependencies import DEPENDENCIES_FOLDER
from mlfbuild.library import Library
from mlfbuild.library.bundles import bundle_names, bundles
from mlfbuild.library.wishes import Wish
from mlfbuild.manifest import Project
from mlfbuild.manifest.types import Provision
from mlfbuild.sbom import components
from mlfbuild.sbom.bill import Bill
from mlfbuild.sbom.trees import read_dependencies
from mlfbuild.sbom.types import Component, How
from mlfbuild.steps.jobs import TargetJob

BUILD = "run `mlfbuild build` first"
REPAIR = "run `mlfbuild build`, which puts it right"


@dataclass(frozen=True)
class Need:
    """A library that code needs beside its archive, or that the archive brings along."""

    code: str
    """Reference of the code."""
    wish: Wish
    library: Library
    """What the archive holds."""
    archive: str
    """What messages call the archive."""


def add_declared(bill: Bill, project: Project) -> None:
    """Add all that the project provides: before a build nobody knows which of it will be needed."""
    for provision in project.dependencies.values():
        bill.add(_provided(bill, provision))


def add_dependencies(bill: Bill, project: Project, target: TargetJob, needs: Iterable[Need]) -> None:
    """Add the libraries that code of ``target`` needs, with those of their files that are built for it.

    Raises ``InputFileError`` and ``ConflictError`` for files that cannot be read.
    """
    files, damage = read_dependencies(target.tree / DEPENDENCIES_FOLDER)
    for line in damage:
        bill.note(f"{line}; {REPAIR}")
    for need in needs:
        name = need.wish.name
        provision = project.dependencies.get(name)
        if provision is not None:
            component = _provided(bill, provision, files.get(name))
        elif name in bundle_names(need.library):
            facts = bundles(need.library, need.archive)[name].facts
            component = components.bundled_component(facts, files.get(name))
        else:
            component = components.wished_component(need.wish)
            wanted = f"{name} {need.wish.version}".rstrip()
            bill.note(f"{need.code}: needs {wanted}, which the project does not have; add it to `dependencies`")
        package = provision is not None and provision.kind == "package"
        if not (package or component.files or component.properties.get("provided-by") is None):
            bill.note(f"{name} for {target.name}: is not built, so its files are not in the bill; {BUILD}")
        bill.relate(need.code, How.DEPENDS_ON, bill.add(component))


def _provided(bill: Bill, provision: Provision, files: dict[str, bytes] | None = None) -> Component:
    pin = _pin(bill, provision)
    return components.dependency_component(provision, pin.commit if pin else "", pin.tree if pin else "", files)


def _pin(bill: Bill, provision: Provision) -> GitPin | None:
    """Return the commit that the version of a repository is; without one a tag may turn out to be anything."""
    if provision.kind != "git":
        return None
    try:
        return pin_of(provision, default_cache())
    except NotFetchedError as error:
        bill.note(str(error))
        return None
