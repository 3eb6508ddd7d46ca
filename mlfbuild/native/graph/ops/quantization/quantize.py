"""QUANTIZE (float32 to integers, or integers to another scale or type) and DEQUANTIZE (integers to float32).

DYNAMIC_QUANTIZE also computes the scale and the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import centred, finish_quantized
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.quantize import Rescale, integer_range, requantize_rescale
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

STORED = (DType.INT8, DType.INT16, DType.UINT8)
"""The types that can be quantised."""

_UNKNOWN = ({DType.FLOAT32, DType.INT32}, {DType.INT32})
"""Types that no runtime converts to each other."""


class Quantize(Single):
    """Converts numbers to the output's type, scale and zero point.

    uint8 is converted only from and to int8, int32 only from and to int8 and int16. An int16 input may have a
    zero point, because the output of an int8 SOFTMAX has one.
    """

    in_float32: bool = field(default=False, repr=False)
    """Whether int8 is brought to int8 in float32, like the inputs of LiteRT's CONCATENATION of uint8."""

    name = "QUANTIZE"
    types = (*STORED, DType.INT32, DType.FLOAT32)
    results = (*STORED, DType.INT32)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            self._check_source(source)
            or rules.arithmetic(output, types=self.results)
            or rules.affine(output)
            or self._check_pair(source, output)
            or rules.shape(output, source.shape)
            or (rules.computable(lambda: self._rescale(source, output)) if source.dtype is not DType.FLOAT32 else None)
        )

    def _rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling; raises ``OverflowError``, also if int32 would be shifted left and could wrap."""
        rescale = requantize_rescale(source, output)
        # Only an int32 has no spare bits for a left shift.
        if source.dtype is DType.INT32 and rescale.shift > 0:
            raise OverflowError(
                f"int32 with the scale {source.affine.scale:g} does not fit the scale {output.affine.scale:g}"
            )
        return rescale

    def _check_source(self, source: Tensor) -> str | None:
        if source.dtype is DType.INT16:
            return rules.affine(source, offset=True)
        if source.dtype is DType.INT32:
            reason = rules.affine(source)
            offset = reason is None and source.affine.zero_point != 0
            return f"{source} must have the zero point 0" if offset else reason
        return rules.arithmetic(source, types=self.types)

    def _check_pair(self, source: Tensor, output: Tensor) -> str | None:
        pair = {source.dtype, output.dtype}
        alone = DType.UINT8 in pair and DType.INT8 not in pair
        return f"cannot bring {source} to {output}" if alone or pair in _UNKNOWN else None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, output = inputs[0], outputs[0]
        if source.dtype is not DType.FLOAT32:
            if self.in_float32:
                return (self._requantized(source, values[0], output),)
            rescales = [requantize_rescale(source, output)]
            return (finish_quantized(centred(source, values[0]), rescales, output, Activation.NONE),)
        with np.errstate(over="ignore", invalid="ignore"):
            quotients = values[0] / np.float32(output.affine.scale)
            rounded = round_half_away(np.where(np.isnan(quotients), np.float32(0), quotients))  # NaN is stored as 0.0
        # In double: a large float32 plus the zero point would be rounded again, and an integer could overflow before
        # the clamp.
        stored = rounded.astype(np.float64) + output.affine.zero_point
        return (np.asarray(np.clip(stored, *integer_range(output.dtype)), output.dtype.numpy),)

    def _requantized(self, source: Tensor, value: Array, output: Tensor) -> Array:
        """Return int8 numbers, which LiteRT has as uint8, in the scale of ``output``; each step is in float32."""
        # Times the reciprocal, not a division, and a product plus a bias: each of them rounds, and LiteRT's results
        # have all of these roundings.
        scale = np.float32(source.affine.scale) * (np.float32(1) / np.float32(output.affine.scale))
        bias = np.float32(-(source.affine.zero_point + 128)) * scale
        products = (value.astype(np.float32) + np.float32(128)) * scale + bias
        stored = round_half_away(products).astype(np.float64) + output.affine.zero_point
        return np.asarray(np.clip(stored, *integer_range(output.dtype)), output.dtype.numpy)


class Dequantize(Single):
    """Converts integers to float32."""

    name = "DEQUANTIZE"
    types = STORED
    results = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, types=self.types)
            or rules.arithmetic(output, types=self.results)
            or rules.shape(output, source.shape)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source = inputs[0]
        with np.errstate(over="ignore"):
            # The product of two numbers of 24 bits is exact in double, and rounded once.
            return (np.asarray(centred(source, values[0]) * source.affine.scale, np.float32),)


class DynamicQuantize(Operator):
    """Converts float32 to int8 with a scale and a zero point, so that the range of the numbers and 0 is -128 to 127.

    It is ONNX's DynamicQuantizeLinear with integers that are lower by 128. If all numbers are 0, the scale is 1, as in
    onnxruntime. NaN has no effect on the range, and becomes the zero point.
    """

    name = "DYNAMIC_QUANTIZE"
    types = (DType.FLOAT32,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs.present) != 1 or len(outputs) != 3:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 1 and writes 3"
        source, (values, scale, zero_point) = inputs[0], outputs
        return (
            rules.arithmetic(source, types=self.types)
            or rules.typed(values, DType.INT8)
            or rules.typed(scale, DType.FLOAT32)
            or rules.typed(zero_point, DType.INT8)
            or rules.shape(values, source.shape)
            or rules.shape(scale, ())
            or rules.shape(zero_point, ())
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        value = values[0]
        with np.errstate(all="ignore"):
            # The range contains 0, so that the zero point is in the range of int8.
            least, greatest = np.fmin.reduce(value, axis=None, initial=0), np.fmax.reduce(value, axis=None, initial=0)
            scale = np.float32(1) if least == greatest else np.float32((greatest - least) / np.float32(255))
            # Half to even, as ONNX prescribes; QUANTIZE above rounds halves away from zero, as TFLite does.
            zero_point = np.rint(_number(np.clip(-least / scale, 0, 255)))
            stored = np.clip(_number(np.rint(value / scale)) + zero_point, 0, 255) - 128
        return stored.astype(np.int8), np.array(scale, np.float32), np.array(zero_point - 128).astype(np.int8)


def _number(values: Array) -> Array:
    """Return ``values`` with 0 in place of NaN; infinities stay, unlike with ``numpy.nan_to_num``."""
    return np.where(np.isnan(values), np.float32(0), values)
