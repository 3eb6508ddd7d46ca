"""int8 ADD and SUB as one linear function, if one equals the reference for every pair of inputs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import (
    Graph,
    Node,
    Operands,
    Rescale,
    Tensor,
    activation_range,
    integer_range,
)
from mlfbuild.native.graph.bases import binary_tensors
from mlfbuild.native.graph.ops import Add, Addition, Sub
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall
from mlfbuild.native.lowering.common.binary import binary_quantization, sum_rescales
from mlfbuild.native.lowering.common.broadcast import in_place
from mlfbuild.native.lowering.common.parameters import constant, reads, writes

Int64Array = npt.NDArray[np.int64]

STORED = np.arange(-128, 128, dtype=np.int64)
# Nearest first, so that the smallest change that works is taken, the same in every build.
_NEAR = sorted(itertools.product(range(-2, 3), repeat=2), key=lambda pair: abs(pair[0]) + abs(pair[1]))
"""Offsets from the nearest factors that are tried, in this order."""

_HALF = 16
"""Bits of a sum that the kernel for Helium leaves out at once."""
_FARTHEST = np.int64(1) << 62


@dataclass(frozen=True)
class _Line:
    """``(first * a + second * b + offset) >> shift``."""

    first: int
    second: int
    offset: int
    shift: int


def lower_add_linear(graph: Graph, node: Node, operator: Addition, *, helium: bool = False) -> KernelCall | str:
    """Return the call of ``mlf_add_linear_int8``; a reason if shapes differ or no linear function is exact.

    With ``helium``, it is that of ``mlf_add_linear_int8_mve``. The kernel computes
    ``(first * a + second * b + offset) >> shift`` and a clamp. All 65,536 pairs of inputs are compared with the
    reference.
    """
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if first.shape != second.shape:
        return "inputs have different shapes"
    line = _find_line(operator, first, second, output)
    if line is None:
        return NOT_EXACT
    if helium and line.shift < _HALF:
        return f"is for a shift of at least {_HALF} bits"
    minimum, maximum = activation_range(operator.activation, output)
    fields = {"first": line.first, "second": line.second, "offset": line.offset}
    arguments = f"numbers, {line.shift}, {minimum}, {maximum}"
    numbers = Constant.struct("numbers", "mlf_add_linear", fields)
    suffix = "_mve" if helium else ""
    kernel, header = f"mlf_add_linear_int8{suffix}", f"add_linear{suffix}.h"
    return addition_call(kernel, header, numbers, arguments, (first, second, output))


def lower_add_either(graph: Graph, node: Node, operator: Add) -> KernelCall | str:
    """Return the call of ``mlf_add_either_int8``; a reason if shapes differ or a factor is not below 1.

    TensorFlow Lite Micro refuses such factors: an input's scale would be half a million times that of the output.
    """
    first, second, output = tensors = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if first.shape != second.shape:
        return "inputs have different shapes"
    rescales = sum_rescales(operator, tensors)
    if any(isinstance(each, Rescale) and each.shift > 0 for each in rescales.values()):
        return "a factor is not below 1"
    # The linear function of the kernel saturates, so it serves no narrower clamp.
    saturates = activation_range(operator.activation, output) == integer_range(output.dtype)
    line = (_find_line(operator, first, second, output) if saturates else None) or _Line(0, 0, 0, 0)
    general = binary_quantization("mlf_add_quantization", rescales, operator, tensors)
    fields = {"first": line.first, "second": line.second, "offset": line.offset, "shift": line.shift}
    linear = Constant.struct("numbers", "mlf_add_either", fields)
    numbers = replace(linear, size=linear.size + general.size, words=linear.words + general.words)
    return addition_call("mlf_add_either_int8", "add_either.h", numbers, "numbers", tensors)


def addition_call(
    kernel: str, header: str, numbers: Constant, arguments: str, tensors: tuple[Tensor, Tensor, Tensor]
) -> KernelCall:
    """Return the call of ``kernel`` with ``arguments``, the number of elements, both inputs and the output."""
    first, second, output = tensors
    return KernelCall("add", header, (
        constant(numbers), reads("first", first), reads("second", second), writes("output", output)
    ), (
        f"{kernel}({arguments}, {output.elements}, first, second, output);",
    ), in_place((first, second), output))  # fmt: skip


def stored_sums(operator: Addition, first: Tensor, second: Tensor, output: Tensor) -> Int64Array:
    """Return the stored outputs for all pairs of stored inputs, int64 [256, 256]."""
    stored = STORED.astype(np.int8)
    (outputs,) = operator.reference(Operands((first, second)), Operands((stored[:, None], stored[None, :])), (output,))
    return outputs.astype(np.int64)


def _find_line(operator: Addition, first: Tensor, second: Tensor, output: Tensor) -> _Line | None:
    """Return a function that equals the reference for every pair of inputs and needs at most 32 bits, or ``None``."""
    wanted = stored_sums(operator, first, second, output)
    minimum, maximum = activation_range(operator.activation, output)
    factors = [_scale(tensor) / _scale(output) for tensor in (first, second)]
    # SUB is an addition with a negative factor.
    factors[1] *= -1 if isinstance(operator, Sub) else 1
    constant = output.affine.zero_point - factors[0] * first.affine.zero_point - factors[1] * second.affine.zero_point
    # A little more than 128, for the factors beside the nearest ones.
    largest = 129 * (abs(factors[0]) + abs(factors[1])) + abs(constant) + 1
    # As large as possible: each bit of the shift is one more bit of precision for the factors.
    shift = 31 - math.ceil(math.log2(largest))  # the largest for which no intermediate sum overflows
    nearest = [round(factor * 2.0**shift) for factor in factors] if 0 < shift < 31 else [0, 0]
    # No shift leaves enough bits for both factors.
    if 0 in nearest:
        return None
    for a, b in _NEAR:
        # The offsets with which the function rounds each pair as the reference does; clamped pairs have one bound.
        sums = STORED[:, None] * (nearest[0] + a) + STORED * (nearest[1] + b)
        least = np.where(wanted > minimum, (wanted << shift) - sums, -_FARTHEST).max()
        greatest = np.where(wanted < maximum, ((wanted + 1) << shift) - 1 - sums, _FARTHEST).min()
        # The middle of the interval, which is farthest from both of its ends.
        offset = (least + greatest) // 2
        # The kernel adds the second product to the offset first, so that this sum must fit as well.
        partial = np.abs(STORED * (nearest[1] + b) + offset).max()
        if least <= greatest and max(partial, np.abs(sums + offset).max()) < 1 << 31:
            return _Line(nearest[0] + a, nearest[1] + b, int(offset), shift)
    return None


def _scale(tensor: Tensor) -> float:
    (scale,) = tensor.affine.scales
    return scale
