"""ETHOS_U: the part of a network that an Arm Ethos-U computes, by a command stream of Arm's Vela."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

_TYPES = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32)


class EthosU(Operator):
    """A call of the NPU. Its tensors are at offsets of one working memory."""

    number: int
    """Of the calls of the network."""
    of: int
    """The number of calls of the network."""
    payload: bytes
    """The payload of the driver: its actions, with the command stream."""
    weights: bytes
    """The constants that the stream reads, compressed by Vela."""
    weights_number: int | None
    """Of the constants of the network; ``None`` if all calls read the same."""
    scratch: int
    """Bytes of the working memory."""
    fast: int
    """Bytes of the NPU's own memory, 0 if there is none: the working memory then takes its place."""
    input_offsets: tuple[int, ...]
    output_offsets: tuple[int, ...]
    stores: tuple[tuple[int, int], ...]
    """(start, end) in the working memory: the stream writes nothing outside of them."""

    name = "ETHOS_U"
    """Not an operator of TFLite; Vela writes the custom operator ``ethos-u``."""
    types = _TYPES

    @property
    def stream_file(self) -> str:
        """The name of the file with the payload."""
        return "commands.bin" if self.of == 1 else f"commands{self.number}.bin"

    @property
    def weights_file(self) -> str:
        """The name of the file with the constants."""
        return "weights.bin" if self.weights_number is None else f"weights{self.weights_number}.bin"

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        for tensors, offsets in ((inputs.present, self.input_offsets), (outputs, self.output_offsets)):
            if len(tensors) != len(offsets):
                return f"has {len(tensors)} tensors for {len(offsets)} offsets"
            for tensor, offset in zip(tensors, offsets, strict=True):
                if tensor.dtype not in _TYPES:
                    return f"{tensor} must be int8, uint8, int16 or int32"
                if not 0 <= offset <= self.scratch - tensor.size:
                    return f"{tensor} at byte {offset} is outside the working memory of {self.scratch} bytes"
        return None if outputs else "writes nothing"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        raise UnsupportedModelError(
            "npu-has-no-reference",
            place=self.name,
            reason="only an NPU computes its command stream",
            hint="use the network that Vela read",
        )
