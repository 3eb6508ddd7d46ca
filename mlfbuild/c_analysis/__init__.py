"""Reading C sources, ELF objects and static libraries without a compiler.

``c_text`` splits C into tokens; ``c_file`` finds includes, macros, structs and functions in them, and
``source_symbols`` the symbols that a linker will see of a source (with ``c_declaration`` and ``c_macros``). ``objects``
reads the symbols of compiled objects, ``attributes`` their target, ``static_library`` the objects of a ``.a`` file;
``conflicts`` compares the symbols of the models in one image, ``renamed`` renames symbols of an object, and
``repeated`` finds functions that TVM declares twice with different types.

    >>> c_symbols("static int a; int f(void) { return a; }").defined
    frozenset({'f'})

Includes are not followed, and macros of other files are not known: see ``source_symbols``.
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
