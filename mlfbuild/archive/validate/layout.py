"""Rules of the archive's files: what must be there, where it lies, and what other tools do with it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.context import Context, ModuleView
from mlfbuild.archive.validate.types import Finding
from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.library import OPERATOR, archive_folder, bundle_names, description_path
from mlfbuild.library.metadata import FORMATS

_NUMBERED = re.compile(r"(?:.+_)?lib(\d{1,6})\.(?:c|cc|cpp|o)")
_MODULE_FOLDERS = ("codegen", "parameters", "src", "executor-config", "runtime-config")
_KNOWN_FOLDERS = ("runtime", "crt", "templates", *_MODULE_FOLDERS)
_HOST = "host"
_LAYOUT_FILES = re.compile(
    r"(?P<graph>(?:runtime|executor)-config/graph/[^/]+\.(?:json|graph))|(?P<program>relay\.txt|src/(?!tir-)[^/]+)"
)


def code_of_modules(context: Context) -> Iterator[Finding]:
    """Look for generated code in each module, and for gaps in the numbers of its files."""
    for view in context.modules:
        numbers: dict[str, set[int]] = defaultdict(set)
        for file in view.module.codegen:
            if found := _NUMBERED.fullmatch(file.path.name):
                numbers[str(file.path.parent)].add(int(found[1]))
        if not view.has_code:
            yield finding("MLF101", view.place("model_name"), f"no .c, .cc, .cpp or .o file belongs to {view.name}")
        for folder, there in sorted(numbers.items()):
            missing = next(number for number in range(len(there) + 1) if number not in there)
            if missing < max(there):
                place = f"codegen/{folder}"
                yield finding("MLF102", place, f"{view.name} has lib{max(there)} but no lib{missing}")


def other_builds(context: Context) -> Iterator[Finding]:
    """Find code that TVM's own projects (Zephyr, Arduino, CRT host) leave out, and what cannot be looked into."""
    for view in context.modules:
        for file in view.module.codegen:
            path = f"codegen/{file.path}"
            if file.path.suffix in CXX_SUFFIXES:
                yield finding("MLF105", path, "TVM's projects compile *.c and link *.o")
            if file.path.parts[0] != _HOST:
                yield finding("MLF106", path, "TVM's exporter and tools know codegen/host alone")
        for path, reason in view.closed.items():
            yield finding("MLF712", path, reason)


def program_texts(context: Context) -> Iterator[Finding]:
    """Look for the text of each full model, and the TIR of each device of an operator."""
    for view in context.modules:
        path = FORMATS[context.library.version].program_path(view.name)
        if view.module.style == OPERATOR:
            yield from _tir(view)
        elif not view.module.source_text and path not in context.files:
            yield finding("MLF103", path, f"the program of {view.name} is missing")


def _tir(view: ModuleView) -> Iterator[Finding]:
    texts = [device for device, _ in view.module.tir]
    targets = len(view.module.targets)
    if not texts:
        yield finding("MLF109", "src/tir-1.txt", f"the TIR of {view.name} is missing")
    elif len(texts) < targets:
        place = f"src/tir-{texts[0]}.txt"
        yield finding("MLF109", place, f"{targets} targets share the TIR files of {len(texts)} device types")


def files_of_no_module(context: Context) -> Iterator[Finding]:
    """Judge what lies beside the modules: lost files of theirs, and files that the format does not know."""
    named = [archive_folder(item) for view in context.modules for item in view.module.external_dependencies]
    known = {*named, *(description_path(name) for name in bundle_names(context.library))}
    for file in context.library.other_files:
        path = str(file.path)
        top = file.path.parts[0]
        if not known.isdisjoint((file.path, *file.path.parents)):
            continue
        if top in _MODULE_FOLDERS:
            yield finding("MLF104", path, "belongs to no module of the metadata")
        elif top not in _KNOWN_FOLDERS and path != "README.md":
            yield finding("MLF108", path, "the format has no such file")


def places_of_the_version(context: Context) -> Iterator[Finding]:
    """Compare the places of graph and program text with those of the version."""
    form = FORMATS[context.library.version]
    unknown = {str(file.path) for file in context.library.other_files}
    wanted = {form.graph_path(view.name) for view in context.modules}
    wanted |= {form.program_path(view.name) for view in context.modules}
    for path in sorted(set(context.files) - unknown - wanted):
        found = _LAYOUT_FILES.fullmatch(path)
        if found and found.lastgroup and context.modules[0].module.style != OPERATOR:
            place = form.graph if found.lastgroup == "graph" else form.program
            shown = str(PurePosixPath(place)).format(module="<module>")
            yield finding("MLF107", path, f"version {form.version} has it at {shown}")


def names_of_code(context: Context) -> Iterator[Finding]:
    """Compare names of generated files with those of the version: the module's name stands in them since version 3."""
    form = FORMATS[context.library.version]
    for view in context.modules:
        if view.module.style == OPERATOR:
            continue
        other = "lib{n}" if "{module}" in form.codegen_name else f"{view.name}_lib{{n}}"
        for file in view.module.codegen:
            found = _NUMBERED.fullmatch(file.path.name)
            if found and file.path.stem == other.format(n=found[1]):
                name = form.codegen_name.format(module=view.name, n=found[1])
                message = f"version {form.version} calls it {name}{file.path.suffix}"
                yield finding("MLF107", f"codegen/{file.path}", message)


RULES = (code_of_modules, other_builds, program_texts, files_of_no_module, places_of_the_version, names_of_code)
