"""What a tree will hold, known before its model is compiled: what a build must be told of when it is configured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from mlfbuild.firmware import tree_files
from mlfbuild.firmware.cmake import FRAGMENT
from mlfbuild.firmware.parts import Part, parts_of
from mlfbuild.firmware.record import RECORD
from mlfbuild.steps.jobs import CompileJob
from mlfbuild.steps.models import outline_of

__all__ = ["FRAGMENT", "RECORD", "Outline", "Part", "tree_outline"]


@dataclass(frozen=True)
class Outline:
    """The files of an unpacked tree by their paths in it, and the modules that are made of them."""

    files: tuple[str, ...]
    """``RECORD.json`` is the first."""
    modules: tuple[Part, ...]

    @property
    def compiled(self) -> tuple[str, ...]:
        """``RECORD.json``, ``mlf.cmake`` and what compilers or firmware name: sources, objects, interface headers.

        Other headers lie in folders below those of the interface: what includes them is compiled from this tree, too.
        """
        named = {path for module in self.modules for path in _named(module)}
        dirs = {path for module in self.modules for path in _include_dirs(module)}
        return (
            RECORD,
            FRAGMENT,
            *(path for path in self.files if path in named or str(PurePosixPath(path).parent) in dirs),
        )


def tree_outline(job: CompileJob) -> Outline:
    """Return the outline of the job's tree; compiles nothing, raises as ``Compiler.outline`` does."""
    library = outline_of(job)
    files = tree_files(library, model=job.model, params_section=job.request.placement.params)
    return Outline((RECORD, *files), parts_of(library, job.model).modules)


def _named(module: Part) -> tuple[str, ...]:
    blobs = module.blobs
    return module.files + ((blobs.assembler, blobs.array, *blobs.reads) if blobs else ())


def _include_dirs(module: Part) -> tuple[str, ...]:
    return module.include_dirs + ((module.blobs.include_dir,) if module.blobs else ())
