"""Rules for generated code: symbols must be defined once, and some may exist only once in an image."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from mlfbuild.archive.validate.codes import Finding, finding
from mlfbuild.archive.validate.views import ArchiveView, ModuleView, of_each_module
from mlfbuild.c_analysis import CFile
from mlfbuild.core import listed
from mlfbuild.library import (
    MODULE_CONTEXT,
    OPERATOR,
    SYSTEM_LIBRARY,
    library_of_header,
    sanitize_name,
    short_name,
    struct_prefix,
)

_SYMBOLS = "tvmgen_"
_OWN_HEADER = re.compile(r"tvmgen_.+\.h")
_UNNAMED_OUTPUT = re.compile(r"output\d*")
_ONCE_IN_AN_IMAGE = {SYSTEM_LIBRARY: "MLF703", MODULE_CONTEXT: "MLF704"}


def included_headers(archive: ArchiveView) -> Iterator[Finding]:
    """Look for headers of modules with exactly the names that the code includes.

    ``MLF701``: the name may differ in case only, which the file system of the exporter may ignore; the message then
    names the file that exists.
    """
    names = {PurePosixPath(path).name for path in archive.files if path.startswith("codegen/")}
    in_lower_case = {name.lower(): name for name in sorted(names)}
    for view, source in _sources(archive):
        for include in source.includes:
            name = PurePosixPath(include).name
            if _OWN_HEADER.fullmatch(name) and name not in names:
                close = in_lower_case.get(name.lower())
                reason = f"the archive has {close}" if close else f"{view.name} does not have this file"
                yield finding("MLF701", source.path, f"includes {name}, but {reason}")


def _sources(archive: ArchiveView) -> Iterator[tuple[ModuleView, CFile]]:
    """Yield each C file once, with the first module that has it."""
    owned = [(view, source) for view in archive.modules for source in view.sources]
    # Reversed, so that the first module's entry for a path is the last one put, and stays.
    return iter({source.path: (view, source) for view, source in reversed(owned)}.values())


def conflicting_declarations(archive: ArchiveView) -> Iterator[Finding]:
    """Find functions that a file with a registry declares both as packed functions and with their own parameters.

    ``MLF702``, which compilers refuse. The exporters that write such code are described in ``c_analysis``.
    """
    for _, source in _sources(archive):
        if source.registry is None:
            continue
        first: dict[str, tuple[str, ...]] = {}
        for function in source.functions:
            if function.name not in source.registry.functions:
                continue
            if first.setdefault(function.name, function.parameters) != function.parameters:
                message = f"is declared with ({', '.join(first[function.name])}) and ({', '.join(function.parameters)})"
                yield finding("MLF702", f"{source.path}: {function.name}", message)
                # From here on the new form is the expected one, so that each change is reported once.
                first[function.name] = function.parameters


def registries(archive: ArchiveView) -> Iterator[Finding]:
    """Check registries: they must have as many functions as names, and all functions must be defined.

    ``MLF708``: the numbers differ, so a lookup would read beyond the table. ``MLF707``: a function is not defined, so
    the image does not link.
    """
    known = frozenset[str]().union(*(view.known for view in archive.modules))
    # A file that could not be read may define the function.
    closed = any(view.closed for view in archive.modules)
    for _, source in _sources(archive):
        registry = source.registry
        if registry is None:
            continue
        if not registry.count == len(registry.names) == len(registry.functions):
            names, functions = len(registry.names), len(registry.functions)
            message = f"the count is {registry.count}, with {names} names and {functions} functions"
            yield finding("MLF708", f"{source.path}: _tvm_func_registry", message)
        for name in registry.functions:
            if not closed and name not in known:
                yield finding("MLF707", f"{source.path}: {name}", "is not defined in the archive")


def one_definition(archive: ArchiveView) -> Iterator[Finding]:
    """Find symbols that two files of a module, or two modules, define.

    ``MLF705`` for two files of a module. For two modules, ``MLF703`` and ``MLF704`` are symbols that an image can have
    only once, and ``MLF706`` are all others.
    """
    owners: dict[str, list[ModuleView]] = defaultdict(list)
    for view in archive.modules:
        for name, paths in view.definitions.items():
            owners[name].append(view)
            # Within a module every repetition is an error; between modules, a shared file is the same definition.
            if len(paths) > 1:
                yield finding("MLF705", f"{paths[1]}: {name}", f"is also defined in {paths[0]}")
    for name, views in sorted(owners.items()):
        # A file that modules share is one definition.
        if len({path for view in views for path in view.definitions[name]}) > 1 and len(views) > 1:
            place = f"{views[1].definitions[name][0]}: {name}"
            yield finding(
                _ONCE_IN_AN_IMAGE.get(name, "MLF706"),
                place,
                f"modules {listed([view.name for view in views])} define it",
            )


def entry_functions(view: ModuleView) -> Iterator[Finding]:
    """Look for the functions that firmware calls, and those in the metadata.

    ``MLF709``: an AOT module without any of the entry functions that TVM's releases write. ``MLF710``: a function in
    the metadata that no file defines.
    """
    # If a file was not read, a missing symbol may be in it, so nothing is reported.
    if view.closed or not view.has_code:
        return
    name = f"{_SYMBOLS}{view.name}"
    entries = [f"{name}_run"]
    if view.module.interface != "c":  # TVM's C++ runtime calls the function that it wraps
        entries += [f"{name}___tvm_main__", f"{name}_run_model"]
    # Symbols of versions 1 and 2 do not contain the module's name, even after conversion.
    bears_names = not view.definitions or any(name.startswith(_SYMBOLS) for name in view.known)
    if view.module.executor == "aot" and view.known.isdisjoint(entries) and bears_names:
        yield finding("MLF709", view.place("executors"), f"no file of {view.name} defines {entries[0]}")
    for index, function in enumerate(view.module.operator_functions):
        if function.name not in view.known:
            key = function.name if view.module.style == OPERATOR else f"functions.operator_functions[{index}]"
            yield finding("MLF710", view.place(f"memory.{key}"), f"no file of {view.name} defines {function.name}")


def declared_functions(archive: ArchiveView) -> Iterator[Finding]:
    """Find functions that a module's code declares, as TVM does before calls, but that no file defines.

    ``MLF714``, once for each function. Functions in registries are those of ``MLF707``, and entry functions those of
    ``MLF709``.
    """
    if any(view.closed for view in archive.modules):
        return
    judged = set[str]().union(*(view.known for view in archive.modules))
    # A missing entry function is the subject of `entry_functions`.
    judged |= {f"{_SYMBOLS}{view.name}_run" for view in archive.modules}
    for _, source in _sources(archive):
        registered = frozenset(source.registry.functions if source.registry else ())
        for name in dict.fromkeys(function.name for function in source.functions):
            if name.startswith(_SYMBOLS) and name not in judged and name not in registered:
                judged.add(name)
                yield finding("MLF714", f"{source.path}: {name}", "is not defined in the archive")


def header_tensors(view: ModuleView) -> Iterator[Finding]:
    """Compare members of the header's structs with the metadata's tensors.

    ``MLF711``. Names are compared in the form that they have in C, and without their order.
    """
    if view.header is None:
        return
    for struct, tensors in (("inputs", view.module.inputs), ("outputs", view.module.outputs)):
        members = view.header.structs.get(f"{struct_prefix(view.name)}_{struct}")
        names = sorted(sanitize_name(tensor.name) for tensor in tensors)
        if members is None or not names or sorted(members) == names:
            continue
        if view.is_native and len(members) == len(names):  # mlfbuild renames members that are not valid in C
            continue
        # TVM 0.11 put the outputs' names into the header, but not into the metadata.
        if len(members) == len(names) and struct == "outputs" and all(map(_UNNAMED_OUTPUT.fullmatch, names)):
            continue
        place = f"{view.header.path}: struct {struct_prefix(view.name)}_{struct}"
        yield finding("MLF711", place, f"has {', '.join(members)}, but the metadata has {', '.join(names)}")


def foreign_headers(view: ModuleView) -> Iterator[Finding]:
    """Find libraries that the code includes but that are not external dependencies.

    ``MLF713``, once for each library of a module: builds only provide libraries that are declared.
    """
    seen = {short_name(dependency.short_name) for dependency in view.module.external_dependencies}
    # Files of the module itself may have the name of a header of a library, as bundled copies do.
    own = {file.path.name for file in view.module.codegen}
    includes = ((source.path, include) for source in view.sources for include in source.includes)
    for path, include in includes:
        library = library_of_header(include)
        if library and library.name not in seen and PurePosixPath(include).name not in own:
            seen.add(library.name)
            yield finding("MLF713", path, f"includes {include} of {library.title} ({library.name})")


RULES = (
    included_headers, conflicting_declarations, registries, one_definition, declared_functions,
    *of_each_module(entry_functions, header_tensors, foreign_headers),
)  # fmt: skip
