"""Declare memory for tensors of several types as a union of arrays of their elements.

Bytes of an array of uint8_t may not be accessed as another type (C11 6.5, paragraphs 6 and 7), although compilers with
casts to such an array rarely notice. In a union, each element of each type is an object of that type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

SCRATCH_TYPES = frozenset({"int16_t", "int32_t", "float"})
"""The element types that kernels store in scratch memory."""
_WIDTHS = {"int16_t": 2, "int32_t": 4, "int64_t": 8, "float": 4, "double": 8}
"""Bytes of elements; those of one byte may be accessed as any character type, and signs do not matter (C11 6.5)."""


def union_members(size: int, types: Collection[str]) -> Iterator[str]:
    """Yield the members of a union of ``size`` bytes for elements of the C types ``types``, first the bytes.

    Signs of types do not matter: ``uint32_t`` gets the member for ``int32_t``. A type that is wider than ``size``
    has no member.
    """
    yield f"uint8_t uint8_elements[{size}];"
    used = {c_type.removeprefix("u") for c_type in types}
    for c_type, width in _WIDTHS.items():
        if c_type in used and size >= width:
            yield f"{c_type} {c_type.removesuffix('_t')}_elements[{size // width}];"
