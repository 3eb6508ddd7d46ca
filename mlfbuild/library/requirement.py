"""What the code of a module needs from outside of its archive, said by the archive or recognised in the code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mlfbuild.c_analysis import MAX_TEXT, TEXT_SUFFIXES, included_files, tokens
from mlfbuild.library.content import text_of
from mlfbuild.library.known_dependencies import (
    KNOWN,
    STANDALONE_CRT,
    dependency_of_header,
    known_dependency,
    short_name,
)
from mlfbuild.library.types import ExternalDependency, Module

_HEADERS = tuple(header.encode() for known in KNOWN for header in known.headers)


@dataclass(frozen=True)
class Wish:
    """A library that code needs, by the short name that archive and project file meet at."""

    name: str
    """In lower case, with hyphens: ``cmsis-nn``."""
    version: str
    """As the archive has it, a tag or a release; empty where nobody knows which one the code was made for."""
    url: str = ""
    url_type: str = ""
    origin: str = ""
    """What messages call the one who wants it: a model, or an archive."""
    headers: tuple[str, ...] = ()
    """What the code includes of it, where that is how it was recognised; empty where the metadata names it."""
    exporter: str = ""
    """What made the code, as ``TVM 0.14.0``, where the version comes from that, or does not come from anywhere."""

    @property
    def declared(self) -> bool:
        """Whether the archive's metadata says so itself."""
        return not self.headers


def wishes(module: Module, *, tvm: str = "") -> tuple[Wish, ...]:
    """Return what the code of ``module`` needs beside it and TVM's runtime: what the metadata names, then the rest.

    The rest is recognised by the headers of known libraries that the code includes and does not have; its version is
    what the exporting release of TVM was tested with, which is ``tvm`` where the metadata does not tell it. ``origin``
    is the module's name. Reads the sources of modules that mlfbuild did not compile, and tokens of those alone that
    have the name of such a header.
    """
    exporter = exporter_version(module) or tvm
    declared = dict.fromkeys(_declared(item, module, exporter) for item in _named(module))
    names = {wish.name for wish in declared}
    found = (_recognised(name, headers, module, exporter) for name, headers in _foreign_headers(module).items())
    return (*declared, *(wish for wish in found if wish.name not in names))


def with_wishes(module: Module, *, tvm: str = "") -> Module:
    """Return ``module`` with what it needs and does not name in its external dependencies, too.

    What nobody knows the version of is left out: a repository without a version is no dependency (``MLF801``).
    """
    found = (wish for wish in wishes(module, tvm=tvm) if wish.version and not wish.declared)
    added = tuple(ExternalDependency(wish.name, wish.url, wish.url_type, wish.version) for wish in found)
    return replace(module, external_dependencies=(*module.external_dependencies, *added)) if added else module


def exporter_version(module: Module) -> str:
    """Return the release of TVM that exported ``module``, which stands with its C runtime; empty where it does not."""
    found = (item.version_spec for item in module.external_dependencies if _is_runtime(item))
    return next(found, "")


def _is_runtime(dependency: ExternalDependency) -> bool:
    return short_name(dependency.short_name) == short_name(STANDALONE_CRT)


def _named(module: Module) -> Iterator[ExternalDependency]:
    return (item for item in module.external_dependencies if item.short_name.strip() and not _is_runtime(item))


def _declared(item: ExternalDependency, module: Module, exporter: str) -> Wish:
    name, stated = short_name(item.short_name), item.version_spec.strip()
    known = known_dependency(name)
    tested = known.version_for_tvm(exporter) if known is not None else ""
    made_by = f"TVM {exporter}" if exporter and stated in {"", tested} else ""
    return Wish(name, stated or tested, item.url, item.url_type, module.name, exporter=made_by)


def _recognised(name: str, headers: tuple[str, ...], module: Module, exporter: str) -> Wish:
    known = known_dependency(name)
    assert known is not None
    made_by = f"TVM {exporter}" if exporter else ""
    return Wish(name, known.version_for_tvm(exporter), known.url, "git", module.name, headers, made_by)


def _foreign_headers(module: Module) -> Mapping[str, tuple[str, ...]]:
    """Return the headers that ``module`` includes of known libraries, by the name of the library."""
    if module.model_id:  # mlfbuild's own code: its metadata names all that it needs
        return {}
    own = {file.path.name for file in module.codegen}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for include in _includes(module):
        known = dependency_of_header(include)
        if known is not None and include.rpartition("/")[2] not in own:
            found[known.name][include] = None
    return {name: tuple(headers) for name, headers in found.items()}


def _includes(module: Module) -> Iterator[str]:
    for file in module.codegen:
        if file.path.suffix in TEXT_SUFFIXES and len(file.content) <= MAX_TEXT:
            content = bytes(file.content)
            if any(header in content for header in _HEADERS):  # constants take up most files, and tokens take time
                yield from included_files(tokens(text_of(content)))
