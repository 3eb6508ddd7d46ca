"""Rules for the files of the archive: files that must exist, their paths, and support by other tools."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from mlfbuild.archive.paths import params_path
from mlfbuild.archive.validate.codes import Finding, finding
from mlfbuild.archive.validate.schema import is_documented
from mlfbuild.archive.validate.views import ArchiveView, ModuleView, of_each_module
from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.library import HOST_FOLDER, OPERATOR, all_files, archive_folder, bundle_names, description_path
from mlfbuild.library.metadata import FORMATS

_NUMBERED = re.compile(r"(?:.+_)?lib(\d{1,6})\.(?:c|cc|cpp|o)")
_MODULE_FOLDERS = ("codegen", "parameters", "src", "executor-config", "runtime-config")
_KNOWN_FOLDERS = ("runtime", "crt", "templates", *_MODULE_FOLDERS)
_RESERVED = "runtime-config/aot/"
"""The first RFC kept this folder for a future executor."""
_LAYOUT_FILES = re.compile(
    r"(?P<graph>(?:runtime|executor)-config/graph/[^/]+\.(?:json|graph))|(?P<program>relay\.txt|src/(?!tir-)[^/]+)"
)


def code_of_modules(view: ModuleView) -> Iterator[Finding]:
    """Look for generated code in each module, and for gaps in the numbers of its files.

    ``MLF101``: the module has no code. ``MLF102``: a file may have been lost when the archive was packed.
    """
    numbers: dict[str, set[int]] = defaultdict(set)
    for file in all_files(view.module):
        if found := _NUMBERED.fullmatch(file.path.name):
            numbers[str(file.path.parent)].add(int(found[1]))
    if not view.has_code:
        yield finding("MLF101", view.place("model_name"), f"no .c, .cc, .cpp or .o file belongs to {view.name}")
    for folder, there in sorted(numbers.items()):
        # The first number that is missing; it is below the highest only if there is a gap.
        missing = next(number for number in range(len(there) + 1) if number not in there)
        if missing < max(there):
            place = f"codegen/{folder}"
            yield finding("MLF102", place, f"{view.name} has lib{max(there)} but no lib{missing}")


def other_builds(view: ModuleView) -> Iterator[Finding]:
    """Find code that TVM's projects (Zephyr, Arduino, CRT host) do not compile, and files that were not checked.

    ``MLF105`` for C++ sources, ``MLF106`` for files of other devices, and ``MLF712`` for files that other rules could
    not look at.
    """
    for file in all_files(view.module):
        path = f"codegen/{file.path}"
        if file.path.suffix in CXX_SUFFIXES:
            yield finding("MLF105", path, "TVM's projects compile only *.c and link *.o")
        if file.path.parts[0] != HOST_FOLDER:
            yield finding("MLF106", path, "TVM's exporter and tools use only codegen/host")
    for path, reason in view.closed.items():
        yield finding("MLF712", path, reason)


def program_texts(view: ModuleView) -> Iterator[Finding]:
    """Look for the text of each full model, and the TIR of each device of an operator.

    ``MLF103`` and ``MLF109``. Builds do not need these texts; ``mlfbuild show`` and the order of inputs do.
    """
    path = FORMATS[view.archive.library.version].program_path(view.name)
    if view.module.style == OPERATOR:
        yield from _tir(view)
    elif not view.module.source_text and path not in view.archive.files:
        yield finding("MLF103", path, f"the program of {view.name} is missing")


def _tir(view: ModuleView) -> Iterator[Finding]:
    texts = [device for device, _ in view.module.tir]
    targets = len(view.module.targets)
    if not texts:
        yield finding("MLF109", "src/tir-1.txt", f"the TIR of {view.name} is missing")
    elif len(texts) < targets:
        place = f"src/tir-{texts[0]}.txt"
        yield finding("MLF109", place, f"{targets} targets share the TIR files of {len(texts)} device types")


def files_of_no_module(archive: ArchiveView) -> Iterator[Finding]:
    """Check the files of no module: they may be lost files of a module, or unknown to the format.

    ``MLF104`` for a file where only files of modules belong, and ``MLF108`` for a path that the format does not
    define.
    """
    named = [archive_folder(item) for view in archive.modules for item in view.module.external_dependencies]
    other_forms = {params_path(view.name, form) for view in archive.modules for form in ("json", "bson")}
    known = {*named, *(description_path(name) for name in bundle_names(archive.library))}
    for file in archive.library.other_files:
        path = str(file.path)
        top = file.path.parts[0]
        # A bundle may have any files, so everything below its folder is known.
        if not known.isdisjoint((file.path, *file.path.parents)):
            continue
        if path in other_forms or path.startswith(_RESERVED):
            continue
        if top in _MODULE_FOLDERS:
            yield finding("MLF104", path, "belongs to no module in the metadata")
        elif top not in _KNOWN_FOLDERS and path != "README.md":
            yield finding("MLF108", path, "the format has no such file")


def places_of_the_version(archive: ArchiveView) -> Iterator[Finding]:
    """Compare the paths of graphs and program texts with those of the version.

    ``MLF107``: mlfbuild finds the files of any version, but other tools may not.
    """
    form = FORMATS[archive.library.version]
    unknown = {str(file.path) for file in archive.library.other_files}
    wanted = {form.graph_path(view.name) for view in archive.modules}
    wanted |= {form.program_path(view.name) for view in archive.modules}
    # Only files that the reader assigned to a module: others are the subject of `files_of_no_module`.
    for path in sorted(set(archive.files) - unknown - wanted):
        found = _LAYOUT_FILES.fullmatch(path)
        if found and found.lastgroup and archive.modules[0].module.style != OPERATOR:
            place = form.graph if found.lastgroup == "graph" else form.program
            shown = str(PurePosixPath(place)).format(module="<module>")
            yield finding("MLF107", path, f"the path in version {form.version} is {shown}")


def names_of_code(archive: ArchiveView) -> Iterator[Finding]:
    """Compare names of generated files with those of the version; they contain the module's name since version 3."""
    form = FORMATS[archive.library.version]
    for view in archive.modules:
        if view.module.style == OPERATOR or is_documented(view.fields):
            continue
        # The other of the two styles: lib0, or kws_lib0.
        other = "lib{n}" if "{module}" in form.codegen_name else f"{view.name}_lib{{n}}"
        for file in all_files(view.module):
            found = _NUMBERED.fullmatch(file.path.name)
            if found and file.path.stem == other.format(n=found[1]):
                name = form.codegen_name.format(module=view.name, n=found[1])
                message = f"the name in version {form.version} is {name}{file.path.suffix}"
                yield finding("MLF107", f"codegen/{file.path}", message)


RULES = (
    *of_each_module(code_of_modules, other_builds, program_texts), files_of_no_module, places_of_the_version,
    names_of_code,
)  # fmt: skip
