"""The elements of a constant as text, and the part of the model that it comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from mlfbuild.library import DIGEST_LENGTH
from mlfbuild.library.cgen import array_lines, hexadecimal_lines
from mlfbuild.native.graph import Array, Graph, Node, Tensor


class Numbers:
    """The elements of an array as an initialiser; its text, which is much larger, is only made when it is written."""

    def __init__(self, values: Array, again: Callable[[], Array] | None = None, *, hexadecimal: bool = False) -> None:
        self._again = again or (lambda: values)
        self._lines = hexadecimal_lines if hexadecimal else array_lines
        # Constants of megabytes are compared with each other; a checksum is enough to tell most apart, and equal ones
        # are compared byte by byte.
        self._hash = hash((values.dtype.str, crc32(bytes_of(values))))

    def pieces(self) -> Iterator[str]:
        """Yield the text, many lines at a time."""
        yield "{\n"
        for lines in self._lines(self._again()):
            yield f"{lines}\n"
        yield "}"

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same bytes and type, and thus the same text."""
        if not isinstance(other, Numbers) or self._hash != other._hash:
            return False
        own, its = self._again(), other._again()
        return own.dtype == its.dtype and bytes_of(own) == bytes_of(its)

    def __hash__(self) -> int:
        return self._hash


def bytes_of(values: Array) -> memoryview:
    """Return the bytes of ``values`` in memory order."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


@dataclass(frozen=True, eq=False)
class Origin:
    """The part of the model that a constant is made of, regardless of the layout that its kernel reads."""

    tensor: str
    """The first constant tensor that the operator reads; the name of the operator if it reads none."""
    tensors: tuple[Tensor, ...]
    """All tensors whose elements or quantisation determine the constant."""

    @classmethod
    def of_node(cls, graph: Graph, node: Node) -> Origin:
        """Return the origin of the constants of ``node``."""
        tensors = (*graph.inputs_of(node).present, *graph.outputs_of(node))
        return cls(next((tensor.name for tensor in tensors if tensor.constant), node.name), tensors)

    def digest(self) -> str:
        """Return a hash of the elements and the quantisation; it is equal in every build of the same layer."""
        found = hashlib.sha256()
        for tensor in self.tensors:
            # Not the shape of images, which is another in chains and for other sizes of the input.
            found.update(repr((tensor.dtype, tensor.quantization, tensor.constant and tensor.shape)).encode())
            if tensor.data is not None:
                found.update(bytes_of(tensor.data))
        return found.hexdigest()[:DIGEST_LENGTH]
