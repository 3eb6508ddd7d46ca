"""Spelling C: literals, identifiers, sections, alignment, lines of limited length, and packing of an arena.

What prints C shares it: the native compiler and the executors of foreign modules. It knows tensors and their types, but
no operators and no processors.

    literals    values -> constants and initialisers of arrays
    names       names of tensors -> identifiers, any text -> comments
    types       element types -> types of C
    licence     the comment at the beginning of a file, with its licence
    sections    the names of linker sections
    alignment   sizes -> multiples of the alignment
    wrapping    calls and declarations -> lines
    arena       buffers with lifetimes -> offsets in the least memory; ``skyline`` is its branch and bound
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.cgen.alignment import ALIGNMENT, STATE_ALIGNMENT, aligned
    from mlfbuild.cgen.arena import Buffer, Span, lower_bound, place
    from mlfbuild.cgen.licence import LICENCE, notice
    from mlfbuild.cgen.literals import array_lines, braces, floating, hexadecimal_lines, integer, record_lines
    from mlfbuild.cgen.names import comment_text, member_name
    from mlfbuild.cgen.sections import PARAMS_SECTION, WORKSPACE_SECTION
    from mlfbuild.cgen.types import C_TYPES
    from mlfbuild.cgen.wrapping import joined, wrapped

__all__ = [
    "ALIGNMENT",
    "C_TYPES",
    "LICENCE",
    "PARAMS_SECTION",
    "STATE_ALIGNMENT",
    "WORKSPACE_SECTION",
    "Buffer",
    "Span",
    "aligned",
    "array_lines",
    "braces",
    "comment_text",
    "floating",
    "hexadecimal_lines",
    "integer",
    "joined",
    "lower_bound",
    "member_name",
    "notice",
    "place",
    "record_lines",
    "wrapped",
]

_HOMES = {
    "alignment": (
        "ALIGNMENT",
        "STATE_ALIGNMENT",
        "aligned",
    ),
    "arena": (
        "Buffer",
        "Span",
        "lower_bound",
        "place",
    ),
    "literals": (
        "array_lines",
        "braces",
        "floating",
        "hexadecimal_lines",
        "integer",
        "record_lines",
    ),
    "names": (
        "comment_text",
        "member_name",
    ),
    "licence": (
        "LICENCE",
        "notice",
    ),
    "sections": (
        "PARAMS_SECTION",
        "WORKSPACE_SECTION",
    ),
    "types": ("C_TYPES",),
    "wrapping": (
        "joined",
        "wrapped",
    ),
}

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the module that has ``name`` when it is first asked for."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
