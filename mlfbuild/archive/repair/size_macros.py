"""Sizes of tensors in the header of the C interface, for which TVM 0.11 wrote arbitrary numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from mlfbuild.archive.interface.header import header_file
from mlfbuild.archive.repair.repairs import Repair, repair, with_each_module
from mlfbuild.archive.validate.memory import has_garbage_sizes, is_size, sizes_by_macro
from mlfbuild.c_analysis import MAX_TEXT, read_c_file, tokens
from mlfbuild.library import CodegenFile, Library, Module, macro_prefix

_SIZE = re.compile(r"^([ \t]*#[ \t]*define[ \t]+(\w+)).*", re.MULTILINE)


def with_true_size_macros(library: Library) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with the sizes of the metadata in headers that TVM 0.11 wrote (MLF408)."""
    return with_each_module(library, _correct)


def _correct(module: Module) -> tuple[Module, list[Repair]]:
    file = header_file(module) if module.main else None
    if file is None or len(file.content) > MAX_TEXT:
        return module, []
    new, repairs = _corrected(module, file)
    return replace(module, codegen=tuple(new if each is file else each for each in module.codegen)), repairs


def _corrected(module: Module, file: CodegenFile) -> tuple[CodegenFile, list[Repair]]:
    text = file.data.decode("latin-1")
    header = read_c_file(f"codegen/{file.path}", tokens(text))
    values: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in header.macros:
        values[name].append(value)
    repairs: list[Repair] = []
    right: dict[str, int] = {}
    for name, sizes in sizes_by_macro(module).items() if has_garbage_sizes(module, header) else ():
        # The workspace has a macro of this form, and two tensors may share one: neither has one right value.
        if name == f"{macro_prefix(module.name)}_WORKSPACE_SIZE" or len(values[name]) != 1 or len(sizes) != 1:
            continue
        if not is_size(values[name][0], sizes):
            (right[name],) = sizes
            repairs.append(repair("MLF408", f"{header.path}: {name}", values[name][0] or "empty", right[name]))
    text = _SIZE.sub(lambda found: f"{found[1]} {right[found[2]]}" if found[2] in right else found[0], text)
    return CodegenFile(file.path, text.encode("latin-1")) if repairs else file, repairs
