"""Rules for names, parameters and external dependencies.

Names of modules and of tensors in the header must be those of TVM's ``interface_c.cc``. Parameters must match the
graph, the limits of TVM's C runtime, and their other forms. External dependencies are those of the pre-RFC, and TVM's
``mlf_path`` to a folder of the archive.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.paths import params_path
from mlfbuild.archive.validate.codes import Finding, finding
from mlfbuild.archive.validate.views import ArchiveView, ModuleView, of_each_module
from mlfbuild.c_analysis import KEYWORDS, CFile
from mlfbuild.core import InputFileError
from mlfbuild.library import (
    OPERATOR,
    ExternalDependency,
    ParamInfo,
    TensorInfo,
    archive_folder,
    bundle,
    bundle_names,
    description_path,
    load_params_json,
    macro_prefix,
    param_infos,
    parse_dtype,
    problems,
    same_array,
    sanitize_name,
    short_name,
    struct_prefix,
)
from mlfbuild.library.graph_json import MAX_NDIM, MAX_PARAM_NAME

_IN_C = re.compile(r"[A-Za-z0-9_]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STRUCTS = ("inputs", "outputs", "devices", "workspace_pools")
"""``struct tvmgen_<module>_<...>`` of the C interface."""


def module_names(view: ModuleView) -> Iterator[Finding]:
    """Check the names of modules, which TVM uses unchanged in symbols and in upper case in macros.

    ``MLF301`` for a name that is not a C identifier, ``MLF302`` for one whose header has another name than its symbols.
    """
    name = view.module.name
    if view.module.style == OPERATOR:
        return  # its name is only in the metadata
    if not _IN_C.fullmatch(name):
        if not view.sources:
            return  # symbols of objects may have any name
        yield finding("MLF301", view.place("model_name"), f"tvmgen_{name} is not a C identifier")
    elif name != name.lower():
        yield finding("MLF302", view.place("model_name"), f"the header of {name} is tvmgen_{name.lower()}.h")


def names_that_meet(archive: ArchiveView) -> Iterator[Finding]:
    """Find modules whose names are equal in lower case."""
    seen: dict[str, str] = {}
    for view in archive.modules:
        name = view.module.name
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield finding("MLF303", view.place("model_name"), f"{name} and {other} are the same name in lower case")


def struct_members(view: ModuleView) -> Iterator[Finding]:
    """Check the members of the header's structs, which must be different C identifiers.

    ``MLF304`` for names that C does not accept, ``MLF305`` for members that occur twice.
    """
    if view.header is None:
        return
    for struct in STRUCTS:
        yield from _members(view.header, f"{struct_prefix(view.name)}_{struct}")


def _members(header: CFile, struct: str) -> Iterator[Finding]:
    members = header.structs.get(struct, ())
    for name, times in Counter(members).items():
        place = f"{header.path}: struct {struct}"
        if not _IDENTIFIER.fullmatch(name) or name in KEYWORDS:
            yield finding("MLF304", place, f"{name} is not a valid name of a member")
        if times > 1:
            yield finding("MLF305", place, f"has {times} members {name}")


def size_macros(view: ModuleView) -> Iterator[Finding]:
    """Find ``<MODULE>_<TENSOR>_SIZE`` macros with two meanings.

    ``MLF306`` for an input and an output, ``MLF307`` for a tensor called ``workspace``.
    """
    if view.header is None:
        return
    names = [{sanitize_name(tensor.name).upper() for tensor in side} for side in _sides(view)]
    # TVM writes the macro for each side, so a name on both has two definitions.
    defined = Counter(name for name, _ in view.header.macros)
    for name in sorted(names[0] | names[1]):
        macro = f"{macro_prefix(view.name)}_{name}_SIZE"
        place = f"{view.header.path}: {macro}"
        if name == "WORKSPACE" and defined[macro]:
            yield finding("MLF307", place, "is defined for a tensor and for the workspace")
        elif name in names[0] & names[1] and defined[macro] > 1:
            yield finding("MLF306", place, "is defined for an input and for an output")


def _sides(view: ModuleView) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
    return view.module.inputs, view.module.outputs


def parameters(view: ModuleView) -> Iterator[Finding]:
    """Compare each parameter with the graph and the limits.

    ``MLF601`` and ``MLF602`` for parameters that the graph does not use like this, ``MLF603`` for limits of TVM's C
    runtime.
    """
    if view.graph is None:
        return
    arguments = {tensor.name: tensor for tensor in view.graph.arguments}
    for name, info in param_infos(view.module.params).items():
        place = f"{params_path(view.name)}: {name}"
        # In bytes, because the limit is the size of a buffer in the C runtime of TVM.
        if len(name.encode()) > MAX_PARAM_NAME:
            message = f"the name has {len(name.encode())} bytes, more than {MAX_PARAM_NAME}"
            yield finding("MLF603", place, message)
        if len(info.shape) > MAX_NDIM:
            yield finding("MLF603", place, f"has {len(info.shape)} dimensions, more than {MAX_NDIM}")
        yield from _in_graph(view, place, info, arguments.get(name))


def forms_of_parameters(view: ModuleView) -> Iterator[Finding]:
    """Compare parameters in JSON with TVM's form, which counts if an archive has both."""
    path = params_path(view.name, "json")
    if not {path, params_path(view.name)} <= view.archive.files.keys():
        return
    try:
        other = load_params_json(view.archive.files[path], path)
    except InputFileError as error:
        yield finding("MLF604", error.place, error.reason)
        return
    known = view.module.params
    for name in sorted({*known, *other}):
        if name not in known or name not in other or not same_array(known[name], other[name]):
            yield finding("MLF604", f"{path}: {name}", f"differs from {params_path(view.name)}")


