"""Words that cannot name anything in generated C, because C, C++ or the headers of their libraries use them."""

from __future__ import annotations

import re

_TEXT = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
    consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
    typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    NULL errno i386 linux unix
"""
"""Keywords of C and C++, and common macros."""
_WORDS = frozenset(_TEXT.split())

# No name of a user can be checked against all of a C library; these are the ones that a standard reserves.
_PATTERN = re.compile(r"_[A-Z]|__[0-9A-Za-z]|(U?INT|INTPTR|PTRDIFF|SIZE|WCHAR|WINT|SIG_ATOMIC)\w*_(MIN|MAX|C)$")
"""Names that are reserved for the C implementation, and limits of ``<stdint.h>``."""


def is_reserved_in_c(name: str) -> bool:
    """Return whether the identifier ``name`` is reserved in C or C++.

    That includes names that C reserves for compilers and libraries (C99 7.1.3: ``_Bool``, ``__x``), limits of
    ``<stdint.h>``, and macros that GCC predefines in its default mode (``linux``, ``unix``, ``i386``), which would
    replace the name in generated code.
    """
    return name in _WORDS or _PATTERN.match(name) is not None
