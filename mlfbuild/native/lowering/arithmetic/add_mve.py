"""ADD and SUB of int8 tensors of equal shape on Helium (MVE)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph import (
    SUM_LEFT_SHIFT,
    Graph,
    Node,
    Tensor,
    activation_range,
    high_multiply,
)
from mlfbuild.native.graph.bases import binary_tensors
from mlfbuild.native.graph.ops import Addition, Sub
from mlfbuild.native.lowering.arithmetic.add_linear import STORED, Int64Array, addition_call, stored_sums
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall


@dataclass(frozen=True)
class _Numbers:
    """The fields of a ``struct mlf_add_mve``; inputs are (factor, offset, multiplier)."""

    inputs: tuple[tuple[int, int, int], tuple[int, int, int]]
    multiplier: int
    shift: int
    zero_point: int
    minimum: int
    maximum: int

    def outputs(self, *, away: bool) -> Int64Array:
        """Return the kernel's outputs for all pairs of inputs: int64 [256, 256]."""
        # Exactly what the kernel does: a 32-bit product with VQRDMULH for each input, then one for the sum.
        first, second = (
            high_multiply(STORED * factor + offset, multiplier) for factor, offset, multiplier in self.inputs
        )
        total = high_multiply(first[:, None] + second, self.multiplier)
        # VRSHL rounds a half up, the reference away from zero: one less before the shift.
        total += np.where(away & (total < 0), -1, 0)
        shifted = (total + (1 << (-self.shift - 1))) >> -self.shift
        return np.asarray(np.clip(shifted + self.zero_point, self.minimum, self.maximum), np.int64)


def lower_add_mve(graph: Graph, node: Node, operator: Addition) -> KernelCall | str:
    """Return the call of ``mlf_add_int8_mve``; a reason if shapes differ or the kernel is not exact."""
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if first.shape != second.shape:
        return "inputs have different shapes"
    numbers = _numbers(operator, first, second, output)
    expected = stored_sums(operator, first, second, output)
    # The cheaper form first: without the correction for negative numbers, which is exact after a RELU, for example.
    away = next((away for away in (False, True) if numbers and (numbers.outputs(away=away) == expected).all()), None)
    if numbers is None or away is None:
        return NOT_EXACT
    arguments = f"numbers, mlf_add_{'right' if away else 'relu'}, {int(away)}"
    return addition_call("mlf_add_int8_mve", "add_mve.h", _constant(numbers), arguments, (first, second, output))


def _numbers(operator: Addition, first: Tensor, second: Tensor, output: Tensor) -> _Numbers | None:
    """Return the numbers of a kernel that rounds each input once; ``None`` if they do not fit in 32 bits."""
    rescales = operator.numbers(first, second, output)
    bits = SUM_LEFT_SHIFT[output.dtype]
    left = [bits + rescale.shift for rescale in rescales.inputs]
    # The left shift and the power of two of the factor become one exact product; only the multiplication rounds.
    if min(left) < 0 or max(left) > bits or rescales.output.shift >= 0:
        return None
    # The sign is part of the factor, so that SUB needs no kernel of its own.
    signs = (1, -1 if isinstance(operator, Sub) else 1)
    factors = [sign << shift for sign, shift in zip(signs, left, strict=True)]
    a, b = (
        # The zero point is part of the offset: VMLAS multiplies by the factor and adds it in one instruction.
        (factor, -tensor.affine.zero_point * factor, rescale.multiplier)
        for factor, tensor, rescale in zip(factors, (first, second), rescales.inputs, strict=True)
    )
    clamp = activation_range(operator.activation, output)
    return _Numbers((a, b), rescales.output.multiplier, rescales.output.shift, output.affine.zero_point, *clamp)


def _constant(numbers: _Numbers) -> Constant:
    (first, second), fields = numbers.inputs, {}
    for place, value in enumerate(("factor", "offset", "multiplier")):
        fields[f"first_{value}"], fields[f"second_{value}"] = first[place], second[place]
    fields.update(
        output_multiplier=numbers.multiplier,
        shift=numbers.shift,
        zero_point=numbers.zero_point,
        minimum=numbers.minimum,
        maximum=numbers.maximum,
    )
    return Constant.struct("numbers", "mlf_add_mve", fields)
