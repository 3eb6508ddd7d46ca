"""Reading C sources, ELF objects and static libraries without a compiler.

Archives of other tools state little about their code. What it defines, calls and was compiled for decides whether it
links, with what, and next to which other model. Builds need the answer before anything is compiled, on machines without
the cross compiler, so it is read from the text and the objects.

The data goes through these modules:

- ``c_text`` splits C into tokens: comments and line continuations are gone, and strings and directives are one token
- ``c_file`` finds includes, macros, structs, registries and functions in the tokens, even if the file is invalid
- ``c_declaration`` parses declarations
- ``source_symbols`` expands the macros of a source and returns the ``Symbols`` that a linker will see, and ``objects``
  those of a compiled object; both have the same type, so the users of symbols do not know which one they have
- ``attributes`` reads the CPU and the floating-point interface of an object from ``.ARM.attributes``
- ``conflicts`` compares the symbols of the models in one image, and unpacks static libraries
- ``renamed`` renames symbols of an object in place, and ``repeated`` finds functions that TVM declares twice with
  different types

The rules:

1. Input is untrusted and may be large. Each function takes time linear in the length of its input, macros expand to at
   most ``_GROWTH`` times the tokens of the file, and files above ``MAX_TEXT`` are not read as text at all.
2. Text that is not C gives fewer facts and never an error. Only an object that contradicts its own header raises
   ``InputFileError``, because linking it would fail in a way that is harder to understand.
3. Includes are not followed, and macros of other files are unknown. A branch with an unknown condition is read as well
   as its alternative, so results contain too many symbols rather than too few.
4. A name in a comment or a string is never a symbol, because symbols are found in tokens.

A worked example. The first declaration has the storage class ``static``, so ``a`` is local. ``g`` is declared, but has
no body here. ``f`` is followed by a body, so it is defined:

    >>> found = c_symbols("static int a; int g(int); int f(void) { return g(a); }")
    >>> found.defined, found.local, found.declared
    (frozenset({'f'}), frozenset({'a'}), frozenset({'g'}))

What this room does not do: it does not check types, and it does not build call graphs. Stack and call chains of linked
images come from machine code (``report.stack``), because inlining decides them, and calls of the operators of a network
from its plan (``archive.program``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.c_analysis.attributes import CPU_ARCH, CPU_ARCH_PROFILE, FP_ARCH, MVE_ARCH, ObjectFacts, object_facts
    from mlfbuild.c_analysis.c_file import (
        KEYWORDS, CFile, DefinedFunction, defined_functions, included_files, read_c_file,
    )
    from mlfbuild.c_analysis.c_text import Token, in_braces, string_value, tokens
    from mlfbuild.c_analysis.conflicts import ComparedObject, SymbolConflict, compared_objects, symbol_conflicts
    from mlfbuild.c_analysis.objects import Symbols, check_elf_image, object_section_size, object_symbols
    from mlfbuild.c_analysis.renamed import renamed_object
    from mlfbuild.c_analysis.repeated import RepeatedDeclaration, repeated_declarations, without_repeated_declarations
    from mlfbuild.c_analysis.source_symbols import c_symbols
    from mlfbuild.c_analysis.suffixes import (
        CXX_SUFFIXES, HEADER_SUFFIXES, LINKED_SUFFIXES, MAX_TEXT, OBJECT_SUFFIXES, SOURCE_SUFFIXES, TEXT_SUFFIXES,
    )
else:
    __getattr__ = lazy_attributes(__name__)
