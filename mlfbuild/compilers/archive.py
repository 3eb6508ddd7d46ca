"""The compiler ``archive``: reads and checks a Model Library Format archive that another tool exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mlfbuild.compilers.hook_support import HOOK, hooked
from mlfbuild.core import Mistake, UsageError, listed
from mlfbuild.library import check_switch, invalid_option, refuse_options
from mlfbuild.library.cgen import chooses_section

if TYPE_CHECKING:
    from mlfbuild.library import CompileRequest, Library, OptionValue
    from mlfbuild.library.keys import Placement


_NAME = "module-name"
# The option has one value, but is not a switch: the default is mlfbuild's own part of the runtime.
_RUNTIME, _BUNDLED = "runtime", "bundled"


class ArchiveCompiler:
    """Reads a Model Library Format ``.tar`` of any tool."""

    name = "archive"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
        """Return (key, mistake) for each option that is unknown or has a value that is not accepted."""
        found = ((key, _why_not(key, value)) for key, value in options.items())
        return [(key, mistake) for key, mistake in found if mistake is not None]

    def compile(self, request: CompileRequest) -> Library:
        """Return the library in ``request.source``, in the current version.

        Modules keep their names, unless the option ``module-name`` is set.
        Raises as ``check_signed`` if the request has ``trust``, ``InputFileError`` if the file is not a valid archive,
        ``UsageError`` if the request has an option, an executor or a placement that the archive does not have, or a CPU
        that cannot run its code.
        """
        from mlfbuild.archive import open_archive, open_archive_with_id  # builds without an archive start faster

        refuse_options(self, request)
        if request.trust is None:
            library = open_archive(request.source)
        else:
            # The hash that images have is that of the bytes whose signature was checked.
            library, digest = open_archive_with_id(request.source, request.trust)
            library = _with_source(library, digest)
        if _NAME in request.options:
            library = _renamed(library, request)
        # After the renaming, so that messages and the files that conversion creates have the names of this project.
        library = accepted(library, request, str(request.source))
        # After `accepted`, which refuses an executor that does not fit: its message names the cause, and the hook's
        # would not.
        if request.options.get(HOOK):
            library = hooked(library, request.name, str(request.source))
        return _with_its_runtime(library, request) if _RUNTIME in request.options else library

    def outline(self, request: CompileRequest) -> Library:
        """Return the result of ``compile``, which reads only the archive's index and metadata."""
        return self.compile(request)


def _why_not(key: str, value: OptionValue) -> Mistake | None:
    from mlfbuild.archive import NEW_NAME

    if key == _NAME:
        sound = NEW_NAME.fullmatch(str(value))
        return None if sound else invalid_option("must be lower-case letters, digits and underscores, such as kws_v2")
    if key == _RUNTIME:
        return None if value == _BUNDLED else invalid_option(f"must be {_BUNDLED}, the runtime in the archive")
    if key == HOOK:
        return check_switch(value)
    reason = f"an archive is already compiled, so its only options are {_NAME}, {_RUNTIME} and {HOOK}"
    return Mistake("option-of-compiled-archive", reason=reason, hint="remove it")


def _with_source(library: Library, digest: str) -> Library:
    modules = (m if m.model_id or m.source_sha256 else replace(m, source_sha256=digest) for m in library.modules)
    return replace(library, modules=tuple(modules))


def _with_its_runtime(library: Library, request: CompileRequest) -> Library:
    from mlfbuild.library import BACKEND, bundled_configuration

    configuration = bundled_configuration(library.other_files)
    if configuration is None:
        raise UsageError(
            "archive-without-runtime",
            place=f"{request.name}: options.{_RUNTIME}",
            reason=f"{request.source} contains no TVM runtime ({BACKEND}, its headers and a template of crt_config.h)",
            hint="remove the option",
        )
    return replace(library, modules=tuple(replace(module, runtime=configuration) for module in library.modules))


