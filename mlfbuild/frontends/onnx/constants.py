"""What is known before the network runs, by name: arrays, and quantised weights as the file stores them."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.frontends.onnx.affine import Quantized
from mlfbuild.graph import Array


class Constants:
    """Arrays by name; quantised ones stay integers until a caller requests the real numbers."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)
        self._quantized: dict[str, Quantized] = {}

    def add(self, name: str, data: Array) -> None:
        """Make ``name`` known."""
        self._arrays[name] = data

    def add_quantized(self, name: str, data: Quantized) -> None:
        """Make ``name`` known as the real numbers that ``data`` means."""
        self._quantized[name] = data

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._quantized

    def get(self, name: str) -> Array | None:
        """Return the elements of ``name`` in ONNX's type, ``None`` if they are not known."""
        found = self._quantized.get(name)
        return self._arrays.get(name) if found is None else found.real

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of ``name``, ``None`` if it is not known."""
        quantized, array = self._quantized.get(name), self._arrays.get(name)
        if quantized is not None:
            return quantized.stored.shape
        return None if array is None else array.shape

    def quantized(self, name: str) -> Quantized | None:
        """Return the integers behind the real numbers ``name``, if there are some."""
        return self._quantized.get(name)
