"""Several archives as one: ``merge``.

What two archives may not both have is found by reading them: module names, files, external dependencies, the C
runtime, and the global names that their code defines. It is rewritten where nobody outside of the archive can tell,
and refused otherwise, with the names of both archives and what to do. ``merge`` goes from the outside in: ``names`` and
``files`` compare what is beside the code, ``kernels`` keeps the headers of two versions of mlfbuild apart, ``parts``
has the symbols of the code, ``system_lib`` (with the tables that ``registry`` reads and writes), ``context`` and
``clashes`` make it one image's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlfbuild.archive.conversion import convert
from mlfbuild.archive.merge.bundles import with_merged_bundles
from mlfbuild.archive.merge.clashes import clashes, resolved
from mlfbuild.archive.merge.context import with_one_context
from mlfbuild.archive.merge.files import check_case, with_unique_paths
from mlfbuild.archive.merge.kernels import with_own_kernels
from mlfbuild.archive.merge.names import (
    check_archives,
    check_dependencies,
    check_module_names,
    merged_other_files,
    with_each_dependency_once,
)
from mlfbuild.archive.merge.parts import Part, SymbolTable
from mlfbuild.archive.merge.system_lib import (
    SystemLibrary,
    check_system_libraries,
    system_libraries,
    with_merged_library,
    without_registries,
)
from mlfbuild.core import lazy_attributes
from mlfbuild.library import Library

if TYPE_CHECKING:
    from mlfbuild.archive.merge.registry import registry_source as registry_source
else:
    __getattr__ = lazy_attributes(__name__)


_VERSION = 7  # the first that holds several modules


def merge(libraries: Sequence[tuple[str, Library]]) -> Library:
    """Return one library, of version 7, with the modules of all of ``libraries``: (name of the archive, library).

    The modules stay as they are but for what cannot stand twice in one image: system libraries become one, in a file
    of its own; functions of a name that another module has as well, and that nobody else calls, get their module's
    name. Their order does not matter. Raises ``CheckFailedError``, which names both archives and the modules, the
    name or symbol and what to do, where two of them do not fit together; ``UsageError`` where there is none, or one
    is given twice; ``InputFileError`` for an object that is damaged.
    """
    libraries = sorted(libraries, key=lambda pair: pair[0])
    check_archives(libraries)
    libraries = [(name, convert(library, _VERSION)) for name, library in libraries]
    parts = [Part(name, with_each_dependency_once(module)) for name, library in libraries for module in library.modules]
    parts.sort(key=lambda part: (part.module.name, part.archive))
    check_module_names(parts)
    check_dependencies(parts)
    others = merged_other_files(with_merged_bundles(libraries))
    parts = with_unique_paths(with_own_kernels(parts))
    check_case(parts, others)
    parts = _linkable(parts)
    return Library(tuple(part.module for part in parts), version=_VERSION, other_files=others)


def _linkable(parts: list[Part]) -> list[Part]:
    """Return ``parts`` so that all of their code links into one image."""
    table = SymbolTable(parts)
    libraries = system_libraries(parts, table)
    check_system_libraries(libraries, parts, table)
    parts = with_one_context(parts, table)
    table = SymbolTable(parts, table)
    found = clashes(parts, table)
    rebuilt = libraries if len(libraries) > 1 or _registered(libraries, {clash.symbol for clash in found}) else []
    parts = without_registries(parts, rebuilt)
    parts, renames = resolved(parts, found, table)
    return with_merged_library(parts, rebuilt, renames) if rebuilt else parts


def _registered(libraries: Sequence[SystemLibrary], symbols: set[str]) -> bool:
    """Whether a registry has one of ``symbols``, and so must be written anew where they get other names."""
    registries = [library.registry for library in libraries if library.registry is not None]
    return any(function in symbols for registry in registries for _, function in registry.functions)
