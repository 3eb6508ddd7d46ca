"""Make a folder of NuttX's applications, in ``nuttx``, with one Kconfig switch for each model.

The folder is linked into NuttX's ``apps``. Make writes objects next to sources, so that the folder has a file for each
source of the trees, which includes it.

Variables and functions: ``Application.mk``, ``Make.defs`` and ``CMakeLists.txt`` of https://github.com/apache/nuttx-apps
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree.adapters.package import (
    LibraryFiles,
    ModelFiles,
    Package,
    cmake_packages,
    refuse_objects,
    refuse_spaces,
    wrappers,
)
from mlfbuild.jobs.tree.build_text import rendered

RESERVED = {"nuttx": "the folder of the application has this name"}
FOLDER = "nuttx"

_SYSTEM = "nuttx"


def files(package: Package) -> dict[str, str]:
    """Return the files of the folder: path -> text.

    Raises ``UnsupportedModelError`` for compiled objects, for names with spaces and for CMake packages.
    """
    _check(package)
    units = [_unit(switches, owner, package) for switches, owner in _switched(package)]
    sources = [path for model in package.models for path in model.sources]
    sources += [path for library in package.libraries for path in library.sources]
    return {
        "nuttx/Kconfig": rendered("nuttx/Kconfig", models=package.models, cpu=package.cpu),
        "nuttx/Make.defs": rendered("nuttx/Make.defs", public=_folders(package, public=True)),
        "nuttx/Makefile": rendered("nuttx/Makefile", private=_folders(package, public=False), units=units),
        "nuttx/CMakeLists.txt": rendered("nuttx/CMakeLists.txt", units=units),
        "nuttx/.gitignore": rendered("nuttx/gitignore"),
        **wrappers(FOLDER, sources, ".cxx"),
    }


def _check(package: Package) -> None:
    for model in package.models:
        refuse_objects(_SYSTEM, model)
        refuse_spaces(
            _SYSTEM, f"model {model.name!r}", (*model.sources, *model.include_dirs, *model.private_include_dirs)
        )
    for library in package.libraries:
        refuse_spaces(_SYSTEM, f"dependency {library.name!r}", (*library.sources, *library.include_dirs))
    for place in cmake_packages(package):
        reason = "is a CMake package, which NuttX's Makefiles cannot use"
        hint = "name its sources in the project file, or remove --for nuttx"
        raise UnsupportedModelError("cmake-package-in-nuttx", place=place, reason=reason, hint=hint)


def _folders(package: Package, *, public: bool) -> list[str]:
    """Return the include folders for all applications, or the further ones for the sources of the package."""
    folders = [path for model in package.models for path in (model.include_dirs if public else model.runtime_dirs)]
    folders += [path for library in package.libraries if library.public is public for path in library.include_dirs]
    return list(dict.fromkeys(folders))


def _switched(package: Package) -> list[tuple[list[str], ModelFiles | LibraryFiles]]:
    """Return models and libraries with the switches that compile them, any of which is sufficient."""
    found: list[tuple[list[str], ModelFiles | LibraryFiles]] = [
        ([f"CONFIG_MLF_{model.switch}"], model) for model in package.models
    ]
    for library in package.libraries:
        needed = [f"CONFIG_MLF_{switch}" for switch in package.switches_of(library)]
        if needed and library.sources:
            found.append((needed, library))
    return found


def _unit(switches: Sequence[str], owner: ModelFiles | LibraryFiles, package: Package) -> dict[str, object]:
    """Return the values of the templates for a model or a library."""
    # Headers of a library are private to the models that use it unless the project makes them public: applications of
    # NuttX share one set of include folders.
    public, private = list(owner.include_dirs), []
    if isinstance(owner, ModelFiles):
        private = [*owner.runtime_dirs, *package.folders_needed_by(owner)]
    elif not owner.public:
        public, private = private, public
    made = [path.removeprefix("nuttx/") for path in wrappers(FOLDER, owner.sources, ".cxx")]
    return {
        "name": f"mlf_{owner.name}" if isinstance(owner, ModelFiles) else f"mlf_dep_{owner.name}",
        "switches": switches,
        "sources": owner.sources,
        "wrappers": [(path, *(("CXX", "CXXFLAGS") if path.endswith(".cxx") else ("C", "CFLAGS"))) for path in made],
        "options": owner.options,
        # The shell removes one layer of quotes, and Make would expand a single dollar sign.
        "make_options": " ".join(shlex.quote(option).replace("$", "$$") for option in owner.options),
        "public": public,
        "private": private,
    }
