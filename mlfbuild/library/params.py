"""Parameters of a module as the bytes of ``parameters/<module>.params``, TVM's ``SaveParams`` format.

All integers are little-endian. A file is a list header (magic, reserved, names, number of arrays) and one record an
array, in the order of the names::

    u64 0xF7E58D4F05049CB7   u64 0   u64 count   { u64 length, bytes }   u64 count
    { u64 0xDD5E40F096B4A13F   u64 0   i32 device, i32 id, i32 ndim   u8 code, u8 bits, u16 lanes
      i64 shape[ndim]   i64 bytes   data }

Nothing is padded or aligned, and there is no checksum. The order of names has no meaning; it is kept so that a file
that is read and written again has the same bytes. Files may be large: loading reads only the headers, each array is
read when it is used, and saving takes the bytes from the arrays as they are written::

    params = load_params(path.read_bytes(), str(path))
    weights = params["p0"]  # a read-only numpy array
    save_params({"p0": weights})
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from mlfbuild.core import InputFileError, UsageError, lazy_module, quoted
from mlfbuild.library.content import CHUNK, Content, LazyBytes
from mlfbuild.library.numpy_types import DType, code_of, dtype_called, name_of, type_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = lazy_module("numpy")

_LIST_MAGIC = 0xF7E58D4F05049CB7
_TENSOR_MAGIC = 0xDD5E40F096B4A13F
_CPU = 1  # DLPack's kDLCPU
MAX_NDIM = 32  # numpy 1's own limit
_LARGEST = 2**63 - 1

Array: TypeAlias = "npt.NDArray[np.generic]"
Params: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class ParamInfo:
    """Type, shape and size of a parameter."""

    dtype: str
    """The name in numpy or ``ml_dtypes``, for example ``int8``, ``bool`` or ``bfloat16``."""
    shape: tuple[int, ...]
    size: int
    """Bytes."""


def param_infos(params: Params) -> dict[str, ParamInfo]:
    """Return type, shape and size of each parameter, in the same order, without reading values from a file.

    Use it if only types and sizes are needed: ``params[name]`` reads the whole array.
    """
    if isinstance(params, StoredParams):
        return {name: params.info(name) for name in params}
    return {name: ParamInfo(value.dtype.name, value.shape, value.nbytes) for name, value in params.items()}


# Reading -------------------------------------------------------------------------------------------------------------


class StoredParams(Mapping[str, Array]):
    """The arrays of a ``.params`` file in its order, read-only; each access reads the array from the file."""

    def __init__(self, content: Content, records: Mapping[str, tuple[ParamInfo, int]]) -> None:
        self.content = content
        """The whole file."""
        self._records = records
        """Each with the offset of its data."""

    def __getitem__(self, name: str) -> Array:
        info, offset = self._records[name]
        dtype = dtype_called(info.dtype)
        if isinstance(self.content, bytes):
            return np.frombuffer(self.content, dtype, info.size // dtype.itemsize, offset).reshape(info.shape)
        return np.frombuffer(self.content.read(offset, info.size), dtype).reshape(info.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} arrays in {len(self.content)} bytes>"

    def info(self, name: str) -> ParamInfo:
        """Return type, shape and size of the parameter ``name``; raises ``KeyError``."""
        return self._records[name][0]


def load_params(content: Content, where: str = ".params") -> StoredParams:
    """Return the arrays of a ``.params`` file; only the headers are read now.

    ``where`` is the place in errors. Raises ``InputFileError`` if a magic number, a count or a size is wrong, bytes are
    missing or left over, or numpy and ``ml_dtypes`` do not have the type of an array. Types with several lanes are
    refused because TVM saves only a part of their values.
    """
    reader = _Reader(content, where)
    reader.expect(_LIST_MAGIC, "a parameter list")
    count = reader.count("names")
    names = dict.fromkeys(reader.name() for _ in range(count))
    if len(names) != count:
        raise reader.error("params-name-twice", "a name occurs twice")
    if reader.count("arrays") != count:
        raise reader.error("params-count-wrong", "the numbers of names and of arrays differ")
    records = {name: _read_record(reader, name) for name in names}
    if reader.remaining:
        raise reader.error("params-bytes-left", f"{reader.remaining} bytes are left over")
    return StoredParams(content, records)


def _read_record(reader: _Reader, name: str) -> tuple[ParamInfo, int]:
    shown = quoted(name)
    reader.expect(_TENSOR_MAGIC, f"the array {shown}")
    device, _, ndim, code, bits, lanes = reader.unpack("<iiiBBH")
    if device != _CPU:
        raise reader.error("params-device-unsupported", f"array {shown} is on device {device}, not on the CPU (1)")
    if not 0 <= ndim <= MAX_NDIM:
        raise reader.error("params-rank-invalid", f"array {shown} has {ndim} dimensions")
    dtype, itemsize = name_of(code, bits), (bits + 7) // 8
    if dtype is None or lanes != 1:
        reason = f"array {shown} has the unsupported type {type_text(code, bits, lanes)}"
        raise reader.error("params-type-unsupported", reason)
    *shape, size = reader.unpack(f"<{ndim}qq")
    # numpy refuses even an empty array if the product of the extents other than 0 is too large.
    fits = all(dimension >= 0 for dimension in shape) and math.prod(filter(None, shape)) * itemsize <= _LARGEST
    if not fits or math.prod(shape) * itemsize != size:
        raise reader.error("params-size-wrong", f"array {shown} declares {size} bytes for {dtype}{shape}")
    return ParamInfo(dtype, tuple(shape), size), reader.skip(size)


class _Reader:
    """A position in a file that is not trusted."""

    _WINDOW = 4096

    def __init__(self, content: Content, where: str) -> None:
        self._content = content
        self._where = where
        self._at = 0
        self._size = len(content)
        self._window = b""
        self._window_at = 0

    @property
    def remaining(self) -> int:
        return self._size - self._at

    def error(self, code: str, reason: str) -> InputFileError:
        return InputFileError(
            code,
            place=self._where,
            reason=f"the parameter file is damaged: {reason}",
            hint="copy or export it again",
        )

    def skip(self, size: int) -> int:
        """Skip ``size`` bytes; returns their offset."""
        if size > self.remaining:
            raise self.error("params-truncated", f"it ends early ({size - self.remaining} bytes missing)")
        self._at += size
        return self._at - size

    def take(self, size: int) -> bytes:
        begin = self.skip(size)
        if isinstance(self._content, bytes):
            return self._content[begin : begin + size]
        # Headers have some dozen bytes, so one read of the file serves several of them.
        if not self._window_at <= begin <= begin + size <= self._window_at + len(self._window):
            self._window, self._window_at = self._content.read(begin, max(size, self._WINDOW)), begin
        return self._window[begin - self._window_at : begin - self._window_at + size]

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def expect(self, magic: int, what: str) -> None:
        found, _ = self.unpack("<QQ")
        if found != magic:
            raise self.error("params-magic-wrong", f"{what} does not begin with its magic number")

    def count(self, what: str) -> int:
        (count,) = self.unpack("<Q")
        if count > self.remaining // 8:  # each name and each array takes at least eight bytes
            raise self.error("params-count-wrong", f"it claims to have {count} {what}")
        return count

    def name(self) -> str:
        (length,) = self.unpack("<Q")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise self.error("params-name-invalid", "a name is not UTF-8") from None


# Writing -------------------------------------------------------------------------------------------------------------


def save_params(params: Params) -> Content:
    """Return ``params`` as the content of a ``.params`` file, in the mapping's order.

    For parameters that were read from a file, the result is that file. The bytes of large arrays are taken when the
    content is read, so the arrays must not change before. Raises ``UsageError`` if the format cannot hold a type, a
    name or a shape.
    """
    if isinstance(params, StoredParams):
        return params.content
    file = _ParamsFile(params)
    return bytes(file) if len(file) <= CHUNK else file


def _list_header(params: Params) -> bytes:
    count = struct.pack("<Q", len(params))
    names = [_encoded(name) for name in params]
    return b"".join(
        [struct.pack("<QQ", _LIST_MAGIC, 0), count, *(struct.pack("<Q", len(name)) + name for name in names), count]
    )


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        place = f"parameter {quoted(name)}"
        raise UsageError(
            "parameter-name-invalid", place=place, reason="the name is not Unicode text", hint="rename it"
        ) from None


def _array_header(name: str, value: Array) -> bytes:
    code = code_of(value.dtype)
    if code is None:
        raise unsupported_dtype(name, value.dtype)
    if value.ndim > MAX_NDIM:
        reason = f"has {value.ndim} dimensions, more than {MAX_NDIM}"
        raise UsageError("parameter-rank-too-high", place=f"parameter {quoted(name)}", reason=reason, hint="reshape it")
    head = struct.pack("<QQiiiBBH", _TENSOR_MAGIC, 0, _CPU, 0, value.ndim, *code, 1)
    return head + struct.pack(f"<{value.ndim}qq", *value.shape, value.nbytes)


def unsupported_dtype(name: str, dtype: DType) -> UsageError:
    """Return the error for a parameter whose type the format does not have."""
    reason = f"the format does not have the dtype {dtype.name}"
    hint = "convert it to a dtype such as float32 or int8"
    return UsageError("parameter-dtype-unsupported", place=f"parameter {quoted(name)}", reason=reason, hint=hint)


class _ParamsFile(LazyBytes):
    """A ``.params`` file: the headers are made now, and the data is taken from the arrays when it is read."""

    def __init__(self, params: Params) -> None:
        self._params = params
        parts: list[tuple[bytes | str, int]] = []  # headers, and names of arrays, each with its size in bytes
        header = _list_header(params)
        for name, value in params.items():
            header += _array_header(name, value)
            parts += [(header, len(header)), (name, value.nbytes)]
            header = b""
        self._parts = [part for part, _ in parts] or [header]
        self._ends = list(accumulate(size for _, size in parts)) or [len(header)]

    def __len__(self) -> int:
        return self._ends[-1]

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, or fewer at the end."""
        end = min(offset + size, len(self))
        found = []
        index = bisect_right(self._ends, offset)
        while offset < end:
            begin = self._ends[index - 1] if index else 0
            stop = min(end, self._ends[index])
            found.append(_part(self._data(self._parts[index]), offset - begin, stop - begin))
            offset, index = stop, index + 1
        return b"".join(found)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes in order, at most ``CHUNK`` at a time; each array is read from the mapping once."""
        for part, begin, end in zip(self._parts, [0, *self._ends], self._ends, strict=False):
            data = self._data(part)
            for offset in range(0, end - begin, CHUNK):
                yield _part(data, offset, min(offset + CHUNK, end - begin))

    def _data(self, part: bytes | str) -> bytes | Array:
        return self._params[part] if isinstance(part, str) else part


def _part(data: bytes | Array, begin: int, end: int) -> bytes:
    """Return the bytes from ``begin`` to ``end`` of ``data``; those of an array are row-major and little-endian."""
    if isinstance(data, bytes):
        return data[begin:end]
    little = data.dtype.newbyteorder("<")
    if data.flags.c_contiguous and data.dtype == little:
        return data.reshape(-1).view(np.uint8)[begin:end].tobytes()
    width = data.dtype.itemsize
    # A part may begin and end within an element.
    first = begin // width
    elements = np.asarray(data.flat[first : -(-end // width)]).astype(little, copy=False)
    return elements.tobytes()[begin - first * width : end - first * width]
