"""What C sources and objects say, read without a compiler.

``c_text`` makes tokens of text, on which all others stand. ``c_symbols`` finds what a linker would see of a source
(``c_declaration`` and ``c_macros`` are its parts), ``symbols`` the same of an object; ``c_file`` tells what is written
in one: includes, macros, structs, functions.
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
        included_files as included_files,
        read_c_file as read_c_file,
    )
    from mlfbuild.c_analysis.c_text import (
        Token as Token,
        in_braces as in_braces,
        string_value as string_value,
        tokens as tokens,
    )
    from mlfbuild.c_analysis.files import (
        CXX_SUFFIXES as CXX_SUFFIXES,
        HEADER_SUFFIXES as HEADER_SUFFIXES,
        LINKED_SUFFIXES as LINKED_SUFFIXES,
        MAX_TEXT as MAX_TEXT,
        OBJECT_SUFFIXES as OBJECT_SUFFIXES,
        SOURCE_SUFFIXES as SOURCE_SUFFIXES,
        TEXT_SUFFIXES as TEXT_SUFFIXES,
    )
    from mlfbuild.c_analysis.renamed import renamed_object as renamed_object
    from mlfbuild.c_analysis.source_symbols import c_symbols as c_symbols
    from mlfbuild.c_analysis.static_library import members as members
    from mlfbuild.c_analysis.symbols import Symbols as Symbols, object_symbols as object_symbols
    from mlfbuild.c_analysis.weak import (
        MERGED as MERGED,
        SHARED as SHARED,
        weak_definitions as weak_definitions,
    )
else:
    __getattr__ = lazy_attributes(__name__)
