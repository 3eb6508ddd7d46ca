"""Rules of external dependencies: the pre-RFC's, and TVM's ``mlf_path`` to a folder of the archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.context import Context
from mlfbuild.archive.validate.types import Finding
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


def sound_dependencies(context: Context) -> Iterator[Finding]:
    """Judge each dependency, and look for its folder."""
    for view in context.modules:
        for index, dependency in enumerate(view.module.external_dependencies):
            place = view.place(f"external_dependencies[{index}]")
            wrong = problems(dependency)
            yield from (finding("MLF801", place, reason) for reason in wrong)
            folder = archive_folder(dependency)
            if not wrong and folder is not None and str(folder) not in context.folders:
                yield finding(
                    "MLF802", place, f"{dependency.short_name} is to lie in {dependency.url}, which is not there"
                )


def agreeing_dependencies(context: Context) -> Iterator[Finding]:
    """Compare what modules want of one thing: an archive has one ``runtime/``."""
    first: dict[str, tuple[str, ExternalDependency]] = {}
    for view in context.modules:
        for index, dependency in enumerate(view.module.external_dependencies):
            name, other = first.setdefault(short_name(dependency.short_name), (view.name, dependency))
            if replace(other, short_name=dependency.short_name) != dependency:
                place = view.place(f"external_dependencies[{index}]")
                wants = f"{dependency.url} {dependency.version_spec}".strip()
                yield finding("MLF803", place, f"{view.name} wants {wants}, {name} {other.url} {other.version_spec}")


def sound_bundles(context: Context) -> Iterator[Finding]:
    """Judge what the archive says of dependencies that it brings along."""
    for name in bundle_names(context.library):
        place = str(description_path(name))
        try:
            bundle(context.library, name, place)
        except InputFileError as error:
            yield finding("MLF805", place, error.reason)


def unnamed_runtime(context: Context) -> Iterator[Finding]:
    """Find a ``runtime`` folder that nobody names."""
    named = {
        PurePosixPath(item.url).parts[:1] for view in context.modules for item in view.module.external_dependencies
    }
    if (_RUNTIME,) not in named and _RUNTIME in context.folders:
        yield finding("MLF804", _RUNTIME, "no module's external_dependencies name it")


RULES = (sound_dependencies, agreeing_dependencies, sound_bundles, unnamed_runtime)
