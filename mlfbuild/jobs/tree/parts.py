"""Describe a module for builds: the fragments for CMake, Make and SCons are made from this description.

Paths are relative to the unpacked tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mlfbuild import executor
from mlfbuild.c_analysis import CXX_SUFFIXES, LINKED_SUFFIXES, OBJECT_SUFFIXES, SOURCE_SUFFIXES
from mlfbuild.core import UsageError
from mlfbuild.jobs.tree.blobs import BlobSources, blob_sources, device_blob_sources
from mlfbuild.jobs.tree.build_text import check_path, check_target_name
from mlfbuild.jobs.tree.devices import DevicePart, Devices, device_data, device_parts
from mlfbuild.jobs.tree.library_folders import build_requirements
from mlfbuild.library import Content, Library, Module, Requirement, chunks, kernel_include_dirs
from mlfbuild.library.keys import Placement
from mlfbuild.project import DEFAULT_LEVEL, INHERIT

if TYPE_CHECKING:
    from mlfbuild.executor import Executable

RUNTIME_HEADERS = "runtime/include"
_MATH = re.compile(rb"^\s*#\s*include\s*<(math\.h|cmath)>", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """One module as a static library."""

    name: str
    files: tuple[str, ...]
    """C and C++ sources and compiled objects, in the archive's order."""
    include_dirs: tuple[str, ...]
    """Include folders for the firmware."""
    private_include_dirs: tuple[str, ...] = ()
    """Further include folders for the module's own sources."""
    blobs: tuple[BlobSources, ...] = ()
    """Files as bytes of the image: graph and parameters of graph-executor modules, and data of other devices."""
    devices: tuple[DevicePart, ...] = ()
    """Its code for other devices than the host."""
    generated: Mapping[str, Content] = field(default_factory=dict)
    """Files in the tree that are not in the archive, which provide the C interface."""
    needs: tuple[Requirement, ...] = ()
    """Required libraries."""
    optimize: str = INHERIT
    """Optimisation level of its sources, one of the project's ``LEVELS``."""
    foreign: bool = False
    """Whether another program than mlfbuild wrote its C."""
    libm: bool = False
    """Whether images with it may need the C library's mathematical functions."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that are compiled."""
        return tuple(path for path in self.files if PurePosixPath(path).suffix in SOURCE_SUFFIXES)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of GCC and clang for its sources, after those of the build; empty without sources.

        Its own optimisation level is also that of debug builds. Link-time optimisation would hide in the linker map
        which bytes are the model's, so that no budget of it could be checked. Firmware compiled with ``-Werror`` must
        not fail because of C that its authors cannot change.
        """
        if not self.sources:
            return ()
        # -w only for foreign code: C of the native compiler has no warnings to hide.
        level = () if self.optimize == INHERIT else (f"-{self.optimize}", "-fno-lto")
        return (*level, *(("-w",) if self.foreign else ()))

    @property
    def objects(self) -> tuple[str, ...]:
        """The files that were compiled when the archive was exported."""
        return tuple(path for path in self.files if PurePosixPath(path).suffix in OBJECT_SUFFIXES)

    @property
    def kernel_include_dirs(self) -> tuple[str, ...]:
        """The ``private_include_dirs`` that contain a folder of kernel headers.

        Compilers also find these headers next to the sources; the path is for builds that compile a copy of a source.
        """
        return tuple(path for path in self.private_include_dirs if path.startswith("codegen/"))

    @property
    def blob_dirs(self) -> tuple[str, ...]:
        """The include folder of ``blobs``, if there are any."""
        return tuple(dict.fromkeys(each.include_dir for each in self.blobs))

    @property
    def cxx(self) -> bool:
        """Whether it needs a C++ compiler."""
        return any(PurePosixPath(path).suffix in CXX_SUFFIXES for path in self.files)


@dataclass(frozen=True)
class Parts:
    """The modules of one tree."""

    modules: tuple[Part, ...]
    alias: str | None = None
    """The project's name for all modules, if no module has this name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The modules' names."""
        return tuple(part.name for part in self.modules)

    @property
    def example(self) -> tuple[str, ...]:
        """The names for an example: the project's name if there is one, else the modules' names."""
        return (self.alias,) if self.alias else self.names


def parts_of(
    library: Library,
    model: str | None = None,
    placement: Placement | None = None,
    optimize: str = DEFAULT_LEVEL,
    devices: Devices | None = None,
) -> Parts:
    """Return the description of ``library``, which has the name ``model`` in the project, with data in ``placement``.

    ``optimize`` is the optimisation level of its code, and ``devices`` has those of the target; ``None`` leaves their
    compilers to the build. Raises ``InputFileError`` for a module or file name that build files cannot contain,
    ``UsageError`` if another level than the default is requested for code that has been compiled, and as ``executable``
    and ``device_parts``.
    """
    runtime = any(file.path.is_relative_to(RUNTIME_HEADERS) for file in library.other_files)
    for module in library.modules:
        check_target_name(module.name)
    found = (_part(module, runtime, placement or Placement(), devices) for module in library.modules)
    modules = tuple(_with_level(part, optimize) for part in found)
    if optimize != DEFAULT_LEVEL and modules and not any(part.sources for part in modules):
        raise UsageError(
            "level-of-objects",
            place=f"model {model or modules[0].name}: optimize: {optimize}",
            reason="the archive has only objects, which were compiled when it was exported",
            hint="remove the key, or export C",
        )
    names = {part.name for part in modules}
    # An archive may have modules under other names than the project's model; the alias links all of them.
    alias = model if model is not None and model not in names else None
    if alias is not None:
        check_target_name(alias)
    return Parts(modules, alias)


def _with_level(part: Part, optimize: str) -> Part:
    level = "" if optimize == INHERIT else f"-{optimize}"
    return replace(part, optimize=optimize, devices=tuple(replace(device, level=level) for device in part.devices))


def _part(module: Module, runtime: bool, placement: Placement, devices: Devices | None) -> Part:
    paths = [file.path for file in module.codegen]
    files = tuple(f"codegen/{path}" for path in paths if path.suffix in LINKED_SUFFIXES)
    include_dirs = sorted(
        {f"codegen/{path.parts[0]}/include" for path in paths if len(path.parts) > 2 and path.parts[1] == "include"}
    )
    # Names in an archive are untrusted, and a quote or a dollar sign would change the meaning of a build file.
    for path in (*files, *include_dirs):
        check_path(path)
    part = Part(
        name=module.name,
        files=files,
        include_dirs=tuple(include_dirs),
        private_include_dirs=(RUNTIME_HEADERS,) if runtime and files else (),
        blobs=(
            *(() if module.graph_json is None else (blob_sources(module.name),)),
            *(device_blob_sources(module.name, *each) for each in device_data(module, devices).items()),
        ),
        devices=device_parts(module, devices),
        needs=build_requirements(module),
        foreign=not module.model_id,
        libm=_uses_libm(module),
    )
    # Such a module is built from its own files; any other needs an executor or an interface that is generated here.
    whole = module.complete and not placement.shares_workspace
    # The generated files depend on the placement, because sections are written into their C.
    found = None if whole else executor.executable(module, placement)
    part = part if found is None else _with_executor(part, found)
    kernels = (f"codegen/{folder}" for folder in kernel_include_dirs(paths))
    return replace(part, private_include_dirs=(*part.private_include_dirs, *kernels))


def _uses_libm(module: Module) -> bool:
    """Return whether ``module`` may call libm: C of other compilers that includes ``<math.h>``, objects, and our own C.

    Builds are configured before a model of the native compiler is compiled, when its kernels are not known.
    """
    return bool(module.model_id) or any(
        # The first chunk is enough: includes are at the top of generated code.
        file.path.suffix in OBJECT_SUFFIXES or _MATH.search(next(chunks(file.content), b"")) is not None
        for file in module.codegen
    )


def _with_executor(part: Part, found: Executable) -> Part:
    """Return ``part`` with the generated sources and renamed objects instead of the archive's files."""
    return replace(
        part,
        files=found.files,
        include_dirs=tuple(dict.fromkeys((*found.include_dirs, *part.include_dirs))),
        private_include_dirs=found.private_include_dirs,
        generated=found.generated,
    )
