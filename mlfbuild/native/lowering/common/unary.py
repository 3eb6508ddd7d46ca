"""Operators of one tensor: int8 uses a table of 256 bytes, int16 one of 513 words or a kernel, other types a kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph import LOGISTIC_TABLE, DType, Graph, Node, Operands, Operator, Rescale, Tensor
from mlfbuild.native.graph.bases import Tabulated
from mlfbuild.native.graph.ops import Abs, Gelu, Lookup, Neg, Rsqrt, Sigmoid, Sqrt
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import array, input_and_output, struct
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of a table or of ``mlf_<operator>_<type>`` in the header of the operator's family."""
    source, output = unary_tensors(graph, node)
    match node.operator, source.dtype:
        case Gelu(approximate=True), DType.FLOAT32:
            # Only float32 has a kernel of its own for each form; integers are tables, which contain the form.
            return unary_call(node.operator, source, output, "gelu_tanh_float")
        case (Abs() | Neg() | Rsqrt()) as operator, DType.INT16:
            return _rescaled_int16(operator, source, output, operator.rescale(source, output))
        case Sqrt() as operator, DType.INT16:
            # No multiplier: the kernel computes the root of int16 in float32, with both scales.
            scales = (trained(source.affine.scale), trained(output.affine.scale))
            return unary_call(operator, source, output, "sqrt_int16", scales)
        case Sigmoid() as operator, DType.INT16:
            scale = operator.table_scale(source)
            # The table is the same array in every network, so that it is stored once however many nodes use it.
            parameters = (
                struct("scale", "mlf_table_scale", {"multiplier": scale.multiplier, "shift": scale.shift}),
                array("table", "uint16_t", LOGISTIC_TABLE),
            )
            kernel = f"{operator.name.lower()}_int16"
            return unary_call(operator, source, output, kernel, ("scale", "table"), parameters)
    return lower_unary(node.operator, source, output)


def unary_tensors(graph: Graph, node: Node) -> tuple[Tensor, Tensor]:
    """Return the input and the output of ``node``."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    return source, output


def lower_unary(operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    """Return the call of a table if the type has one, else of the kernel without further arguments.

    int8 has a table of all 256 results, made with the operator's own reference, whatever the operator. int16 has one of
    513 points for the operators that are tabulated themselves (``Tabulated``, ``Lookup``).
    """
    # 256 bytes of flash and a load for each element, whatever the function costs.
    if source.dtype is DType.INT8:
        return _table_int8(operator, source, output)
    if source.dtype is DType.INT16 and isinstance(operator, Tabulated | Lookup):
        values = operator.table(source, output) if isinstance(operator, Tabulated) else operator.table
        table = array("table", "int16_t", np.asarray(values, np.int16))
        return unary_call(operator, source, output, "lookup_int16", ("table",), (table,), header="unary.h")
    return unary_call(operator, source, output, f"{operator.name.lower()}_{suffix(source.dtype)}")


def _table_int8(operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    every = Tensor(source.name, (256,), DType.INT8, source.quantization)
    all_values = np.arange(-128, 128, dtype=np.int8)
    # The reference of the operator fills the table, so that table and reference cannot differ.
    (results,) = operator.reference(
        Operands([every]), Operands([all_values]), [Tensor(output.name, (256,), output.dtype, output.quantization)]
    )
    table = array("table", "int8_t", results)
    return unary_call(operator, source, output, "lookup_int8", ("table",), (table,), header="unary.h")


def _rescaled_int16(operator: Operator, source: Tensor, output: Tensor, rescale: Rescale) -> KernelCall:
    """Return the call of an int16 kernel that converts its result to the output's scale by ``rescale``."""
    # int16 has zero points of 0 only.
    fields: dict[str, int | Rescale] = {"input_zero_point": 0, "output_zero_point": 0, "rescale": rescale}
    parameter = struct("rescaling", "mlf_rescaling", fields)
    return unary_call(operator, source, output, f"{operator.name.lower()}_int16", ("rescaling",), (parameter,))


def unary_call(
    operator: Operator,
    source: Tensor,
    output: Tensor,
    kernel: str,
    arguments: Sequence[str] = (),
    parameters: Sequence[Parameter] = (),
    lines: Sequence[str] = (),
    header: str = "",
) -> KernelCall:
    """Return the call of ``mlf_<kernel>`` with ``arguments``, then the number of elements, input and output.

    The kernel is in ``header``, by default in that of the operator's family.
    """
    words = ", ".join((*arguments, str(source.elements), "input", "output"))
    word, found = operator.name.lower(), header or f"{operator.family()}.h"
    # Input and output have one type, so that the output may take the place of the input (position 0).
    operands = (*parameters, *input_and_output(source, output))
    return KernelCall(word, found, operands, (*lines, f"mlf_{kernel}({words});"), (0,))
