"""The compiler of sources that are archives already: somebody else compiled them, they are read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mlfbuild.compilers.seams import HOOK, hooked
from mlfbuild.core import UsageError, listed

if TYPE_CHECKING:
    from mlfbuild.compilers.types import CompileRequest, OptionValue, Placement
    from mlfbuild.library import Library


_NAME = "module-name"
_RUNTIME, _BUNDLED = "runtime", "bundled"


class ArchiveCompiler:
    """Takes a Model Library Format ``.tar``, whatever wrote it."""

    name = "archive"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
        """Return (key, reason) for each option that is not one of the three with a value of its own."""
        found = ((key, _why_not(key, value)) for key, value in options.items())
        return [(key, reason) for key, reason in found if reason is not None]

    def compile(self, request: CompileRequest) -> Library:
        """Return the library in ``request.source``, in the current version.

        Module names stay the archive's own, but for that of the option ``module-name``.
        Raises ``InputFileError`` where the file is not a sound archive, ``UsageError`` where the request asks for an
        option, an executor or a placement that the archive does not have, or a CPU that its code is not for.
        """
        from mlfbuild.archive import open_archive  # builds without an archive to read start faster

        for key, reason in self.check_options(request.options):
            raise UsageError(f"{request.name}: option {key}: {reason}; remove it")
        library = open_archive(request.source)
        if _NAME in request.options:
            library = _renamed(library, request)
        library = accepted(library, request, str(request.source))
        if request.options.get(HOOK):
            library = hooked(library, request.name, str(request.source))
        return _with_its_runtime(library, request) if _RUNTIME in request.options else library

    def outline(self, request: CompileRequest) -> Library:
        """Return what ``compile`` does: an archive is read lazily, its index and metadata first."""
        return self.compile(request)


def _why_not(key: str, value: OptionValue) -> str | None:
    from mlfbuild.archive import NEW_NAME

    if key == _NAME:
        sound = NEW_NAME.fullmatch(str(value))
        return None if sound else "must be a name of small letters, digits and underscores: kws_v2"
    if key == _RUNTIME:
        return None if value == _BUNDLED else f"must be {_BUNDLED}: the runtime that the archive brings"
    if key == HOOK:
        return None if isinstance(value, bool) else "must be true or false"
    return f"an archive is compiled already and takes no options but {_NAME}, {_RUNTIME} and {HOOK}"


def _with_its_runtime(library: Library, request: CompileRequest) -> Library:
    from mlfbuild.library import BACKEND, bundled_configuration

    configuration = bundled_configuration(library.other_files)
    if configuration is None:
        raise UsageError(
            f"{request.name}: option {_RUNTIME}: {request.source} brings no runtime of TVM that can be built "
            f"({BACKEND}, its headers, and a template of crt_config.h); remove the option"
        )
    return replace(library, modules=tuple(replace(module, runtime=configuration) for module in library.modules))


def _renamed(library: Library, request: CompileRequest) -> Library:
    from mlfbuild.archive import rename_modules

    name, where = str(request.options[_NAME]), f"{request.name}: {request.source}"
    if len(library.modules) > 1:
        names = listed([module.name for module in library.modules])
        raise UsageError(
            f"{where}: holds several modules ({names}), and options.{_NAME} names one; rename each with "
            f"`mlfbuild convert {request.source.name} --module-name OLD=NEW -o OUT.tar`"
        )
    try:
        return rename_modules(library, {library.modules[0].name: name})
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def accepted(library: Library, request: CompileRequest, where: str, *, tvm: str = "") -> Library:
    """Return ``library``, which somebody else compiled, in the current version; module names stay its own.

    Its metadata then names the libraries that its code needs, those too that only the code tells of; ``tvm`` is the
    release of TVM that made it, where somebody knows it. ``where`` names the archive in messages. Raises ``UsageError``
    where ``request`` asks for an executor or a placement that the library does not have, or a CPU that its code is not
    for.
    """
    from mlfbuild.archive import convert
    from mlfbuild.compilers.fit import check_fit
    from mlfbuild.library import with_requirements
    from mlfbuild.library.metadata import CURRENT

    executors = sorted({module.executor for module in library.modules})
    if request.executor is not None and "" in executors:
        raise UsageError(f"{request.name}: {where} holds an operator, which has no executor; leave it out")
    if request.executor is not None and request.executor not in executors:
        raise UsageError(
            f"{request.name}: {where} was exported for the {' and '.join(executors)} executor, "
            f"not for {request.executor}; choose executor {executors[0]}"
        )
    check_placement(library, request.placement, request.name, where)
    check_fit(library, request.cpu, f"{request.name}: {where}")
    library = convert(library, CURRENT)
    return replace(library, modules=tuple(with_requirements(module, tvm=tvm) for module in library.modules))


def check_placement(library: Library, placement: Placement, name: str, where: str) -> None:
    """Refuse sections for what the library's own C code has; that of graphs and packed functions is made here.

    ``name`` is the model's, ``where`` names its archive. Raises ``UsageError``.
    """
    for kind, mistake in placement.problems():
        place = f"{name}: placement.{kind}"
        raise UsageError(mistake.code, place=place, reason=mistake.reason, hint=mistake.hint)
    if placement.shares_workspace:
        raise UsageError(f"{name}: placement of the workspace: {where} decides it; remove it")
    if placement.state is not None:
        raise UsageError(f"{name}: placement of the state: {where} has none that is kept apart; remove it")
    for module in library.modules:
        graph = module.executor == "graph"
        if placement.names_constants and not (graph and module.params):
            raise UsageError(f"{name}: {_in_its_code('parameters', where, module.name, '.rodata.tvm')}")
        if placement.workspace is not None and module.model_id and not graph:
            raise UsageError(f"{name}: {_in_its_code('workspace', where, module.name, '.bss.noinit.tvm')}")


def _in_its_code(what: str, where: str, module: str, section: str) -> str:
    return (
        f"placement of the {what}: the C code of {where} has a section for that, or there are none; "
        f"remove it, or place *libmlf_{module}.a:*({section}) in the linker script"
    )


ARCHIVE = ArchiveCompiler()
