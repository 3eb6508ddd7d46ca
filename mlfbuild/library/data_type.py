"""Data types by TVM's names: ``int8``, ``float32``, ``bool``, ``uint8x4``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

CODE_NAMES: Mapping[int, str] = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex"}
"""DLPack's DLDataTypeCode in TVM's spelling."""
C_TYPES: Mapping[str, str] = {
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float32": "float", "float64": "double", "bool": "uint8_t",
}  # fmt: skip
"""The C type of an element, for types that have one."""
# The numbers of digits are limited, because names come from files that are not trusted.
_NAME = re.compile(
    r"(int|uint|float|bfloat|handle|e4m3_float|e5m2_float|float8_\w+|custom\[[^\[\]]*\])(\d{1,4})?(?:x(\d{1,6}))?",
    re.ASCII,
)
_DEFAULT_BITS = {"handle": 64}
_NOTHING = {"", "void"}


@dataclass(frozen=True)
class DataType:
    """A DLPack data type: ``code`` in TVM's spelling, bits of one lane, number of lanes."""

    code: str
    bits: int
    lanes: int = 1

    @property
    def element_size(self) -> int:
        """Bytes of one element: bits of all its lanes, rounded up."""
        return (self.bits * self.lanes + 7) // 8


def parse_dtype(name: str) -> DataType | None:
    """Return the type called ``name``, parsed like TVM's ``String2DLDataType``; ``None`` if TVM does not know it.

    ``bool`` has one bit and its elements take one byte. A type without a number of bits has 32, a handle 64.
    """
    if name == "bool":
        # TVM stores a bool as an unsigned integer of one bit.
        return DataType("uint", 1)
    if name in _NOTHING:
        return DataType("void", 0, 0)
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    code, bits, lanes = found.groups()
    if code.startswith("float8_"):  # the number of bits is part of the code
        bits = "8"
    wide = int(bits or 0) or _DEFAULT_BITS.get(code, 32)
    # DLDataType of dlpack.h has 8 bits for the bits of a lane, and 16 for the number of lanes.
    return DataType(code, wide, int(lanes or 1)) if wide < 256 and int(lanes or 1) < 65536 else None


def element_size(name: str) -> int | None:
    """Return the bytes of one element of the type ``name``; ``None`` if TVM does not know it.

    Types of less than a byte take a whole one: ``int4`` and ``bool`` have 1, ``int8x4`` has 4, ``handle`` 8.
    """
    found = parse_dtype(name)
    return None if found is None else found.element_size


def tensor_size(name: str, shape: tuple[int, ...]) -> int | None:
    """Return the bytes of a compact tensor; ``None`` if TVM does not know the type ``name``.

    An empty shape is a scalar of one element. Nothing limits the result, so check it before memory is reserved for a
    file that is not trusted.
    """
    size = element_size(name)
    # Multiplied in Python, whose integers do not overflow as those of C would.
    return None if size is None else size * math.prod(shape)
