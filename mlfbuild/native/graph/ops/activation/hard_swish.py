"""HARD_SWISH."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import Unary, Whole
from mlfbuild.native.graph.fixed_point import shift_right
from mlfbuild.native.graph.quantize import Rescale, quantize_multiplier
from mlfbuild.native.graph.tensors import Array, Tensor

_LEAST, _GREATEST = -(1 << 15), (1 << 15) - 1


class HardSwish(Unary):
    """x * min(max(x + 3, 0), 6) / 6, for int8 in 16-bit fixed point."""

    name = "HARD_SWISH"

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        to_output, to_gate = self._rescales(source, output)
        # A difference from the zero point has 9 bits with its sign, so that 7 more fill an int16.
        fine = value << 7
        gate = fine
        if to_gate.shift > 0:
            # As LiteRT's reference/hard_swish.h: the last bit of the left shift is made after the multiplication,
            # because only then a value that saturates is certainly beyond the range of the gate.
            gate = _saturated(gate << (to_gate.shift - 1))
        gate = _multiply(gate, to_gate.multiplier)
        if to_gate.shift > 0:
            gate = _saturated(gate << 1)
        elif to_gate.shift < 0:
            gate = shift_right(gate, -to_gate.shift)
        gate = (gate + (1 << 15)) >> 1  # from [-1, 1] to [0, 1]
        product = gate * _multiply(fine, to_output.multiplier)
        # SaturatingDoublingHighMul of hard_swish.h divides in C, that is, towards zero. Rounding to nearest would
        # differ, because the shift that follows also rounds.
        towards_zero = np.where(product < 0, -(-product >> 15), product >> 15)
        return shift_right(towards_zero, -to_output.shift) + output.affine.zero_point

    def _rescales(self, source: Tensor, output: Tensor) -> tuple[Rescale, Rescale]:
        """Return the 16-bit rescalings to the output's scale and to 3 / 2**15, computed in float32."""
        with np.errstate(over="ignore", under="ignore"):
            # 128 is the shift by 7 bits above, which the factor has to undo.
            fine = np.float32(source.affine.scale) / np.float32(128)
            to_output = _short(float(fine / np.float32(output.affine.scale)))
            # 3 is half the length of the gate's ramp from -3 to 3, which becomes -1 to 1 in Q0.15.
            to_gate = _short(float(fine / np.float32(3 / 32768)))
        if to_output.shift > 0:
            raise OverflowError(f"the output's scale {output.affine.scale:g} is too small for {source.affine.scale:g}")
        if to_output.shift < -15:  # TensorFlow Lite Micro shifts 16-bit values, and its result is then only a sign
            raise OverflowError(f"the output's scale {output.affine.scale:g} is too large for {source.affine.scale:g}")
        return to_output, to_gate

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.asarray(value * np.clip(value + 3, 0, 6) / 6)


def _short(real: float) -> Rescale:
    """Return the factor ``real`` with a multiplier of 16 bits."""
    rescale = quantize_multiplier(real)
    # A multiplier that rounds up to 2**15 does not fit int16, and is clamped as in LiteRT's
    # DownScaleInt32ToInt16Multiplier.
    return Rescale(min((rescale.multiplier + (1 << 15)) >> 16, _GREATEST), rescale.shift)


def _multiply(x: Whole, multiplier: int) -> Whole:
    """Return ``x * multiplier / 2**15`` rounded to nearest, a half up."""
    product = x * multiplier
    # 1 - 2**14 and a division towards zero round -0.5 up to 0, which a nudge of -2**14 would round to -1.
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return _saturated(np.where(nudged >= 0, nudged >> 15, -(-nudged >> 15)))


def _saturated(x: Whole) -> Whole:
    return np.asarray(np.clip(x, _LEAST, _GREATEST), np.int64)
