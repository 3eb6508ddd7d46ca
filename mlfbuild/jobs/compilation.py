"""Compile a model file to an archive; a separate module, so that ``mlfbuild compile`` imports nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild import archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core import UnsupportedModelError, file_sha256, open_binary
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.library import Fact, Library, Module, corrected_sources
from mlfbuild.library.keys import Placement

__all__ = ["Compiled", "check_ram", "compile_model", "compiled_library", "remarks", "sizes"]


@dataclass(frozen=True)
class Compiled:
    """Size of an archive, and of the memory that its modules need together, in bytes."""

    size: int
    constants: int
    workspace: int
    workspace_bound: int | None
    """Peak bytes of the workspace in use, the least that any plan needs; ``None`` if unknown."""
    notes: tuple[str, ...] = ()
    """Remarks on the network and its code."""


def compile_model(job: CompileJob) -> Compiled:
    """Compile the job's model and write its archive.

    The archive is written whole or not at all. Raises as ``compiled_library``, and ``StorageError``.
    """
    library = compiled_library(job)
    archive.write_archive(library, job.archive)
    return sizes(library, job.archive.stat().st_size)


def sizes(library: Library, size: int) -> Compiled:
    """Return ``size``, the bytes of what was written, with the memory of the modules of ``library``, and remarks."""
    memory = [entry for module in library.modules for entry in module.main]
    bounds = [module.workspace_bound for module in library.modules]
    return Compiled(
        size=size,
        constants=sum(entry.constants_size for entry in memory),
        workspace=sum(entry.workspace_size for entry in memory),
        workspace_bound=None if None in bounds else sum(bound or 0 for bound in bounds),
        notes=tuple(remarks(library)),
    )


def remarks(library: Library) -> Iterator[str]:
    """Yield what the compiler reported about the network, and which files of TVM are compiled with corrections."""
    for module in library.modules:
        yield from module.notes
        yield from corrected_sources(module)


def compiled_library(job: CompileJob) -> Library:
    """Compile the job's model, and return the content of its archive, which is not written.

    With the libraries that the project bundles, the extensions of the project file, and the hash of the source if the
    compiler did not record it.

    Raises as ``Compiler.compile``, as ``executable`` for code of other compilers, as ``with_bundles`` for dependencies,
    and ``UnsupportedModelError`` if the arena is larger than the board's RAM.
    """
    library = _with_extensions(compiler_called(job.compiler).compile(job.request), job.request.extensions)
    if job.compiler != "native":
        library = _with_source(library, job.request.source)
        _check_code(library, Placement(shares_workspace=job.request.placement.shares_workspace))
    check_ram(job, library)
    return _with_bundles(job, library) if job.bundles else library


def _with_extensions(library: Library, extensions: Mapping[str, Fact]) -> Library:
    """Return ``library`` with ``extensions`` in each module, in addition to those that the source has."""
    if not extensions:
        return library
    modules = (replace(module, extensions={**module.extensions, **extensions}) for module in library.modules)
    return replace(library, modules=tuple(modules))


def _with_source(library: Library, source: Path) -> Library:
    """Return ``library`` with the hash of ``source`` in each module that does not record its source."""
    with open_binary(source, "model") as file:
        digest = file_sha256(file)
    modules = (
        module if module.model_id or module.source_sha256 else replace(module, source_sha256=digest)
        for module in library.modules
    )
    return replace(library, modules=tuple(modules))


def _with_bundles(job: CompileJob, library: Library) -> Library:
    from mlfbuild.jobs.libraries import with_bundles  # `mlfbuild compile` has no project and does not need it

    return with_bundles(job, library)


def _check_code(library: Library, placement: Placement) -> None:
    """Raise as ``executable`` for modules that cannot be built, before their archive is written."""
    from mlfbuild.executor import executable  # the native compiler's modules do not need it

    for module in library.modules:
        executable(module, placement)


def check_ram(job: CompileJob, library: Library) -> None:
    """Raise ``UnsupportedModelError`` if an arena of ``library`` is larger than the RAM of the job's board.

    Also raises as ``executable``, which computes the memory that is generated for modules of other compilers.
    """
    # The planner has kept to the sizes of several memories, of which the board's RAM is only one.
    if job.ram_limit is None or job.request.memories:
        return
    from mlfbuild.executor import arena_size  # `mlfbuild compile` has no board and does not need it

    for module in library.modules:
        arena = arena_size(module)
        if arena + module.state_size > job.ram_limit:
            limit = f"the board of target {job.target!r} has {job.ram_limit:,} bytes of RAM"
            if job.ram_name:
                limit = f"the model may take {job.ram_limit:,} bytes of {job.ram_name} on target {job.target!r}"
            state = f" and a state of {module.state_size:,}" if module.state_size else ""
            raise UnsupportedModelError(
                "arena-larger-than-ram",
                place=f"{job.request.source}: module {module.name!r}",
                reason=f"needs an arena of {arena:,} bytes{state}, but {limit}",
                hint=_less_memory(job, module, job.ram_limit),
            )


def _less_memory(job: CompileJob, module: Module, limit: int) -> str:
    """Return the hint for an arena larger than ``limit`` bytes: an option that reduces it enough, if there is one."""
    from mlfbuild.executor import ram_size

    advice = "choose a larger board or a smaller model"
    if any(pool.external for pool in module.pools):  # firmware may pass memory that the project does not describe
        advice = "describe the memory for it in memories of the target and of the model, or choose a larger board"
    if job.ram_name:
        advice = f"give it more of {job.ram_name} or another memory in memories, or choose a smaller model"
    options = {**job.request.options, "memory": "smallest"}
    compiler = compiler_called(job.compiler)
    # Compilers other than the native one do not have the option.
    if options == job.request.options or compiler.check_options(options):
        return advice
    # Compiling again takes as long as the first time, but only after an error, and the hint is then a fact.
    library = compiler.compile(replace(job.request, options=options))
    (need,) = (ram_size(other) for other in library.modules if other.name == module.name)
    if need <= limit:
        return f"set 'options: {{memory: smallest}}', with which the model needs {need:,} bytes"
    return f"{advice} ('options: {{memory: smallest}}' would still need {need:,} bytes)"
