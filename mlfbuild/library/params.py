"""Parameters of a module as the bytes of ``parameters/<module>.params``, TVM's ``SaveParams`` format.

All integers are little-endian. A file is a list header (magic, reserved, names, number of arrays) and one record an
array, in the order of the names::

    u64 0xF7E58D4F05049CB7   u64 0   u64 count   { u64 length, bytes }   u64 count
    { u64 0xDD5E40F096B4A13F   u64 0   i32 device, i32 id, i32 ndim   u8 code, u8 bits, u16 lanes
      i64 shape[ndim]   i64 bytes   data }

Nothing is padded or aligned, there is no checksum. The order of names means nothing; it is kept all the same, so that
a file read and written again has the same bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mlfbuild.errors import InputFileError

_LIST_MAGIC = 0xF7E58D4F05049CB7
_TENSOR_MAGIC = 0xDD5E40F096B4A13F
_CPU = 1  # DLPack's kDLCPU
_MAX_NDIM = 32  # numpy 1's own limit

_DTYPE_CODES = {
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "bool": (1, 1),
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64),
}  # fmt: skip
"""numpy name -> DLPack's (code, bits); a bool is a uint of one bit that takes a byte."""
_DTYPES = {code: np.dtype(name) for name, code in _DTYPE_CODES.items()}
_CODE_NAMES = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat"}

Params = Mapping[str, npt.NDArray[np.generic]]


def save_params(params: Params) -> bytes:
    """Return ``params`` as the bytes of a ``.params`` file, in the mapping's order.

    Raises ``ValueError`` for a dtype that the format cannot hold.
    """
    count = struct.pack("<Q", len(params))
    names = b"".join(struct.pack("<Q", len(name.encode())) + name.encode() for name in params)
    arrays = b"".join(_save_tensor(name, value) for name, value in params.items())
    return struct.pack("<QQ", _LIST_MAGIC, 0) + count + names + count + arrays


def _save_tensor(name: str, value: npt.NDArray[np.generic]) -> bytes:
    if value.dtype.name not in _DTYPE_CODES:
        raise ValueError(f"parameter {name!r}: the .params format has no dtype {value.dtype.name}")
    code, bits = _DTYPE_CODES[value.dtype.name]
    data = value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
    head = struct.pack("<QQiiiBBH", _TENSOR_MAGIC, 0, _CPU, 0, value.ndim, code, bits, 1)
    return head + struct.pack(f"<{value.ndim}qq", *value.shape, len(data)) + data


def load_params(data: bytes, where: str = ".params") -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of a ``.params`` file, read-only, in the order of the file.

    ``where`` names the file in messages. Raises ``InputFileError`` where a magic number, a count or a size is wrong,
    bytes are missing or left over, or an array has a type that numpy does not have.
    """
    reader = _Reader(data, where)
    reader.expect(_LIST_MAGIC, "a parameter list")
    names = [reader.name() for _ in range(reader.count("names"))]
    if len(set(names)) != len(names):
        raise reader.error("a name stands twice")
    if reader.count("arrays") != len(names):
        raise reader.error("the numbers of names and of arrays differ")
    params = {name: _load_tensor(reader, name) for name in names}
    if reader.remaining:
        raise reader.error(f"{reader.remaining} bytes are left over")
    return params


def _load_tensor(reader: _Reader, name: str) -> npt.NDArray[np.generic]:
    reader.expect(_TENSOR_MAGIC, f"the array {name!r}")
    device, _, ndim, code, bits, lanes = reader.unpack("<iiiBBH")
    if device != _CPU:
        raise reader.error(f"array {name!r} lies on device {device}, not on the CPU (1)")
    if not 0 <= ndim <= _MAX_NDIM:
        raise reader.error(f"array {name!r} has {ndim} dimensions")
    dtype = _DTYPES.get((code, bits))
    if dtype is None or lanes != 1:
        suffix = f"x{lanes}" if lanes != 1 else ""
        raise reader.error(f"array {name!r} has the unsupported type {_CODE_NAMES.get(code, code)}{bits}{suffix}")
    *shape, size = reader.unpack(f"<{ndim}qq")
    if any(dimension < 0 for dimension in shape) or math.prod(shape) * dtype.itemsize != size:
        raise reader.error(f"array {name!r} declares {size} bytes for {dtype.name}{list(shape)}")
    return np.frombuffer(reader.take(size), dtype=dtype.newbyteorder("<")).reshape(shape)


class _Reader:
    """A position in the bytes of a file nobody vouches for."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._where = where
        self._at = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._at

    def error(self, reason: str) -> InputFileError:
        return InputFileError(f"{self._where}: not a sound parameter file: {reason}; export it again")

    def take(self, size: int) -> bytes:
        if size > self.remaining:
            raise self.error(f"it ends early ({size - self.remaining} bytes missing)")
        self._at += size
        return self._data[self._at - size : self._at]

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def expect(self, magic: int, what: str) -> None:
        found, _ = self.unpack("<QQ")
        if found != magic:
            raise self.error(f"{what} does not begin with its magic number")

    def count(self, what: str) -> int:
        (count,) = self.unpack("<Q")
        if count > self.remaining // 8:  # each name and each array takes more than eight bytes
            raise self.error(f"it claims {count} {what}")
        return count

    def name(self) -> str:
        (length,) = self.unpack("<Q")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise self.error("a name is not UTF-8") from None
