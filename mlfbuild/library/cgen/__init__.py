r"""Spell C: literals, identifiers, sections, alignment, lines of limited length; and pack an arena.

The native compiler and the generated executors use it. It knows no tensors, operators or CPUs.

    literals    values -> constants and initialisers of arrays
    names       names of tensors -> identifiers, any text -> comments
    licence     the comment at the beginning of a file, with its licence
    sections    the names of linker sections
    elements    bytes and types of elements -> members of a union
    alignment   sizes -> multiples of the alignment
    wrapping    calls and declarations -> lines
    registry    functions -> TVM's table of functions by name
    sharing     the workspace of models that never run at the same time
    arena       buffers with lifetimes -> offsets in little memory; ``skyline`` is its branch and bound
    spreading   buffers and their costs in several memories -> a memory and an offset for each

Rules of the text, which hold for all C that mlfbuild generates:

1. A value is printed so that a C99 compiler reads the same value: the shortest decimal of a float32 that reads back,
   ``INT32_MIN`` and ``INT64_MIN`` by name (C has no literal for them: -2147483648 is minus a long), NaN and infinity by
   the macros of math.h.
2. Names in model files are untrusted. An identifier keeps letters, digits and underscores, and is never reserved or a
   keyword; a comment keeps harmless characters, so that ``*/`` cannot end it; a string literal has no trigraphs.
3. The same values give the same bytes on every machine.
4. Lines end at 116 columns, where possible, because people read this code, and diff it.
5. Large arrays are printed many lines at a time: whole lists are printed much faster than single numbers.

For example::

    floating(0.1)              0.1f          member_name("input 1")   input_1
    floating(-math.inf)        -INFINITY     member_name("0")         _0
    integer(-(1 << 31))        INT32_MIN     member_name("int")       int_
    integer(1 << 40)           INT64_C(1099511627776)
    text('a"b?')               "a\042b\077"  comment_text("a*/b")     a_/b
    aligned(17)                32

The alignment is 16 bytes for every tensor in an arena, the size of a vector of Helium, and 8 in a state, which int64_t
needs.

``arena`` is here, and not in the native compiler, because the executors for archives of other compilers also pack
tensors with it, and ``spreading`` with it. Both get sizes, times and costs only.

This package decides nothing about a model, and writes no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.cgen.alignment import ALIGNMENT, CACHE_LINE, STATE_ALIGNMENT, aligned
    from mlfbuild.library.cgen.arena import Buffer, Span, Work, lower_bound, place
    from mlfbuild.library.cgen.elements import SCRATCH_TYPES, union_members
    from mlfbuild.library.cgen.licence import LICENCE, notice
    from mlfbuild.library.cgen.literals import (
        array_lines, braces, floating, hexadecimal_lines, integer, record_lines, text,
    )
    from mlfbuild.library.cgen.names import comment_text, member_name
    from mlfbuild.library.cgen.registry import REGISTRY_HEADER, registry_source
    from mlfbuild.library.cgen.sections import PARAMS_SECTION, WORKSPACE_SECTION, chooses_section, in_own_section
    from mlfbuild.library.cgen.sharing import BUSY, busy_name, print_busy, print_exclusive_call, print_shared_workspace
    from mlfbuild.library.cgen.spreading import SpreadBuffers, peak, shortage, spread
    from mlfbuild.library.cgen.wrapping import joined, wrapped
else:
    __getattr__ = lazy_attributes(__name__)
