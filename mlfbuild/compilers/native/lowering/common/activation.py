"""Make the clamps of fused activations, and the constants that quantised kernels share."""

from __future__ import annotations

from mlfbuild.cgen import floating, integer
from mlfbuild.compilers.native.lowering.call import Constant
from mlfbuild.graph import Activation, DType, Tensor, activation_range, float_activation_range, whole_activation_range


def zero_point(tensor: Tensor) -> int:
    """Return the zero point of an int8 tensor."""
    assert tensor.quantization is not None
    return tensor.quantization.zero_point


def quantization_constant(source: Tensor, output: Tensor, activation: Activation) -> Constant:
    """Return the ``struct mlf_quantization`` of an int8 operator."""
    minimum, maximum = activation_range(activation, output)
    fields = {
        "input_zero_point": zero_point(source),
        "output_zero_point": zero_point(output),
        "minimum": minimum,
        "maximum": maximum,
    }
    return Constant.struct("quantization", "mlf_quantization", fields)


def float_range_line(activation: Activation) -> str:
    """Return the local ``range`` of a float32 operator."""
    minimum, maximum = float_activation_range(activation)
    return f"const struct mlf_float_range range = {{{floating(minimum)}, {floating(maximum)}}};"


def range_line(activation: Activation, dtype: DType) -> str:
    """Return the local ``range`` of an operator whose elements are not quantised."""
    if dtype is DType.FLOAT32:
        return float_range_line(activation)
    minimum, maximum = whole_activation_range(activation, dtype)
    return f"const struct mlf_{dtype.value}_range range = {{{integer(minimum)}, {integer(maximum)}}};"


def suffix(dtype: DType) -> str:
    """Return the end of the names of kernels for ``dtype``."""
    return {DType.FLOAT32: "float", DType.BOOL: "uint8"}.get(dtype, dtype.value)
