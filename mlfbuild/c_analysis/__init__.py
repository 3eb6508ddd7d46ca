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
    from mlfbuild.c_analysis.attributes import (
        CPU_ARCH as CPU_ARCH,
        CPU_ARCH_PROFILE as CPU_ARCH_PROFILE,
        FP_ARCH as FP_ARCH,
        MVE_ARCH as MVE_ARCH,
        ObjectFacts as ObjectFacts,
        object_facts as object_facts,
    )
    from mlfbuild.c_analysis.c_file import (
        KEYWORDS as KEYWORDS,
        CFile as CFile,
        DefinedFunction as DefinedFunction,
        defined_functions as defined_functions,
        included_files as included_files,
        read_c_file as read_c_file,
    )
    from mlfbuild.c_analysis.c_text import (
        Token as Token,
        in_braces as in_braces,
        string_value as string_value,
        tokens as tokens,
    )
    from mlfbuild.c_analysis.conflicts import (
        ComparedObject as ComparedObject,
        SymbolConflict as SymbolConflict,
        compared_objects as compared_objects,
        symbol_conflicts as symbol_conflicts,
    )
    from mlfbuild.c_analysis.objects import (
        Symbols as Symbols,
        check_elf_image as check_elf_image,
        object_section_size as object_section_size,
        object_symbols as object_symbols,
    )
    from mlfbuild.c_analysis.renamed import renamed_object as renamed_object
    from mlfbuild.c_analysis.repeated import (
        RepeatedDeclaration as RepeatedDeclaration,
        repeated_declarations as repeated_declarations,
        without_repeated_declarations as without_repeated_declarations,
    )
    from mlfbuild.c_analysis.source_symbols import c_symbols as c_symbols
    from mlfbuild.c_analysis.suffixes import (
        CXX_SUFFIXES as CXX_SUFFIXES,
        HEADER_SUFFIXES as HEADER_SUFFIXES,
        LINKED_SUFFIXES as LINKED_SUFFIXES,
        MAX_TEXT as MAX_TEXT,
        OBJECT_SUFFIXES as OBJECT_SUFFIXES,
        SOURCE_SUFFIXES as SOURCE_SUFFIXES,
        TEXT_SUFFIXES as TEXT_SUFFIXES,
    )
else:
    __getattr__ = lazy_attributes(__name__)
