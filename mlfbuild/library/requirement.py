"""The libraries that the code of a module requires, stated in the archive or recognised by the headers it includes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mlfbuild.c_analysis import MAX_TEXT, TEXT_SUFFIXES, included_files, tokens
from mlfbuild.library.content import text_of
from mlfbuild.library.dependency_problems import archive_folder
from mlfbuild.library.known_libraries import (
    KNOWN,
    STANDALONE_CRT,
    known_library,
    library_of_header,
)
from mlfbuild.library.requirement_names import short_name
from mlfbuild.library.value import ExternalDependency, Module

_HEADERS = tuple(header.encode() for known in KNOWN for header in known.headers)


@dataclass(frozen=True)
class Requirement:
    """A library that code requires; the project file provides it under the same short name."""

    name: str
    """In lower case, with hyphens: ``cmsis-nn``."""
    version: str
    """A tag, a release or a range, as the archive states it; empty if unknown."""
    url: str = ""
    url_type: str = ""
    origin: str = ""
    """The model or archive, for messages."""
    headers: tuple[str, ...] = ()
    """The headers by which it was recognised; empty if the metadata names it."""
    exporter: str = ""
    """Program that made the code, such as ``TVM 0.14.0``, if the version follows from it or is unknown."""

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}".strip()

    @property
    def declared(self) -> bool:
        """Whether the archive's metadata states it."""
        return not self.headers


def requirements_of(module: Module, *, tvm: str = "") -> tuple[Requirement, ...]:
    """Return the libraries that ``module`` requires, without TVM's runtime: first those that the metadata names.

    Others are recognised by headers of known libraries that the code includes and does not contain. Their version is
    the one that the exporting release of TVM was tested with: ``tvm`` if the metadata does not state the release. The
    origin is the module's name. Only the sources of modules that mlfbuild did not compile are read.
    """
    exporter = exporter_version(module) or tvm
    declared = dict.fromkeys(_declared(item, module, exporter) for item in _named(module))
    names = {requirement.name for requirement in declared}
    found = (_recognised(name, headers, module, exporter) for name, headers in _foreign_headers(module).items())
    return (*declared, *(requirement for requirement in found if requirement.name not in names))


def with_requirements(module: Module, *, tvm: str = "") -> Module:
    """Return ``module`` whose external dependencies also name the recognised libraries.

    Libraries of unknown version are left out: a repository without a version is not a valid entry (``MLF801``).
    """
    found = (
        requirement
        for requirement in requirements_of(module, tvm=tvm)
        if requirement.version and not requirement.declared
    )
    added = tuple(
        ExternalDependency(requirement.name, requirement.url, requirement.url_type, requirement.version)
        for requirement in found
    )
    return replace(module, external_dependencies=(*module.external_dependencies, *added)) if added else module


def exporter_version(module: Module) -> str:
    """Return the release of TVM that exported ``module``, the version of its C runtime; empty if it is not stated.

    Empty for modules that mlfbuild compiled, which name a runtime if they need one.
    """
    if module.model_id:
        return ""
    found = (item.version_spec for item in module.external_dependencies if _is_runtime(item))
    return next(found, "")


def runtime_requirement(module: Module) -> Requirement | None:
    """Return TVM's runtime if the metadata of ``module`` names one outside the archive, otherwise ``None``.

    Builds with mlfbuild do not need it.
    """
    found = next((item for item in module.external_dependencies if _is_runtime(item)), None)
    if found is None or archive_folder(found) is not None:
        return None
    return Requirement(STANDALONE_CRT, found.version_spec, found.url, found.url_type, module.name)


def _is_runtime(dependency: ExternalDependency) -> bool:
    return short_name(dependency.short_name) == short_name(STANDALONE_CRT)


def _named(module: Module) -> Iterator[ExternalDependency]:
    return (item for item in module.external_dependencies if item.short_name.strip() and not _is_runtime(item))


def _declared(item: ExternalDependency, module: Module, exporter: str) -> Requirement:
    name, stated = short_name(item.short_name), item.version_spec.strip()
    known = known_library(name)
    tested = known.version_for_tvm(exporter) if known is not None else ""
    # A version that the archive states differently does not follow from the exporter.
    made_by = f"TVM {exporter}" if exporter and stated in {"", tested} else ""
    return Requirement(name, stated or tested, item.url, item.url_type, module.name, exporter=made_by)


def _recognised(name: str, headers: tuple[str, ...], module: Module, exporter: str) -> Requirement:
    known = known_library(name)
    assert known is not None
    made_by = f"TVM {exporter}" if exporter else ""
    return Requirement(name, known.version_for_tvm(exporter), known.url, "git", module.name, headers, made_by)


def _foreign_headers(module: Module) -> Mapping[str, tuple[str, ...]]:
    """Return the headers of known libraries that ``module`` includes, by the name of the library."""
    if module.model_id:  # mlfbuild compiled it: the metadata names all libraries
        return {}
    own = {file.path.name for file in module.codegen}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for include in _includes(module):
        known = library_of_header(include)
        # A header that the archive contains is not that of a library elsewhere.
        if known is not None and include.rpartition("/")[2] not in own:
            found[known.name][include] = None
    return {name: tuple(headers) for name, headers in found.items()}


def _includes(module: Module) -> Iterator[str]:
    for file in module.codegen:
        if file.path.suffix in TEXT_SUFFIXES and len(file.content) <= MAX_TEXT:
            content = bytes(file.content)
            if any(
                header in content for header in _HEADERS
            ):  # most of the text is constants, and reading tokens is slow
                yield from included_files(tokens(text_of(content)))
