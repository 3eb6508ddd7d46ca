"""Turn names of tensors into C identifiers, and any text into part of a C comment.

Names in model files are untrusted. A member of the C interface's structs keeps letters, digits and underscores, as in
TVM's header. If the result is not a valid identifier or is reserved, an underscore is added.
"""

from __future__ import annotations

import re

from mlfbuild.library import sanitize_name

_RESERVED_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
    consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
    typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    NULL errno i386 linux unix
"""
"""Keywords of C and C++, and common macros."""

_RESERVED = frozenset(_RESERVED_WORDS.split())

_RESERVED_PATTERN = re.compile(
    r"_[A-Z]|__[0-9A-Za-z]|(U?INT|INTPTR|PTRDIFF|SIZE|WCHAR|WINT|SIG_ATOMIC)\w*_(MIN|MAX|C)$"
)
"""Names that are reserved for the C implementation, and limits of ``<stdint.h>``."""


def member_name(tensor_name: str) -> str:
    """Return the C identifier of the tensor ``tensor_name``: each byte except letters and digits becomes ``_``.

    A name that starts with a digit gets ``_`` in front; a reserved word gets ``_`` at its end, and so does
    ``workspace``, because its size macro would equal the arena's.
    """
    text = sanitize_name(tensor_name)
    if text[0].isdigit():
        text = f"_{text}"
    reserved = text in _RESERVED or text.lower() == "workspace" or _RESERVED_PATTERN.match(text)
    return f"{text}_" if reserved else text


def comment_text(text: str, longest: int = 100) -> str:
    """Return ``text`` for a C comment: other than harmless characters become ``_``, and at most ``longest`` remain."""
    harmless = re.sub(r"[^0-9A-Za-z_./:;,()\[\]=+@ -]", "_", text)
    return harmless if len(harmless) <= longest else f"{harmless[: longest - 3]}..."
