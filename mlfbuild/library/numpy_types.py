"""Element types of parameters: DLPack's (code, bits), which files record, and numpy's names.

numpy has no bfloat16, no 8-bit floats, and no integers smaller than 8 bits. The package ``ml_dtypes`` adds them; it is
imported only if a file has one of these types, and numpy only if values are read: names and sizes need neither. Each
element takes whole bytes, and a smaller one the low bits of a byte: TVM's ``SaveDLTensor`` writes (bits + 7) / 8 bytes
per element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlfbuild.core import lazy_module
from mlfbuild.library.data_type import CODE_NAMES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = lazy_module("numpy")

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
# Reversed, so that the first code of a name counts: 8-bit floats get the codes of TVM.
_CODES = {name: code for table in (_ML_DTYPES, _NUMPY) for code, name in reversed(table.items())}


def code_of(dtype: npt.DTypeLike) -> tuple[int, int] | None:
    """Return the (code, bits) of a numpy type of any byte order; ``None`` if the format does not have the type."""
    return _CODES.get(np.dtype(dtype).name)


def name_of(code: int, bits: int) -> str | None:
    """Return the name of the numpy type of (code, bits), for ``dtype_called``; ``None`` if there is none."""
    return _NUMPY.get((code, bits)) or _ML_DTYPES.get((code, bits))


def dtype_called(name: str) -> DType:
    """Return the little-endian numpy type ``name``, such as ``int8`` or ``bfloat16``; raises ``KeyError``.

    Types that numpy does not have are those of ``ml_dtypes``, which is imported then. ``is_supported`` tells
    whether the name is known.
    """
    dtype: DType
    if _CODES[name] in _NUMPY:
        dtype = np.dtype(name)
    else:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, name))
    little: DType = dtype.newbyteorder("<")
    return little


def type_text(code: int, bits: int, lanes: int) -> str:
    """Return a type, which may be unsupported, in TVM's spelling: ``float32x4``."""
    known = f"{CODE_NAMES[code]}{bits}" if code in CODE_NAMES else f"{code} of {bits} bits"
    return f"{known}x{lanes}" if lanes != 1 else known


def is_supported(name: str) -> bool:
    """Return whether ``name`` is a type that parameters may have.

    Neither numpy nor ``ml_dtypes`` is imported for it. Names are those of numpy, such as ``int8``, ``bool`` or
    ``bfloat16``.
    """
    return name in _CODES


def round_half_away(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Round each element of the float array ``x`` to nearest, half away from zero (C's ``round``).

    The result has the dtype and the shape of ``x``; NaN and infinities stay as they are.
    """
    # Neither np.round, which rounds a half to even, nor floor(x + 0.5): the float32 just below 0.5 plus 0.5 is 1.
    whole = np.trunc(x)
    rounded: npt.NDArray[Any] = np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)
    return rounded
