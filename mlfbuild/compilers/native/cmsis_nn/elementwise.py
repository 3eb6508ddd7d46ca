"""ADD and MUL of tensors of equal shape by ``arm_elementwise_add_s8`` and ``arm_elementwise_mul_s8``, or ``_s16``.

Their numbers are arguments, which stand in the code as literals.
"""

from __future__ import annotations

from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES
from mlfbuild.compilers.native.cmsis_nn.rights import clamp_fits, rescale_fits
from mlfbuild.compilers.native.cmsis_nn.text import call
from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.literals import integer
from mlfbuild.compilers.native.ops.broadcast import in_place
from mlfbuild.compilers.native.ops.call import Call, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Tensor
from mlfbuild.graph.ops import Add
from mlfbuild.graph.ops.binary import Arithmetic, binary_tensors
from mlfbuild.graph.quantize import Rescale, activation_range, zero_point_of
from mlfbuild.graph.rescales import SUM_LEFT_SHIFT, multiply_rescale

_LARGEST = {DType.INT8: 255, DType.INT16: 1 << 15}
"""A stored value without its zero point."""


def lower(graph: Graph, node: Node, _settings: Settings) -> Call | None:
    """Return the call of the library; ``None`` where our own kernel has to compute ``node``."""
    operator = node.operator
    assert isinstance(operator, Arithmetic)
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if output.dtype not in _LARGEST or first.shape != second.shape:
        return None
    clamp = activation_range(operator.activation, output)
    inputs = (
        _sum_inputs(operator, first, second, output) if isinstance(operator, Add) else _factors(first, second, output)
    )
    if inputs is None or not clamp_fits(clamp, output):
        return None
    before, rescale = inputs
    after = (zero_point_of(output), rescale.multiplier, rescale.shift, *clamp, output.elements)
    c_type = C_TYPES[output.dtype]
    word = "add" if isinstance(operator, Add) else "mul"
    return Call(word, "compiler.h", (
        Parameter(f"const {c_type} *", "first", first.name),
        Parameter(f"const {c_type} *", "second", second.name),
        Parameter(f"{c_type} *", "output", output.name),
    ), (
        *call(f"arm_elementwise_{word}_s{8 * output.dtype.size}", "first", "second", *map(integer, before), "output",
              *map(integer, after)),
    ), in_place((first, second), output), cmsis_nn=frozenset(FEATURES))  # fmt: skip


def _sum_inputs(operator: Add, first: Tensor, second: Tensor, output: Tensor) -> tuple[list[int], Rescale] | None:
    """Return the arguments about the inputs of a sum, and the rescaling of the result."""
    rescales, bits = operator.numbers(first, second, output), SUM_LEFT_SHIFT[output.dtype]
    largest = _LARGEST[output.dtype] << bits  # of an input and, as both are at least halved, of the sum
    if not all(rescale_fits(each, largest) for each in (*rescales.inputs, rescales.output)):
        return None
    each = zip((first, second), rescales.inputs, strict=True)
    numbers = [(-zero_point_of(tensor), rescale.multiplier, rescale.shift) for tensor, rescale in each]
    return [*numbers[0], *numbers[1], bits], rescales.output


def _factors(first: Tensor, second: Tensor, output: Tensor) -> tuple[list[int], Rescale] | None:
    """Return the arguments about the inputs of a product, and the rescaling of the result."""
    rescale = multiply_rescale(first, second, output)
    if not rescale_fits(rescale, _LARGEST[output.dtype] ** 2):
        return None
    return [-zero_point_of(first), -zero_point_of(second)], rescale
