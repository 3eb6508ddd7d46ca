"""Damage valid TFLite files: their bytes, or their tensors and operators."""

import math
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from tflite.TensorType import TensorType

from support.tflite_builder import Network
from support.tflite_copy import copy_of
from support.tflite_writer import OperatorSpec, TensorSpec

SIZES = (0, -1, 1, 2, 3, 5, 7, 8, 64, 127, 1000, 1 << 15, 1 << 16, (1 << 24) + 1, 1 << 30, (1 << 31) - 1, -(1 << 31))
SCALES = (
    0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 1e-45, 1e-38, 3e-39, 1e-20, 1e-7, 0.5, 1.0, 1.5, 1e7, 1e20, 3.4e38
)  # fmt: skip
ZERO_POINTS = (0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, -32768, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63))
INTEGERS = (*SIZES, 4, -2, -4, -5, 15, 255)
FLOATS = (0.0, -1.0, 1.0, 0.1, 1e-30, 1e30, math.nan, math.inf, -math.inf)
DTYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.UINT8, TensorType.INT64, TensorType.STRING,
    TensorType.BOOL, TensorType.INT16, TensorType.INT8, TensorType.FLOAT64, 77,
)  # fmt: skip


class ModelMutator:
    """Damages models; the same seed gives the same models."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def model(self, data: bytes) -> bytes:
        """Return the valid file ``data`` with one or more defects."""
        if self._random.random() < 0.25:
            return self.binary(data)
        network = copy_of(data)
        for _ in range(self._pick(1, 1, 1, 2, 3)):
            self._pick(
                self._shape, self._shape, self._affine, self._affine, self._tensor, self._content, self._options,
                self._options, self._operands, self._operator, self._ports,
            )(network)  # fmt: skip
        try:
            return network.build(network.outputs)
        except (TypeError, OverflowError):  # a number that does not fit its field
            return self.binary(data)

    def _pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def binary(self, data: bytes) -> bytes:
        """Change bytes and words, more often in the tables at both ends of a file than between them."""
        changed = bytearray(data)
        for _ in range(self._pick(1, 1, 2, 8)):
            near = self._random.randrange(min(len(changed), 4096))
            at = self._pick(near, len(changed) - 1 - near, self._random.randrange(len(changed)))
            change = self._random.randrange(4)
            if change == 0:
                changed[at] = self._random.randrange(256)
            elif change == 1:
                changed[at] ^= 1 << self._random.randrange(8)
            elif change == 2:
                at &= ~3
                word = struct.pack("<I", self._pick(*SIZES, *INTEGERS) & 0xFFFFFFFF)
                changed[at : at + 4] = word[: len(changed) - at]
            else:
                other = self._random.randrange(len(changed)) & ~3
                changed[at & ~3 : (at & ~3) + 4] = changed[other : other + 4]
        return bytes(changed[: self._pick(*[len(changed)] * 9, self._random.randrange(len(changed)))])

    def _any_tensor(self, network: Network) -> TensorSpec:
        """Return a tensor, more often one that an operator uses."""
        named = [index for operator in network.operators for index in (*operator.inputs, *operator.outputs)]
        known = [index for index in named if 0 <= index < len(network.tensors)]
        index = self._pick(*known, self._random.randrange(len(network.tensors)))
        return network.tensors[index]

    def _any_operator(self, network: Network) -> OperatorSpec:
        operator: OperatorSpec = self._pick(*network.operators)
        return operator

    def _shape(self, network: Network) -> None:
        """Change a dimension of one tensor or of all tensors of that shape, or the number of dimensions."""
        tensor = self._any_tensor(network)
        shape = list(tensor.shape)
        change = self._random.randrange(5)
        if change == 0 or not shape:
            shape.insert(self._random.randint(0, len(shape)), self._pick(1, 1, *SIZES))
        elif change == 1:
            del shape[self._random.randrange(len(shape))]
        elif change == 2:
            self._random.shuffle(shape)
        else:
            at = self._random.randrange(len(shape))
            shape[at] = self._pick(*SIZES, shape[at] + 1, shape[at] - 1, shape[at] * 2)
        alike = [other for other in network.tensors if other.shape == tensor.shape]
        for other in self._pick([tensor], alike):
            other.shape = list(shape)

    def _affine(self, network: Network) -> None:
        tensor = self._any_tensor(network)
        change = self._random.randrange(6)
        if change == 0:
            tensor.scales = [self._pick(*SCALES) for _ in range(self._pick(1, 2, len(tensor.scales)))]
        elif change == 1:
            tensor.zero_points = [self._pick(*ZERO_POINTS) for _ in range(self._pick(1, len(tensor.zero_points)))]
        elif change == 2:
            tensor.scales, tensor.zero_points = [], []
        elif change == 3:
            tensor.axis = self._pick(0, 1, 2, 3, 4, -1, 1 << 30)
            tensor.scales = [0.5] * (self._pick(*tensor.shape, 2) % 100)
            tensor.zero_points = [0] * self._pick(1, len(tensor.scales))
        elif change == 4 and tensor.scales:
            tensor.scales[self._random.randrange(len(tensor.scales))] = self._pick(*SCALES)
        elif tensor.scales:
            factor = self._pick(1e-3, 0.1, 0.5, 2.0, 1e3, 1e6, 1e-9)
            tensor.scales = [min(scale * factor, 3.4e38) for scale in tensor.scales]

    def _tensor(self, network: Network) -> None:
        tensor = self._any_tensor(network)
        change = self._random.randrange(6)
        if change == 0:
            tensor.is_variable = True
        elif change == 1:
            tensor.is_sparse = True
        elif change == 2:
            tensor.has_custom_quantization = True
        elif change == 3:
            tensor.signature = [self._pick(-1, *tensor.shape, 0) for _ in tensor.shape]
        elif change == 4:
            tensor.name = self._pick("", b"\xff\xfe", "a\nb", "x" * 1000, "\u202e", self._any_tensor(network).name)
        else:
            tensor.type = self._pick(*DTYPES)

    def _content(self, network: Network) -> None:
        """Change or remove the content of a constant, or add content to a computed tensor."""
        constants = [tensor for tensor in network.tensors if tensor.content]
        change = self._random.randrange(6)
        tensor = self._pick(*constants) if constants and change else self._any_tensor(network)
        if change == 0:
            tensor.content = bytes(min(max(math.prod(tensor.shape), 1), 1 << 16) * self._pick(1, 1, 4))
        elif change == 1:
            tensor.content = tensor.content[: self._random.randrange(len(tensor.content) + 1)]
        elif change == 2:
            tensor.external = (self._pick(0, 8, 1 << 31, 1 << 62), self._pick(0, 4, 1 << 31, (1 << 64) - 1))
        elif change == 3:
            tensor.buffer = self._pick(0, 1, self._random.randrange(len(network.tensors) + 2), 1 << 31)
        else:
            tensor.content = self._numbers(tensor)

    def _numbers(self, tensor: TensorSpec) -> bytes:
        width = {TensorType.INT32: "<i4", TensorType.INT64: "<i8", TensorType.FLOAT32: "<f4"}.get(tensor.type, "i1")
        size = int(width[-1])
        values = np.frombuffer(tensor.content[: len(tensor.content) // size * size], width).copy()
        with np.errstate(over="ignore"):
            for _ in range(self._pick(1, 1, 2, len(values)) if len(values) else 0):
                at = self._random.randrange(len(values))
                choices = FLOATS if width == "<f4" else (int(values[at]) + 1, int(values[at]) - 1, *INTEGERS)
                values[at] = np.array(self._pick(*choices)).astype(width)
        return values.tobytes()

    def _options(self, network: Network) -> None:
        operator = self._any_operator(network)
        if self._random.random() < 0.1:
            operator.options_kind = self._pick(None, "SoftmaxOptions", "Conv2DOptions", "ReshapeOptions")
            operator.options = {}
        elif operator.options:
            name = self._pick(*operator.options)
            old = operator.options[name]
            if isinstance(old, bool):
                operator.options[name] = not old
            elif isinstance(old, float):
                operator.options[name] = self._pick(*FLOATS)
            elif name in {"Padding", "FusedActivationFunction", "WeightsFormat", "InDataType", "OutDataType", "Mode"}:
                operator.options[name] = self._pick(0, 1, 2, 3, 4, 5, 77, -1)
            else:
                operator.options[name] = self._pick(*INTEGERS, old + 1, old - 1)

    def _operands(self, network: Network) -> None:
        """Change the tensors that an operator reads and writes."""
        operator = self._any_operator(network)
        side = self._pick(operator.inputs, operator.inputs, operator.outputs)
        every = range(-1, len(network.tensors) + 1)
        near = [*operator.inputs, *operator.outputs, *network.inputs, *network.outputs]
        change: int = self._random.randrange(6)
        if change == 0 and side:
            del side[self._random.randrange(len(side))]
        elif change == 1:
            side.insert(self._random.randint(0, len(side)), self._pick(-1, *near))
        elif change == 2:
            self._random.shuffle(side)
        elif change == 3:
            side.clear()
        elif side:
            side[self._random.randrange(len(side))] = self._pick(*near, self._pick(*every), self._pick(-1, -2, 1 << 30))

    def _operator(self, network: Network) -> None:
        """Change the type of an operator, or remove, repeat or swap operators."""
        at = self._random.randrange(len(network.operators))
        change = self._random.randrange(4)
        if change == 0:
            network.operators[at].code = self._pick(self._random.randrange(160), 32, 1000)
            network.operators[at].old_code = self._pick(None, None, None, 0, -1, 127, self._random.randrange(128))
        elif change == 1 and len(network.operators) > 1:
            del network.operators[at]
        elif change == 2:
            network.operators.insert(at, network.operators[at])
        else:
            self._random.shuffle(network.operators)

    def _ports(self, network: Network) -> None:
        """Change the inputs and outputs of the model."""
        side = self._pick(network.inputs, network.outputs)
        change: Callable[[], Any] = self._pick(
            side.clear,
            lambda: side.append(self._random.randrange(len(network.tensors))),
            lambda: side.extend(self._pick(network.inputs, network.outputs, [0, 0])),
            lambda: side.append(self._pick(-1, len(network.tensors), 1 << 30)),
            lambda: side and side.pop(),
        )
        change()
