"""Parameters as JSON or BSON, two forms that the first RFC of the format mentions and TVM never wrote.

The RFC does not define their content. Here a file is one object with the parameters by name::

    {"p0": {"dtype": "float32", "shape": [1, 2], "data": [2.0, 4.0]}}

``data`` has the elements in row-major order; lists nested like ``shape`` are also read. Integers of any size are exact,
bools are ``true`` and ``false``, and floats are written so that reading them gives the same bits: as numbers, as the
strings ``"Infinity"``, ``"-Infinity"`` and ``"NaN"``, or, for a NaN with other bits, as ``"0x7fc00001"``. BSON has the
same members; there ``data`` may also be binary: the bytes of the elements, little-endian.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from mlfbuild.core import InputFileError, UsageError, lazy_module, quoted, require_extra
from mlfbuild.library.content import Content
from mlfbuild.library.fields import parse_json
from mlfbuild.library.numpy_types import DType, code_of, dtype_called, is_supported
from mlfbuild.library.params import MAX_NDIM, Array, Params, unsupported_dtype

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

MAX_JSON = 64 * 1024 * 1024
MAX_BSON = 256 * 1024 * 1024
"""Largest files, in bytes; they are read at once, so larger weights belong in a ``.params`` file."""
_MEMBERS = {"dtype", "shape", "data"}
_ELEMENTS = 65536  # converted to text at a time
_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_BITS = re.compile(r"0x[0-9a-f]{1,16}")
_FLOATS = {"float16", "float32", "float64"}  # the floats of numpy itself
_INTEGER_CODES = {0, 1}  # DLPack's kDLInt and kDLUInt
_EXPORT = "export the parameters again"


# Writing -------------------------------------------------------------------------------------------------------------


def save_params_json(params: Params) -> bytes:
    """Return ``params`` as JSON text, in the mapping's order.

    Raises ``UsageError`` for a type that ``.params`` files do not have, and if the text is larger than ``MAX_JSON``.
    """
    return _readable("".join(_text(params)).encode(), MAX_JSON)


def save_params_bson(params: Params) -> bytes:
    """Return ``params`` as BSON with binary data, in the mapping's order.

    Raises ``UsageError`` as ``save_params_json``, with the limit ``MAX_BSON``, and ``ToolNotFoundError`` if the package
    that writes BSON is not installed.
    """
    require_extra("bson", "parameters", "writing BSON")
    from bson import encode

    for name, value in params.items():
        if code_of(value.dtype) is None:
            raise unsupported_dtype(name, value.dtype)
    _readable(b"", MAX_BSON, sum(value.nbytes for value in params.values()))  # before their copies need memory
    entries = {
        name: {
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "data": value.astype(value.dtype.newbyteorder("<")).tobytes(),
        }
        for name, value in params.items()
    }
    return _readable(encode(entries), MAX_BSON)


def _readable(data: bytes, limit: int, size: int | None = None) -> bytes:
    """Return ``data``; raises ``UsageError`` if it, or a file of ``size`` bytes, is too large to be read again."""
    if (len(data) if size is None else size) > limit:
        raise UsageError(
            "params-too-large-for-form",
            place="parameters",
            reason=f"would take more than {limit >> 20} MiB in this form",
            hint="write them as a .params file",
        )
    return data


def _text(params: Params) -> Iterator[str]:
    separator = "{\n"
    for name, value in params.items():
        if code_of(value.dtype) is None:
            raise unsupported_dtype(name, value.dtype)
        head = f'{{"dtype": {json.dumps(value.dtype.name)}, "shape": {json.dumps(value.shape)}, "data": ['
        yield f"{separator}{json.dumps(name)}: {head}"
        for begin in range(0, value.size, _ELEMENTS):
            elements = _plain(np.asarray(value.flat[begin : begin + _ELEMENTS]))
            yield (", " if begin else "") + json.dumps(elements, allow_nan=False)[1:-1]
        yield "]}"
        separator = ",\n"
    yield "\n}\n" if params else "{}\n"


def _plain(elements: Array) -> list[Any]:
    """Return ``elements`` as JSON values."""
    code = code_of(elements.dtype)
    if elements.dtype.kind in "biu":
        return list(elements.tolist())
    if code is not None and code[0] in _INTEGER_CODES:
        return list(elements.astype(np.int8).tolist())
    with np.errstate(invalid="ignore"):  # a signalling NaN
        numbers = elements.astype(np.float64)
    values: list[Any] = numbers.tolist()
    bits = elements.astype(elements.dtype.newbyteorder("<")).view(_unsigned(elements.dtype))
    for index in np.flatnonzero(~np.isfinite(numbers)).tolist():
        values[index] = _special(values[index], int(bits[index]), elements.dtype)
    return values


def _special(value: float, bits: int, dtype: DType) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if bits == _nan_bits(dtype) else f"0x{bits:0{2 * dtype.itemsize}x}"


def _nan_bits(dtype: DType) -> int:
    return int(np.array([math.nan]).astype(dtype.newbyteorder("<")).view(_unsigned(dtype))[0])


def _unsigned(dtype: DType) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype(f"<u{dtype.itemsize}")


# Reading -------------------------------------------------------------------------------------------------------------


def load_params_json(content: Content, where: str) -> dict[str, Array]:
    """Return the arrays of parameters in JSON, in its order; ``where`` is the place in errors.

    Raises ``InputFileError`` if the file is larger than ``MAX_JSON`` or not JSON, has a type that ``.params`` files do
    not have, or values that do not fit type and shape.
    """
    return _arrays(parse_json(_bytes(content, MAX_JSON, where), where), where)


def load_params_bson(content: Content, where: str) -> dict[str, Array]:
    """Return the arrays of parameters in BSON, in its order; ``where`` is the place in errors.

    Raises the errors of ``load_params_json``, with the limit ``MAX_BSON``, and ``ToolNotFoundError`` if the package
    that reads BSON is not installed.
    """
    data = _bytes(content, MAX_BSON, where)
    require_extra("bson", where, "reading BSON")
    from bson import decode
    from bson.errors import BSONError

    try:
        document = decode(data)
    except (BSONError, ValueError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputFileError(
            "bson-invalid", place=where, reason=f"the file is not valid BSON: {reason}", hint=_EXPORT
        ) from None
    return _arrays(document, where)


def _bytes(content: Content, limit: int, where: str) -> bytes:
    if len(content) > limit:
        raise InputFileError(
            "params-text-too-large",
            place=where,
            reason=f"is larger than {limit >> 20} MiB",
            hint="export the parameters as a .params file",
        )
    return bytes(content)


def _arrays(document: object, where: str) -> dict[str, Array]:
    if not isinstance(document, dict):
        raise InputFileError(
            "json-type-wrong", place=where, reason="must be an object with the parameters by name", hint=_EXPORT
        )
    return {name: _Entry(name, where).array(entry) for name, entry in document.items()}


class _Entry:
    """One parameter of a file that is not trusted."""

    def __init__(self, name: str, where: str) -> None:
        self._place = f"{where}: parameter {quoted(name)}"

    def _refuse(self, code: str, reason: str) -> NoReturn:
        raise InputFileError(code, place=self._place, reason=reason, hint=_EXPORT)

    def array(self, entry: object) -> Array:
        """Return the array, read-only; raises ``InputFileError``."""
        if not isinstance(entry, dict) or entry.keys() != _MEMBERS:
            self._refuse(
                "parameter-members-wrong", "must be an object with dtype, shape and data, and no other members"
            )
        name, data = entry["dtype"], entry["data"]
        if not isinstance(name, str) or not is_supported(name):
            shown = quoted(name) if isinstance(name, str) else type(name).__name__
            self._refuse("parameter-type-unsupported", f"has the unsupported type {shown}")
        dtype = dtype_called(name)
        shape = self._shape(entry["shape"])
        if isinstance(data, bytes):
            array = self._from_bytes(data, dtype, shape)
        elif isinstance(data, list):
            array = self._from_list(self._flat(data, shape), dtype, shape)
        else:
            self._refuse("parameter-data-invalid", "data must be a list")
        array.flags.writeable = False
        return array

    def _shape(self, shape: object) -> tuple[int, ...]:
        if not isinstance(shape, list) or len(shape) > MAX_NDIM:
            self._refuse("parameter-shape-invalid", f"shape must be a list of at most {MAX_NDIM} numbers")
        if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**63 for n in shape):
            self._refuse("parameter-shape-invalid", "shape must have whole numbers of at least 0")
        if math.prod(filter(None, shape)) * 8 >= 2**63:
            self._refuse("parameter-shape-invalid", "shape is larger than any array")
        return tuple(shape)

    def _from_bytes(self, data: bytes, dtype: DType, shape: tuple[int, ...]) -> Array:
        if len(data) != math.prod(shape) * dtype.itemsize:
            self._refuse("parameter-data-invalid", f"data has {len(data)} bytes for {dtype.name}{list(shape)}")
        return np.frombuffer(data, dtype).reshape(shape)

    def _flat(self, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
        """Return nested lists as one list."""
        if data and isinstance(data[0], list):
            for dimension in shape[1:]:
                if not all(isinstance(row, list) and len(row) == dimension for row in data):
                    self._refuse("parameter-data-invalid", f"data does not have the shape {list(shape)}")
                data = [element for row in data for element in row]
        return data

    def _from_list(self, data: list[Any], dtype: DType, shape: tuple[int, ...]) -> Array:
        if len(data) != math.prod(shape):
            self._refuse("parameter-data-invalid", f"data has {len(data)} elements for the shape {list(shape)}")
        code = code_of(dtype)
        assert code is not None
        if dtype.kind == "b":
            if not all(isinstance(element, bool) for element in data):
                self._refuse("parameter-data-invalid", "data must have true and false")
            return np.array(data, dtype).reshape(shape)
        if code[0] in _INTEGER_CODES:
            return self._integers(data, dtype, code).reshape(shape)
        return self._floats(data, dtype).reshape(shape)

    def _integers(self, data: list[Any], dtype: DType, code: tuple[int, int]) -> Array:
        signed, bits = code[0] == 0, code[1]
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        if not all(isinstance(n, int) and not isinstance(n, bool) and least <= n <= most for n in data):
            self._refuse("parameter-data-invalid", f"data must have whole numbers from {least} to {most}")
        return np.array(data, np.int64 if signed else np.uint64).astype(dtype)

    def _floats(self, data: list[Any], dtype: DType) -> Array:
        largest, width = _largest(dtype), 8 * dtype.itemsize
        found = [_number(element, largest, width) for element in data]
        if None in found:
            self._refuse("parameter-data-invalid", f"data must have numbers that {dtype.name} holds")
        numbers = np.array(found, np.float64)
        with np.errstate(all="ignore"):
            # numpy makes a number beyond the type's range infinite without an error.
            array = numbers.astype(dtype)
            if np.any(np.isfinite(numbers) != np.isfinite(array.astype(np.float64))):
                self._refuse("parameter-data-invalid", f"data has values that {dtype.name} cannot hold")
        view = array.view(_unsigned(dtype))
        for index, element in enumerate(data):
            if isinstance(element, str) and element not in _SPECIAL:
                view[index] = int(element, 16)
        return array


def _number(element: object, largest: float, width: int) -> float | None:
    """Return an element as a float, and special bits as NaN; ``None`` if it is not a number up to ``largest``."""
    if isinstance(element, str):
        if _BITS.fullmatch(element) and int(element, 16) < 2**width:
            return math.nan
        return _SPECIAL.get(element)
    if isinstance(element, bool) or not isinstance(element, (int, float)):
        return None
    # BSON has NaN as a number, JSON only as text.
    return float(element) if abs(element) <= largest or element != element else None


def _largest(dtype: DType) -> float:
    """Return the largest finite value of a float type."""
    if dtype.name in _FLOATS:
        return float(np.finfo(dtype.name).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype.name).max)  # type: ignore[no-untyped-call]  # ml_dtypes has no annotation for it
