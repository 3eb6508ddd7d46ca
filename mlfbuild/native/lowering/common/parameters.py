"""The forms of parameters that most kernels have: tensors that are read or written, and constants.

A parameter has the C type of its tensor or constant. Kernels with pointers of other types, such as ``void *`` for
elements that are only copied, make their ``Parameter`` themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mlfbuild.native.graph import C_TYPES, Array, HalfEvenRescale, Rescale, Tensor
from mlfbuild.native.lowering.call import Constant, Parameter, ScratchBuffer


def reads(name: str, tensor: Tensor) -> Parameter:
    """Return the parameter ``name`` that points to ``tensor``, which the kernel only reads."""
    return Parameter(f"const {C_TYPES[tensor.dtype]} *", name, tensor.name)


def writes(name: str, tensor: Tensor) -> Parameter:
    """Return the parameter ``name`` that points to ``tensor``, which the kernel writes."""
    return Parameter(f"{C_TYPES[tensor.dtype]} *", name, tensor.name)


def input_and_output(source: Tensor, output: Tensor) -> tuple[Parameter, Parameter]:
    """Return the parameters ``input`` and ``output``."""
    return reads("input", source), writes("output", output)


def constant(value: Constant) -> Parameter:
    """Return the parameter for ``value``, which has its name and its type."""
    return Parameter(f"const {value.c_type} *", value.name, value)


def array(
    name: str, c_type: str, values: Array, again: Callable[[], Array] | None = None, *, order: str = ""
) -> Parameter:
    """Return the parameter for an array of numbers; the arguments are those of ``Constant.array``."""
    return constant(Constant.array(name, c_type, values, again, order=order))


def struct(name: str, c_type: str, fields: Mapping[str, int | Rescale | HalfEvenRescale]) -> Parameter:
    """Return the parameter for a struct of numbers and rescalings; the arguments are those of ``Constant.struct``."""
    return constant(Constant.struct(name, c_type, fields))


def float_bias(bias: Array | None, channels: int) -> Parameter:
    """Return the parameter ``bias`` of a float32 layer with so many output channels, zeros if there is no bias."""
    return array("bias", "float", np.zeros(channels, np.float32) if bias is None else bias)


def packed_filter(value: Constant) -> Parameter:
    """Return the parameter ``filter`` for words with several weights each."""
    return Parameter("const int32_t *", "filter", value)


def scratch(c_type: str, size: int) -> Parameter:
    """Return the parameter ``scratch`` for ``size`` bytes of memory whose elements have the type ``c_type``."""
    return Parameter(f"{c_type} *", "scratch", ScratchBuffer(size))


def rescaling_parameter(source: Tensor, output: Tensor, rescale: Rescale | HalfEvenRescale) -> Parameter:
    """Return the parameter ``rescaling``: both zero points, and the factor from the stored input to the output."""
    ends = {"input_zero_point": source.affine.zero_point, "output_zero_point": output.affine.zero_point}
    return struct("rescaling", "mlf_rescaling", {**ends, "rescale": rescale})
