"""Functions that a source declares twice with different parameters, which no compiler accepts.

``c_analysis.repeated_declarations`` describes the exporters that write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlfbuild.archive.repair.repairs import Repair, repair
from mlfbuild.c_analysis import without_repeated_declarations
from mlfbuild.library import CodegenFile, Library, repeated_in


def with_one_declaration(library: Library) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with the real declaration in place of each contradicting one (MLF702)."""
    repairs: dict[Repair, None] = {}  # a file that modules share is listed once

    def corrected(file: CodegenFile) -> CodegenFile:
        found = dict.fromkeys(_repairs(file))
        if not found:
            return file
        repairs.update(found)
        return CodegenFile(file.path, without_repeated_declarations(file.data.decode("latin-1")).encode("latin-1"))

    modules = tuple(replace(module, codegen=tuple(map(corrected, module.codegen))) for module in library.modules)
    return replace(library, modules=modules), tuple(repairs)


def _repairs(file: CodegenFile) -> Iterator[Repair]:
    for each in repeated_in(file):
        place = f"codegen/{file.path}:{each.line}: {each.name}"
        yield repair("MLF702", place, f"({', '.join(each.superfluous)})", f"({', '.join(each.real)})")
