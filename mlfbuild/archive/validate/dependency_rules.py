"""Rules for external dependencies: those of the pre-RFC, and TVM's ``mlf_path`` to a folder of the archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.findings import Finding
from mlfbuild.archive.validate.views import ArchiveView
from mlfbuild.core import InputFileError
from mlfbuild.library import (
    ExternalDependency,
    archive_folder,
    bundle,
    bundle_names,
    description_path,
    problems,
    short_name,
)

_RUNTIME = "runtime"


def sound_dependencies(archive: ArchiveView) -> Iterator[Finding]:
    """Check each dependency, and look for its folder."""
    for view in archive.modules:
        for index, dependency in enumerate(view.module.external_dependencies):
            place = view.place(f"external_dependencies[{index}]")
            wrong = problems(dependency)
            yield from (finding("MLF801", place, reason) for reason in wrong)
            folder = archive_folder(dependency)
            if not wrong and folder is not None and str(folder) not in archive.folders:
                message = f"{dependency.short_name} should be in {dependency.url}, which does not exist"
                yield finding("MLF802", place, message)


def repeated_dependencies(archive: ArchiveView) -> Iterator[Finding]:
    """Find entries that a module has twice; different modules may have equal ones."""
    for view in archive.modules:
        seen: set[ExternalDependency] = set()
        for index, dependency in enumerate(view.module.external_dependencies):
            if dependency in seen:
                place = view.place(f"external_dependencies[{index}]")
                yield finding("MLF806", place, f"{dependency.short_name} is named before")
            seen.add(dependency)


def agreeing_dependencies(archive: ArchiveView) -> Iterator[Finding]:
    """Compare the dependencies of modules with the same name, because an archive has only one ``runtime/``."""
    first: dict[str, tuple[str, ExternalDependency]] = {}
    for view in archive.modules:
        for index, dependency in enumerate(view.module.external_dependencies):
            name, other = first.setdefault(short_name(dependency.short_name), (view.name, dependency))
            if replace(other, short_name=dependency.short_name, unknown=dependency.unknown) != dependency:
                place = view.place(f"external_dependencies[{index}]")
                found = f"{dependency.url} {dependency.version_spec}".strip()
                other_module = "also" if name == view.name else f"{name} requires"
                wanted = f"{other.url} {other.version_spec}".strip()
                message = f"{view.name} requires {found}, but {other_module} {wanted}"
                yield finding("MLF803", place, message)


def sound_bundles(archive: ArchiveView) -> Iterator[Finding]:
    """Check the descriptions of bundled libraries."""
    for name in bundle_names(archive.library):
        place = str(description_path(name))
        try:
            bundle(archive.library, name, place)
        except InputFileError as error:
            key = error.place.removeprefix(place).removeprefix(": ")
            yield finding("MLF805", place, f"{key}: {error.reason}" if key else error.reason)


def unnamed_runtime(archive: ArchiveView) -> Iterator[Finding]:
    """Find a ``runtime`` folder that is not an external dependency."""
    named = {
        PurePosixPath(item.url).parts[:1] for view in archive.modules for item in view.module.external_dependencies
    }
    if (_RUNTIME,) not in named and _RUNTIME in archive.folders:
        yield finding("MLF804", _RUNTIME, "is not in external_dependencies of any module")


RULES = (sound_dependencies, repeated_dependencies, agreeing_dependencies, sound_bundles, unnamed_runtime)
