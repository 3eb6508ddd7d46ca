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
    from mlfbuild.library.cgen.alignment import (
        ALIGNMENT as ALIGNMENT,
        STATE_ALIGNMENT as STATE_ALIGNMENT,
        aligned as aligned,
    )
    from mlfbuild.library.cgen.arena import (
        Buffer as Buffer,
        Span as Span,
        Work as Work,
        lower_bound as lower_bound,
        place as place,
    )
    from mlfbuild.library.cgen.licence import LICENCE as LICENCE, notice as notice
    from mlfbuild.library.cgen.literals import (
        array_lines as array_lines,
        braces as braces,
        floating as floating,
        hexadecimal_lines as hexadecimal_lines,
        integer as integer,
        record_lines as record_lines,
        text as text,
    )
    from mlfbuild.library.cgen.names import comment_text as comment_text, member_name as member_name
    from mlfbuild.library.cgen.registry import REGISTRY_HEADER as REGISTRY_HEADER, registry_source as registry_source
    from mlfbuild.library.cgen.sections import PARAMS_SECTION as PARAMS_SECTION, WORKSPACE_SECTION as WORKSPACE_SECTION
    from mlfbuild.library.cgen.sharing import (
        BUSY as BUSY,
        busy_name as busy_name,
        print_busy as print_busy,
        print_exclusive_call as print_exclusive_call,
        print_shared_workspace as print_shared_workspace,
    )
    from mlfbuild.library.cgen.wrapping import joined as joined, wrapped as wrapped
else:
    __getattr__ = lazy_attributes(__name__)
