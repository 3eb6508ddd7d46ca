"""List the files of a tree before its model is compiled, because builds need them when they are configured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from mlfbuild.jobs import tree
from mlfbuild.jobs.model_builds import outline_of, tree_settings
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.jobs.tree.blobs import BlobSources
from mlfbuild.jobs.tree.build_text import FRAGMENT
from mlfbuild.jobs.tree.devices import DevicePart
from mlfbuild.jobs.tree.parts import Part, parts_of
from mlfbuild.jobs.tree.record import RECORD
from mlfbuild.library import Content, Library, all_files, is_kernel_header

__all__ = ["FRAGMENT", "RECORD", "BlobSources", "DevicePart", "Outline", "Part", "tree_outline"]


@dataclass(frozen=True)
class Outline:
    """The file names of an unpacked tree; paths are relative to it."""

    job: CompileJob
    library: Library
    """The names of modules and files; no modules if they are only known from the archive, which does not exist."""

    @cached_property
    def modules(self) -> tuple[Part, ...]:
        """The modules in the tree."""
        job = self.job
        return parts_of(self.library, job.model, job.request.placement, job.optimize, job.devices).modules

    @cached_property
    def compiled(self) -> tuple[str, ...]:
        """``RECORD.json``, sources, objects and the headers of the interface, which compilers or firmware refer to.

        Other headers are in further folders, and only sources in this tree include them.
        """
        # A dict keeps the order of the archive, and each name once.
        names = dict.fromkeys([RECORD])
        for module, part in zip(self.library.modules, self.modules, strict=True):
            paths = [*(f"codegen/{file.path}" for file in module.codegen), *part.generated]
            names |= dict.fromkeys(part.files)
            # Only headers directly in an include folder of the interface: others are found by the sources that include
            # them.
            names |= dict.fromkeys(path for path in paths if path.rpartition("/")[0] in part.include_dirs)
            for blobs in part.blobs:
                names |= dict.fromkeys([blobs.assembler, blobs.array, blobs.header, *blobs.reads])
            names |= dict.fromkeys(path for device in part.devices for path in (*device.sources, *device.objects))
        return tuple(names)

    @property
    def self_contained(self) -> bool:
        """Whether a build knows everything that the sources include without reading them.

        Sources of the native compiler include the interface, kernel headers whose hash they contain, and system
        headers. Sources for a graph include other sources.
        """
        return self.job.compiler == "native" and all(module.executor == "aot" for module in self.library.modules)

    def interface(self, part: Part) -> tuple[str, ...]:
        """Return the headers of ``part`` that firmware includes.

        Their paths are relative to the tree.
        """
        return tuple(path for path in self.compiled if path.rpartition("/")[0] in part.include_dirs)

    @cached_property
    def others(self) -> tuple[str, ...]:
        """All further files of the tree, in alphabetical order; none if its modules are not known.

        Before the native compiler has compiled the model, these include all kernel headers; the tree will have some.
        """
        if not self.library.modules:
            return ()
        return tuple(sorted(self._files.keys() - {*self.compiled}))

    @cached_property
    def changing(self) -> tuple[str, ...]:
        """The files that compilers may read and builds must watch: those of ``compiled`` and further headers.

        The record is excluded, and so are kernel headers: a source contains the hash of those that it includes.
        """
        further = (path for path in self.others if path.startswith("codegen/") and not _is_kernel(path))
        return tuple(path for path in (*self.compiled, *further) if path != RECORD)

    def is_laid_out(self) -> bool:
        """Return whether every file of the modules exists in the tree, with any content.

        This is a quick check of an earlier build: thousands of files are looked up, and none is read.
        """
        codegen = f"{self.job.tree}{os.sep}codegen{os.sep}"
        files = (file for module in self.library.modules for file in all_files(module))
        # Which kernel headers the tree has is known only after the model was compiled.
        files = (file for file in files if not is_kernel_header(file.path))
        return all(os.path.exists(f"{codegen}{file.path}") for file in files)  # noqa: PTH110 - thousands of them

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The files of the tree except the record; for kernel headers, their folder with ``/`` at its end.

        Which kernel headers the folder contains is known only after the model was compiled.
        """
        if not self.library.modules:
            return (FRAGMENT,)
        return tuple(dict.fromkeys(f"{path.rpartition('/')[0]}/" if _is_kernel(path) else path for path in self._files))

    @property
    def fragment(self) -> str:
        """The text of ``mlf.cmake``, which is known before the model is compiled."""
        return bytes(self._files[FRAGMENT]).decode()

    @cached_property
    def _files(self) -> Mapping[str, Content]:
        return tree.tree_files(self.library, settings=replace(tree_settings(self.job), verified_on=None))


def _is_kernel(path: str) -> bool:
    return is_kernel_header(path.removeprefix("codegen/"))


def tree_outline(job: CompileJob) -> Outline:
    """Return the outline of the job's tree without compiling.

    CMake and SCons must know the files of a library when they are configured, but compiling a model may take minutes.
    Raises as ``outline_of``.
    """
    return Outline(job, outline_of(job) or Library(()))
