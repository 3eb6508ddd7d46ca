"""Rules for names of modules, and for names of tensors in the header of the C interface (TVM's interface_c.cc)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.findings import Finding
from mlfbuild.archive.validate.views import ArchiveView, ModuleView
from mlfbuild.c_analysis import KEYWORDS, CFile
from mlfbuild.library import OPERATOR, TensorInfo, macro_prefix, sanitize_name, struct_prefix

_IN_C = re.compile(r"[A-Za-z0-9_]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STRUCTS = ("inputs", "outputs", "devices", "workspace_pools")
"""``struct tvmgen_<module>_<...>`` of the C interface."""


def module_names(archive: ArchiveView) -> Iterator[Finding]:
    """Check the names of modules, which TVM uses unchanged in symbols and in upper case in macros."""
    for view in archive.modules:
        name = view.module.name
        if view.module.style == OPERATOR:
            continue  # its name is only in the metadata
        if not _IN_C.fullmatch(name):
            if not view.sources:
                continue  # symbols of objects may have any name
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


def struct_members(archive: ArchiveView) -> Iterator[Finding]:
    """Check the members of the header's structs, which must be different C identifiers."""
    for view in archive.modules:
        if view.header is None:
            continue
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


def size_macros(archive: ArchiveView) -> Iterator[Finding]:
    """Find ``<MODULE>_<TENSOR>_SIZE`` macros with two meanings."""
    for view in archive.modules:
        if view.header is None:
            continue
        names = [{sanitize_name(tensor.name).upper() for tensor in side} for side in _sides(view)]
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


RULES = (module_names, names_that_meet, struct_members, size_macros)
