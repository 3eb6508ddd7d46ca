"""Spell C: literals, identifiers, sections, alignment, lines of limited length; and pack an arena.

The native compiler and the generated executors use it. It knows no tensors, operators or CPUs. For example,
``floating(0.5)`` is ``0.5f``, and ``member_name("input 1")`` is ``input_1``.

    literals    values -> constants and initialisers of arrays
    names       names of tensors -> identifiers, any text -> comments
    licence     the comment at the beginning of a file, with its licence
    sections    the names of linker sections
    alignment   sizes -> multiples of the alignment
    wrapping    calls and declarations -> lines
    registry    functions -> TVM's table of functions by name
    sharing     the workspace of models that never run at the same time
    arena       buffers with lifetimes -> offsets in little memory; ``skyline`` is its branch and bound
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.cgen.alignment import ALIGNMENT, STATE_ALIGNMENT, aligned
    from mlfbuild.library.cgen.arena import Buffer, Span, Work, lower_bound, place
    from mlfbuild.library.cgen.licence import LICENCE, notice
    from mlfbuild.library.cgen.literals import (
        array_lines, braces, floating, hexadecimal_lines, integer, record_lines, text,
    )
    from mlfbuild.library.cgen.names import comment_text, member_name
    from mlfbuild.library.cgen.registry import REGISTRY_HEADER, registry_source
    from mlfbuild.library.cgen.sections import PARAMS_SECTION, WORKSPACE_SECTION
    from mlfbuild.library.cgen.sharing import BUSY, busy_name, print_busy, print_exclusive_call, print_shared_workspace
    from mlfbuild.library.cgen.wrapping import joined, wrapped
else:
    __getattr__ = lazy_attributes(__name__)