def _renamed(library: Library, request: CompileRequest) -> Library:
    from mlfbuild.archive import rename_modules

    name, place = str(request.options[_NAME]), f"{request.name}: options.{_NAME}"
    if len(library.modules) > 1:
        names = listed([module.name for module in library.modules])
        raise UsageError(
            "one-name-for-several-modules",
            place=place,
            reason=f"{request.source} holds several modules ({names})",
            hint=f"rename each with `mlfbuild convert {request.source.name} --module-name OLD=NEW -o OUT.tar`",
        )
    try:
        return rename_modules(library, {library.modules[0].name: name})
    except UsageError as error:
        raise error.within(place) from None


def accepted(library: Library, request: CompileRequest, where: str, *, tvm: str = "") -> Library:
    """Return ``library``, which another tool compiled, in the current version; modules keep their names.

    The metadata of the result lists all libraries that its code requires, including those that are only detected in the
    code; ``tvm`` is the release of TVM that wrote it, if known. ``where`` names the archive in messages. Raises
    ``UsageError`` if ``request`` has an executor or a placement that the library does not have, or a CPU that cannot
    run its code.
    """
    from mlfbuild.archive import convert
    from mlfbuild.compilers.abi_check import check_fit
    from mlfbuild.library import with_requirements
    from mlfbuild.library.metadata import CURRENT

    executors = sorted({module.executor for module in library.modules})
    if request.executor is not None and "" in executors:
        raise UsageError(
            "operator-without-executor",
            place=f"{request.name}: executor",
            reason=f"{where} holds a single operator, which has no executor",
            hint="remove it",
        )
    if request.executor is not None and request.executor not in executors:
        raise UsageError(
            "archive-of-another-executor",
            place=f"{request.name}: executor",
            reason=f"{where} was exported for the {' and '.join(executors)} executor, not for {request.executor}",
            hint=f"choose executor {executors[0]}",
        )
    if request.memories:
        raise UsageError(
            "memories-refused",
            place=f"{request.name}: memories",
            reason=f"{where} is compiled already, so its data cannot be planned over several memories",
            hint="remove it, or use the native compiler",
        )
    check_placement(library, request.placement, request.name, where)
    check_fit(library, request.cpu, f"{request.name}: {where}")
    # After the checks, whose places have the names of files in the archive: conversion may rename these.
    library = convert(library, CURRENT)
    return replace(library, modules=tuple(with_requirements(module, tvm=tvm) for module in library.modules))


def check_placement(library: Library, placement: Placement, name: str, where: str) -> None:
    """Raise ``UsageError`` if ``placement`` has a section for data that the library's own C code defines.

    Data of graphs and packed functions can be placed, because mlfbuild generates its code. ``name`` is the model's,
    ``where`` names its archive.
    """
    place = f"{name}: placement"
    for kind, mistake in placement.problems():
        raise mistake.error(f"{place}.{kind}")
    if placement.state is not None:
        raise UsageError(
            "archive-without-state",
            place=f"{place}.state",
            reason=f"{where} has no separate buffer for its state",
            hint="remove it",
        )
    for module in library.modules:
        # Parameters of graphs are in a file that mlfbuild turns into C; AOT code of TVM contains them as arrays.
        graph = module.executor == "graph"
        if placement.code is not None:
            raise _in_its_code(f"{place}.code", where, module.name, ".text .text.*")
        if placement.names_constants and not (graph and module.params):
            raise _in_its_code(f"{place}.params", where, module.name, ".rodata.tvm")
        # The C of the native compiler defines its workspace as a union; the executor's is generated here.
        if chooses_section(placement.workspace) and module.model_id and not graph:
            raise _in_its_code(f"{place}.workspace", where, module.name, ".bss.noinit.tvm")


def _in_its_code(place: str, where: str, module: str, section: str) -> UsageError:
    return UsageError(
        "archive-chooses-section",
        place=place,
        reason=f"the C code in {where} chooses the section",
        hint=f"remove it, or place *libmlf_{module}.a:*({section}) in the linker script",
    )


ARCHIVE = ArchiveCompiler()
