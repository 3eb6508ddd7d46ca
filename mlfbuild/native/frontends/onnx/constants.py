"""Constants by name: arrays, and quantised weights in the form that the file stores."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.affine import Quantized
from mlfbuild.native.graph import Array


class Constants:
    """Arrays by name; quantised arrays are converted to real numbers only on request."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)
        self._quantized: dict[str, Quantized] = {}

    def add(self, name: str, data: Array) -> None:
        """Add the constant ``name``."""
        self._arrays[name] = data

    def add_quantized(self, name: str, data: Quantized) -> None:
        """Add the constant ``name``, the real numbers that ``data`` represents."""
        self._quantized[name] = data

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._quantized

    def get(self, name: str) -> Array | None:
        """Return the elements of ``name`` in ONNX's type, ``None`` if it is not constant."""
        found = self._quantized.get(name)
        return self._arrays.get(name) if found is None else found.real

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of ``name``, ``None`` if it is not constant."""
        quantized, array = self._quantized.get(name), self._arrays.get(name)
        if quantized is not None:
            return quantized.stored.shape
        return None if array is None else array.shape

    def quantized(self, name: str) -> Quantized | None:
        """Return the quantised form of ``name``, ``None`` if it has none."""
        return self._quantized.get(name)
