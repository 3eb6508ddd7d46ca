"""Lay out the trained values of a network in a blob, and describe the structure that code and blob have in common.

A ``BlobBuilder`` works while the calls are linked: each step has a block in the blob, whose offset is a literal in the
code. The text of the structure has a line for each step. Its hash is the id of the structure, and with it ``mlfbuild
parameters`` names the first operator that differs::

    blob 1 for cortex-m4
    kernels 6f0c1f0b41a3...
    input int8[1,49,10,1] with a scale
    0 CONV_2D int8[1,49,10,1], int8[64,10,4,1], int32[64] -> int8[1,25,5,64]; code 5b1f; values int32[2] at 144, ...
    size 23568

A line names the C that the step calls by a hash of its text and of its fixed constants; that of the kernels does not
count comments and spaces. So another version of mlfbuild has the same structure, unless its code reads values in
another way, or has other sizes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlfbuild.core import sha256
from mlfbuild.library import BLOB_HEADER, ParameterBlob
from mlfbuild.library.cgen import aligned
from mlfbuild.native.graph import Tensor
from mlfbuild.native.kernels import kernel_files
from mlfbuild.native.lowering import Constant, KernelCall, ParameterBlock
from mlfbuild.native.printing.interface import Interface, Port

_NOT_CODE = re.compile(rb"/\*.*?\*/|\s+", re.DOTALL)
_QUANTIZATION = struct.Struct("<fi")
"""A ``struct mlf_<model>_quantization``."""


def scaled_ports(interface: Interface) -> tuple[Port, ...]:
    """Return the inputs and outputs with a scale, each once, in the order of their quantisations in a blob."""
    ports = {port.member: port for port in reversed(interface.ports)}.values()
    return tuple(port for port in reversed(list(ports)) if port.info.scale is not None)


@dataclass(frozen=True)
class Blob:
    """The places of the values of a network in its blob."""

    interface: Interface
    size: int
    """Bytes without test vectors."""
    values: tuple[tuple[int, Constant], ...]
    """(offset in the blob, constant)."""
    structure: str
    """The text whose hash is the id of the structure."""

    @property
    def structure_id(self) -> str:
        """The SHA-256 of ``structure``."""
        return sha256(self.structure.encode())

    @property
    def vector(self) -> int:
        """Bytes of a test vector: each input, then each output."""
        return sum(aligned(port.tensor.size) for port in self.interface.ports)

    def data(self, model_id: str) -> bytes:
        """Return the blob of the model file with the SHA-256 ``model_id``, as it is linked."""
        infos = [port.info for port in scaled_ports(self.interface)]
        ends = b"".join(_QUANTIZATION.pack(np.float32(info.scale), info.zero_point) for info in infos)
        content = bytearray(self.size - BLOB_HEADER)
        content[: len(ends)] = ends
        for offset, constant in self.values:
            data = constant.content()
            content[offset - BLOB_HEADER : offset - BLOB_HEADER + len(data)] = data
        return ParameterBlob(self.structure_id, model_id, bytes(content)).data()


class BlobBuilder:
    """Collects the values of the steps while their calls are linked."""

    def __init__(self, interface: Interface) -> None:
        self._interface = interface
        self._size = BLOB_HEADER + aligned(_QUANTIZATION.size * len(scaled_ports(interface)))
        self._values: list[tuple[int, Constant]] = []
        self._steps: list[str] = []
        self._tensors: dict[str, int] = {}

    def add(self, block: ParameterBlock) -> int:
        """Add the values of a call, and return their offset in the blob."""
        offset = self._size
        self._values += [(offset + at, constant) for at, constant in block.parts]
        self._size += block.size
        return offset

    def add_tensor(self, name: str, constant: Constant) -> int:
        """Add a constant tensor that a kernel reads like any other, and return its offset."""
        if name not in self._tensors:
            self._tensors[name] = self.add(ParameterBlock(((0, constant),), aligned(constant.space)))
        return self._tensors[name]

    def add_state(self, state: Tensor, initial: Constant) -> int:
        """Add the initial value of a state, of which all bytes are equal if it has one byte; return its offset."""
        self._steps.append(f"{len(self._steps)} state {_shape(state)}; initial uint8_t[{initial.size}]")
        return self.add(ParameterBlock(((0, initial),), aligned(initial.space)))

    def note(self, comment: str, call: KernelCall | None) -> None:
        """Note the next step, which ``comment`` describes: it is ``call``, or needs no code."""
        line = f"{len(self._steps)} {comment}"
        if call is not None:
            declared = "\n".join(f"{each.c_type}{each.name}" for each in call.parameters)
            fixed = [each.argument.content() for each in call.parameters if isinstance(each.argument, Constant)]
            text = "\n".join((declared, *call.body)).encode()
            line += f"; {call.kernel}, code {sha256(text + b''.join(fixed))[:16]}"
            blocks = [each.argument for each in call.parameters if isinstance(each.argument, ParameterBlock)]
            line += "".join(f"; {text}" for block in blocks for text in _described(block))
        self._steps.append(line)

    def blob(self, cpu: str, headers: tuple[str, ...]) -> Blob:
        """Return the layout for code for ``cpu`` that includes the kernels ``headers``."""
        lines = "\n".join([*self._lines(cpu, headers), ""])
        return Blob(self._interface, self._size, tuple(self._values), lines)

    def _lines(self, cpu: str, headers: tuple[str, ...]) -> Iterator[str]:
        kernels = (file.path.name.encode() + _NOT_CODE.sub(b" ", file.data) for file in kernel_files(headers))
        yield f"blob 1 for {cpu}"
        yield f"kernels {sha256(b''.join(kernels))}"
        for side, ports in (("input", self._interface.inputs), ("output", self._interface.outputs)):
            for port in ports:
                yield f"{side} {_shape(port.tensor)}{'' if port.info.scale is None else ' with a scale'}"
        yield from self._steps
        yield f"size {self._size}"


def _described(block: ParameterBlock) -> Iterator[str]:
    for at, constant in block.parts:
        count = "" if constant.length is None else f"[{constant.space // (constant.size // constant.length)}]"
        yield f"{constant.name} {constant.c_type}{count} at +{at}"


def _shape(tensor: Tensor) -> str:
    return f"{tensor.dtype.value}[{','.join(map(str, tensor.shape))}]"
