"""Make the clamps of fused activations, and the constants that quantised kernels share."""

from __future__ import annotations

from mlfbuild.library.cgen import floating, integer
from mlfbuild.native.graph import (
    Activation,
    DType,
    Tensor,
    activation_range,
    float_activation_range,
    whole_activation_range,
)
from mlfbuild.native.lowering.call import Constant
from mlfbuild.native.lowering.trained import trained


def zero_point(tensor: Tensor) -> int:
    """Return the zero point of an int8 tensor."""
    return tensor.affine.zero_point


def bounds_text(activation: Activation, output: Tensor, c_type: str = "") -> tuple[str, str]:
    """Return the least and the greatest stored output as C text; not of float32.

    They are marked as trained, and passed as ``c_type``, if ``activation`` makes them depend on the output's scale.
    """
    minimum, maximum = activation_range(activation, output)
    if activation is Activation.NONE:
        return str(minimum), str(maximum)
    return trained(minimum, c_type), trained(maximum, c_type)


def quantization_constant(source: Tensor, output: Tensor, activation: Activation) -> Constant:
    """Return the ``struct mlf_quantization`` of an int8 operator.

    It has both zero points and the least and the greatest stored output after ``activation``. Raises ``OverflowError``
    if a bound does not fit; the check of the operator has refused such nodes.
    """
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
    """Return the local ``range`` of an operator whose elements are not quantised.

    A clamp to the type's own range is printed as well: compilers remove it, as its bounds are literals.
    """
    if dtype is DType.FLOAT32:
        return float_range_line(activation)
    minimum, maximum = whole_activation_range(activation, dtype)
    return f"const struct mlf_{dtype.value}_range range = {{{integer(minimum)}, {integer(maximum)}}};"


# C99, 6.5: an object may be accessed through the signed or the unsigned type that corresponds to its own.
_SIGNED = {DType.UINT16: DType.INT16, DType.UINT32: DType.INT32, DType.UINT64: DType.INT64}


def moved_as(dtype: DType) -> DType:
    """Return the type of the kernel that moves elements of ``dtype``; C also lets it access the unsigned type.

    For example, uint16 elements are moved by the kernel for int16: C99, 6.5, permits access by the signed type of the
    same size.
    """
    return _SIGNED.get(dtype, dtype)


def signed_pointer(pointer: str, dtype: DType, qualifier: str = "") -> str:
    """Return ``pointer`` to elements of ``dtype`` as the kernel that moves them takes it."""
    return f"({qualifier}{_SIGNED[dtype].value}_t *)({pointer})" if dtype in _SIGNED else pointer


def suffix(dtype: DType) -> str:
    """Return the end of the names of kernels for ``dtype``.

    It is the type's name, but ``float`` for float32, and ``uint8`` for bool, whose elements have a byte.
    """
    return {DType.FLOAT32: "float", DType.BOOL: "uint8"}.get(dtype, dtype.value)
