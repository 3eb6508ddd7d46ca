"""Make a library of the files of an archive, for all versions and styles of Model Library Format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.codegen import CODEGEN, check_no_shared_library, owners
from mlfbuild.archive.describe.readme import README, is_written_archive
from mlfbuild.archive.interface import with_interface
from mlfbuild.archive.paths import METADATA, params_path
from mlfbuild.core import InputFileError, quoted
from mlfbuild.library import (
    OPERATOR,
    PLAN,
    ArchiveFile,
    CodegenFile,
    Content,
    Fields,
    Library,
    Module,
    Params,
    is_plan,
    load_params,
    load_params_bson,
    load_params_json,
    parse_json,
    with_files,
    with_plan,
)
from mlfbuild.library.metadata import (
    FORMATS,
    Format,
    ModuleRecord,
    read_document,
    read_format,
    read_modules,
    read_unknown,
)

_MAX_METADATA = 16 * 1024 * 1024  # bytes; TVM writes a few hundred per operator
_MODULE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_MAX_NAME = 200  # file names may have 255 bytes, and the module's name is a part of them
_EXPORT = "export the archive again"
_SKETCHED_METADATA = re.compile(r"metadata-([0-9]{1,4})\.json", re.ASCII)
_PARAMS: Mapping[str, Callable[[Content, str], Params]] = {
    params_path("{module}", "params"): load_params,
    params_path("{module}", "json"): load_params_json,
    params_path("{module}", "bson"): load_params_bson,
}
_TIR = re.compile(r"src/tir-(0|[1-9][0-9]{0,4})\.txt", re.ASCII)


def read_files(files: Mapping[str, Content], where: str) -> Library:
    """Return the library in an archive with ``files``: relative path without ``./`` -> content.

    Files with unknown paths are kept unchanged. ``where`` is the archive in errors. Raises ``InputFileError``, with the
    member as its place, if the files are not in Model Library Format, or use an unsupported feature of it.
    """
    name, named_version = _metadata_name(files, where)
    # Before it is parsed, because a JSON text of this size would take much memory.
    if len(files[name]) > _MAX_METADATA:
        raise InputFileError(
            "metadata-too-large",
            place=f"{where}: {name}",
            reason=f"is larger than {_MAX_METADATA >> 20} MiB",
            hint=_EXPORT,
        )
    document = read_document(bytes(files[name]), f"{where}: {name}")
    form = read_format(document, named_version)
    check_no_shared_library(files, where)
    records = read_modules(document, form)
    _check_names(records, document.where)
    archive = _Archive(files, form, owners(files, records, where), where, alone=len(records) == 1)
    modules = _planned(tuple(archive.module(record) for record in records), archive, where)
    if is_written_archive(files):
        # A page that mlfbuild wrote is derived from the rest and written again; one of another tool stays as a file.
        archive.used.add(README)
    unused = (path for path in files if path != name and path not in archive.used)
    others = tuple(ArchiveFile(PurePosixPath(path), files[path]) for path in unused)
    return Library(modules, form.version, others, read_unknown(document, records))


def _planned(modules: tuple[Module, ...], archive: _Archive, where: str) -> tuple[Module, ...]:
    """Return ``modules`` with the kernels of ``plan.json``; a file of this name from another tool is kept as it is."""
    if PLAN not in archive.files or len(archive.files[PLAN]) > _MAX_METADATA:
        return modules
    place = f"{where}: {PLAN}"
    document = parse_json(bytes(archive.files[PLAN]), place, _EXPORT)
    if not is_plan(document):
        return modules
    archive.used.add(PLAN)
    planned = Fields(document, place, advice=_EXPORT).member("modules")
    return tuple(with_plan(module, planned) for module in modules)


def _metadata_name(files: Mapping[str, Content], where: str) -> tuple[str, int | None]:
    """Return the path of the metadata, and the version in its name or ``None``."""
    # The first RFC has the version in the name of the file.
    sketched = {path: int(found[1]) for path in files if (found := _SKETCHED_METADATA.fullmatch(path))}
    names = sorted([*sketched, *({METADATA} & files.keys())])
    if not names:
        raise InputFileError(
            "metadata-missing",
            place=where,
            reason=f"has no {METADATA}, so it is not an archive in Model Library Format",
            hint="check the path",
        )
    if len(names) > 1:
        hint = "keep only the file that describes the archive"
        raise InputFileError("metadata-ambiguous", place=where, reason=f"has {' and '.join(names[:3])}", hint=hint)
    return names[0], sketched.get(names[0])


def _check_names(records: Sequence[ModuleRecord], where: str) -> None:
    for record in records:
        name = record.module.name
        if not _MODULE_NAME.fullmatch(name) or len(name) > _MAX_NAME:
            raise InputFileError(
                "module-name-unsafe",
                place=f"{where}: module {quoted(name)}",
                reason="the name of the module cannot be part of a file name",
                hint="export the model with a name of letters, digits and _",
            )


class _Archive:
    """The files of an archive, assigned to one module after the other."""

    def __init__(
        self,
        files: Mapping[str, Content],
        form: Format,
        owners: Mapping[str, Sequence[str]],
        where: str,
        *,
        alone: bool,
    ) -> None:
        self.used = set(owners)
        self.files = files
        self._form = form
        self._where = where
        self._alone = alone
        self._codegen: dict[str, list[CodegenFile]] = {}
        for path, modules in owners.items():
            file = CodegenFile(PurePosixPath(path).relative_to(CODEGEN), files[path])
            for module in modules:
                self._codegen.setdefault(module, []).append(file)

    def module(self, record: ModuleRecord) -> Module:
        """Return the module of ``record`` with its files, and with inputs and outputs in call order."""
        module = with_files(record.module, self._codegen.get(record.module.name, ()))
        module = self._operator(module) if module.style == OPERATOR else self._model(module)
        graph = self._place(Format.graph_path, module.name) if module.graph_json is not None else ""
        module = with_interface(module, f"{self._where}: {graph}")
        extension = record.extension
        # What mlfbuild recorded itself is complete, and takes precedence over facts from headers and Relay text.
        return replace(
            module,
            inputs=module.inputs if extension.inputs is None else extension.inputs,
            outputs=module.outputs if extension.outputs is None else extension.outputs,
        )

    def _model(self, module: Module) -> Module:
        params = self._params(module.name)
        if params is None:
            raise self._missing(params_path(module.name))
        # The RFC of several modules lists no executors.
        if not module.executor:
            graph = self._place(Format.graph_path, module.name)
            module = replace(module, executor="aot" if graph is None else "graph")
        return replace(
            module,
            params=params,
            # Only the graph executor needs it; a graph in an archive of another executor is kept as a file of no
            # module.
            graph_json=self._graph(module.name) if module.executor == "graph" else None,
            source_text=self._take(self._place(Format.program_path, module.name), b""),
        )

    def _operator(self, module: Module) -> Module:
        # All texts count as used, whichever device they are for.
        texts = {int(found[1]): path for path in self.files if (found := _TIR.fullmatch(path))}
        self.used.update(texts.values())
        return replace(
            module,
            tir=tuple((device, self.files[path]) for device, path in sorted(texts.items())),
            params=self._params(module.name) or {},
        )

    def _graph(self, name: str) -> Content:
        # The path of another version is accepted, because exporters moved files without a new version number.
        path = self._place(Format.graph_path, name)
        if path is None:
            raise self._missing(self._form.graph_path(name))
        return self._take(path, b"")

    def _params(self, name: str) -> Params | None:
        """Return the parameters; if the archive has them in several forms, TVM's counts."""
        for form, load in _PARAMS.items():
            path = form.format(module=name)
            if path in self.files:
                return load(self._take(path, b""), f"{self._where}: {path}")
        return None

    def _place(self, place: Callable[[Format, str], str], name: str) -> str | None:
        """Return the path of a file of the module in its version, or in another version if that is the only one.

        If there are several modules, paths of versions without the module's name do not count.
        """
        own = place(self._form, name)
        if own in self.files:
            return own
        # Before version 7, graph and program have names without the module's: with several modules, it would be a guess
        # whose they are.
        known = {place(form, name) for form in FORMATS.values() if self._alone or form.modules}
        others = {path for path in known if path in self.files}
        if len(others) > 1:
            reason = f"has {' and '.join(sorted(others))}, but not {own}, the path in version {self._form.version}"
            raise InputFileError("archive-file-ambiguous", place=self._where, reason=reason, hint="remove all but one")
        return next(iter(others), None)

    def _take(self, path: str | None, default: bytes) -> Content:
        if path is None:
            return default
        self.used.add(path)
        return self.files[path]

    def _missing(self, path: str) -> InputFileError:
        return InputFileError("archive-file-missing", place=f"{self._where}: {path}", reason="is missing", hint=_EXPORT)
