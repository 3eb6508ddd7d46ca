"""The files of an archive.

::

    metadata.json
    codegen/<target>/{src,include,lib}/...     of all modules, distinct by name: <module>_lib<n>.c, tvmgen_<module>.h
    parameters/<module>.params                 or, on request, .json or .bson
    src/<module>.relay                         version 7; src/relay.txt from version 4 on, relay.txt before
    src/tir-<device type>.txt                  operators, which have no parameters and no graph
    executor-config/graph/<module>.graph       version 7, graph executor only; graph.json before, until version 4 in
                                               runtime-config/
    plan.json                                  kernels of the native compiler and why they were chosen
    README.md                                  a description for people
    runtime/... templates/...                  TVM's C runtime, belongs to no module
    dependencies/<name>/... <name>.json        bundled libraries that the code requires
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from mlfbuild.archive.codegen import CODEGEN, bears_name
from mlfbuild.archive.conversion import convert
from mlfbuild.archive.describe.readme import README, has_page, readme_text
from mlfbuild.archive.epoch import source_datetime
from mlfbuild.archive.interface import with_interface
from mlfbuild.archive.paths import METADATA, PARAMETERS, params_path, tir_path
from mlfbuild.archive.tar.paths import first_fault
from mlfbuild.core import UsageError, cached_text, quoted, shown
from mlfbuild.library import (
    OPERATOR,
    PLAN,
    Content,
    Library,
    Module,
    Params,
    TensorInfo,
    all_files,
    chunks,
    plan_json,
    save_params,
    save_params_bson,
    save_params_json,
)
from mlfbuild.library.metadata import CURRENT, EXTENSION, FORMATS, KEPT_FACTS, Extension, Format, metadata_json

_SAVED: Mapping[str, Callable[[Params], Content]] = {
    "params": save_params,
    "json": save_params_json,
    "bson": save_params_bson,
}
PARAMS_FORMS = tuple(_SAVED)
"""The forms of parameters in archives; the first one is that of TVM's exporters."""


def archive_files(library: Library, version: int | None = None, params: str = PARAMS_FORMS[0]) -> dict[str, Content]:
    """Return all files of the archive of ``library`` in ``version``, by default 7: relative path -> content, sorted.

    The library is converted if it has another version. ``params`` is one of ``PARAMS_FORMS``. Raises ``UsageError`` if
    the version or the form cannot hold it, or if two different files would have the same path, and
    ``ToolNotFoundError`` without the package that writes BSON.
    """
    library = convert(library, CURRENT if version is None else version)
    form = FORMATS[library.version]
    files = _Files()
    files.add(METADATA, _metadata(library, form))
    plan = plan_json(library.modules)
    if plan is not None:
        files.add(PLAN, plan)
    for module in library.modules:
        for file in all_files(module):
            files.add(f"{CODEGEN}{file.path}", file.content)
        if module.style != OPERATOR or module.params:
            files.add(params_path(module.name, params), _SAVED[params](module.params))
        for device, text in module.tir if module.style == OPERATOR else ():
            files.add(tir_path(device), text)
        if module.style != OPERATOR and len(module.source_text):
            files.add(form.program_path(module.name), module.source_text)
        if module.style != OPERATOR and module.graph_json is not None:
            files.add(form.graph_path(module.name), module.graph_json)
    for other in library.other_files:
        files.add(str(other.path), other.content)
    # A page of another tool keeps its place.
    if not has_page(files):
        # From the cache, because a build with nothing to do compares it with the page of the tree.
        files.add(README, cached_text(_parts(files), lambda: readme_text(library)).encode())
    # Before anything is written: an archive that `members` would refuse must not exist.
    files.check()
    return dict(sorted(files.items()))


def _parts(files: Mapping[str, Content]) -> Iterator[bytes]:
    """Yield what decides the page of an archive: names and sizes of its ``files``, and contents but the parameters'."""
    for path, content in sorted(files.items()):
        yield f"{path}\0{len(content)}\0".encode(errors="surrogatepass")
        # The page has no values of parameters, which may be as long as all other files together.
        if not path.startswith(PARAMETERS):
            yield from chunks(content)


def moved_fields(library: Library, version: int) -> tuple[str, ...]:
    """Return the places of unknown fields that ``version`` can hold only in the key ``mlfbuild``, sorted.

    Raises the errors of ``archive_files``.
    """
    if not library.unknown and not any(module.unknown for module in library.modules):
        return ()
    library = convert(library, version)
    document = json.loads(_metadata(library, FORMATS[version]))
    keys = [module.get(EXTENSION, {}) for module in document.get("modules", {"": document}).values()]
    return tuple(sorted({place for key in keys for part in ("unknown", "archive") for place in key.get(part, ())}))


def _metadata(library: Library, form: Format) -> bytes:
    extensions = {module.name: _extension(module, library, form) for module in library.modules}
    return metadata_json(library, source_datetime(), extensions)


class _Files(dict[str, Content]):
    """Contents by path, one for each path."""

    def add(self, path: str, content: Content) -> None:
        if self.setdefault(path, content) != content:
            raise UsageError(
                "archive-path-taken",
                place=shown(path),
                reason="the library has two different files with this path in the archive",
                hint="rename one of them",
            )

    def check(self) -> None:
        """Raise ``UsageError`` for paths that an archive cannot hold, before anything is written."""
        found = first_fault(self)
        if found is not None:
            path, fault = found
            raise UsageError(
                "archive-path-invalid", place=quoted(path), reason=f"the file of the library {fault}", hint="rename it"
            )


def _extension(module: Module, library: Library, form: Format) -> Extension:
    """Return the facts that a reader could not find in TVM's keys or the module's files."""
    # Values that a reader derives are not recorded, so an archive of TVM is written without the key.
    found = with_interface(_as_in_metadata(module, form), module.name)
    several = len(library.modules) > 1
    return Extension(
        inputs=None if module.inputs == found.inputs else module.inputs,
        outputs=None if module.outputs == found.outputs else module.outputs,
        codegen=tuple(
            str(file.path) for file in all_files(module) if several and not bears_name(file.path, module.name)
        ),
        main=() if form.memory_of_functions else module.main,
        operator_functions=() if form.memory_of_functions else module.operator_functions,
        external_dependencies=() if form.dependencies else module.external_dependencies,
        contexts=module.contexts,
        target_devices=_target_devices(module, form),
        export_utc=module.export_utc,
        **{name: getattr(module, name) for name in KEPT_FACTS},
    )


def _as_in_metadata(module: Module, form: Format) -> Module:
    """Return ``module`` with inputs and outputs as TVM's keys hold them: sorted by name, without shapes."""
    if not form.tensors or not module.main:
        return replace(module, inputs=(), outputs=())
    return replace(module, inputs=_plain(module.inputs), outputs=_plain(module.outputs))


def _plain(tensors: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    by_name = {tensor.name: tensor for tensor in tensors}
    return tuple(TensorInfo(name, by_name[name].dtype, by_name[name].size) for name in sorted(by_name))


def _target_devices(module: Module, form: Format) -> tuple[int | None, ...]:
    """Return the device types that the version does not record, or their order if it sorts the targets by them."""
    devices = tuple(target.device for target in module.targets)
    recorded = tuple(sorted(device or 0 for device in devices)) if form.targets_by_device else (None,) * len(devices)
    return () if devices == recorded else devices
