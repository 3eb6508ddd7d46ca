"""Element types of parameters: DLPack's (code, bits), which files record, and numpy's names.

numpy has no floats of 16 bits with 8 of exponent, none of 8 bits, and no integers of less than 8; the package
``ml_dtypes`` adds them to it, and is imported only where one of them is met. Each element takes whole bytes, the low
bits of one where it is smaller: TVM's ``SaveDLTensor`` writes (bits + 7) / 8 bytes an element.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mlfbuild.library.data_type import CODE_NAMES

DType: TypeAlias = "np.dtype[np.generic]"

_NUMPY = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64", (1, 1): "bool",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
}  # fmt: skip
"""A bool is an unsigned integer of one bit."""
_ML_DTYPES = {
    (0, 2): "int2", (0, 4): "int4", (1, 2): "uint2", (1, 4): "uint4", (4, 16): "bfloat16",
    (6, 8): "float8_e4m3fn", (7, 8): "float8_e5m2",
    (8, 8): "float8_e4m3", (9, 8): "float8_e4m3b11fnuz", (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn", (16, 6): "float6_e3m2fn", (17, 4): "float4_e2m1fn",
}  # fmt: skip
"""6 and 7 are TVM's own codes of 0.13 to 0.18 (``kE4M3Float``, ``kE5M2Float``), those from 8 on DLPack's (1.1)."""
_CODES = {name: code for table in (_ML_DTYPES, _NUMPY) for code, name in reversed(table.items())}

SUPPORTED = ", ".join(sorted(_CODES))
"""The names of all types, for messages."""


def code_of(dtype: npt.DTypeLike) -> tuple[int, int] | None:
    """Return the (code, bits) of a numpy type, whatever its byte order; ``None`` where the format has none for it."""
    return _CODES.get(np.dtype(dtype).name)


def dtype_of(code: int, bits: int) -> DType | None:
    """Return the little-endian numpy type of (code, bits); ``None`` where there is none."""
    name = _NUMPY.get((code, bits)) or _ML_DTYPES.get((code, bits))
    return None if name is None else dtype_called(name)


def dtype_called(name: str) -> DType:
    """Return the little-endian numpy type called ``name``, as ``int8`` or ``bfloat16``; raises ``KeyError``."""
    dtype: DType
    if _CODES[name] in _NUMPY:
        dtype = np.dtype(name)
    else:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, name))
    little: DType = dtype.newbyteorder("<")
    return little


def type_text(code: int, bits: int, lanes: int) -> str:
    """Return a type that may be none of ours as people write it: ``float32x4``."""
    known = f"{CODE_NAMES[code]}{bits}" if code in CODE_NAMES else f"{code} of {bits} bits"
    return f"{known}x{lanes}" if lanes != 1 else known


def is_supported(name: str) -> bool:
    """Whether ``name`` is the name of a type here."""
    return name in _CODES