def _in_graph(view: ModuleView, place: str, info: ParamInfo, argument: TensorInfo | None) -> Iterator[Finding]:
    if argument is None:
        yield finding("MLF601", place, f"the graph of {view.name} has no such argument")
    elif info.shape != argument.shape or not _same_type(info.dtype, argument.dtype):
        wanted = f"{argument.dtype}{list(argument.shape or ())}"
        yield finding("MLF602", place, f"is {info.dtype}{list(info.shape)}, but {wanted} in the graph")


def _same_type(left: str, right: str) -> bool:
    """Return whether two names, numpy's and TVM's, are the same type, for example ``bool`` and ``uint1``."""
    types = (parse_dtype(left), parse_dtype(right))
    # A type without a name in TVM cannot be compared.
    return None in types or types[0] == types[1]


_RUNTIME = "runtime"


def sound_dependencies(view: ModuleView) -> Iterator[Finding]:
    """Check each dependency, and look for its folder.

    ``MLF801`` for wrong values, ``MLF802`` for a folder of the archive that does not exist.
    """
    for index, dependency in enumerate(view.module.external_dependencies):
        place = view.place(f"external_dependencies[{index}]")
        wrong = problems(dependency)
        yield from (finding("MLF801", place, reason) for reason in wrong)
        folder = archive_folder(dependency)
        # A path that is not safe is not looked up.
        if not wrong and folder is not None and str(folder) not in view.archive.folders:
            message = f"{dependency.short_name} should be in {dependency.url}, which does not exist"
            yield finding("MLF802", place, message)


def repeated_dependencies(view: ModuleView) -> Iterator[Finding]:
    """Find entries that a module has twice; different modules may have equal ones."""
    seen: set[ExternalDependency] = set()
    for index, dependency in enumerate(view.module.external_dependencies):
        if dependency in seen:
            place = view.place(f"external_dependencies[{index}]")
            yield finding("MLF806", place, f"{dependency.short_name} is named before")
        seen.add(dependency)


def agreeing_dependencies(archive: ArchiveView) -> Iterator[Finding]:
    """Compare the dependencies of modules with the same name, because an archive has only one ``runtime/``."""
    first: dict[str, tuple[str, ExternalDependency]] = {}
    for view in archive.modules:
        for index, dependency in enumerate(view.module.external_dependencies):
            name, other = first.setdefault(short_name(dependency.short_name), (view.name, dependency))
            # Another spelling of the name, or additional fields, do not make it another library.
            if replace(other, short_name=dependency.short_name, unknown=dependency.unknown) != dependency:
                place = view.place(f"external_dependencies[{index}]")
                found = f"{dependency.url} {dependency.version_spec}".strip()
                other_module = "also" if name == view.name else f"{name} requires"
                wanted = f"{other.url} {other.version_spec}".strip()
                message = f"{view.name} requires {found}, but {other_module} {wanted}"
                yield finding("MLF803", place, message)


def sound_bundles(archive: ArchiveView) -> Iterator[Finding]:
    """Check the descriptions of bundled libraries."""
    for name in bundle_names(archive.library):
        place = str(description_path(name))
        try:
            bundle(archive.library, name, place)
        except InputFileError as error:
            key = error.place.removeprefix(place).removeprefix(": ")
            yield finding("MLF805", place, f"{key}: {error.reason}" if key else error.reason)


def unnamed_runtime(archive: ArchiveView) -> Iterator[Finding]:
    """Find a ``runtime`` folder that is not an external dependency."""
    # PurePosixPath drops the `./` with which TVM begins these paths.
    named = {
        PurePosixPath(item.url).parts[:1] for view in archive.modules for item in view.module.external_dependencies
    }
    # Any dependency on a folder below `runtime` counts, such as ./runtime/src.
    if (_RUNTIME,) not in named and _RUNTIME in archive.folders:
        yield finding("MLF804", _RUNTIME, "is not in external_dependencies of any module")


RULES = (
    names_that_meet, agreeing_dependencies, sound_bundles, unnamed_runtime,
    *of_each_module(
        module_names, struct_members, size_macros, parameters, forms_of_parameters, sound_dependencies,
        repeated_dependencies,
    ),
)  # fmt: skip
