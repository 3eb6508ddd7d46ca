"""Operators whose kernels take numbers and tensors, in the order of their parameters, and nothing else.

They need no file each, as what differs is the name of the kernel and a few sizes. ``dispatch`` looks here first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlfbuild.native.graph import DType, Graph, Node, Tensor
from mlfbuild.native.graph.ops import (
    ArgMax,
    ArgMin,
    BitCast,
    Cast,
    ComplexAbs,
    ComplexPart,
    Determinant,
    DynamicQuantize,
    Imag,
    L2Normalization,
    LogicalNot,
    PairwiseCoupling,
    Reshape,
    Shift,
    SquaredDistances,
    TopkV2,
)
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer, unsupported
from mlfbuild.native.lowering.common.activation import suffix, zero_point
from mlfbuild.native.lowering.common.broadcast import in_place
from mlfbuild.native.lowering.common.parameters import input_and_output, reads, scratch, writes
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

# 255 * 255 * 2**15 < 2**31.
_LARGEST_DEPTH = 1 << 15
"""The length of a vector of int8 whose sum of squares fits in 32 bits."""

_ELEMENTWISE = (BitCast, Cast, ComplexPart, DynamicQuantize, LogicalNot, Reshape, Shift)
_BY_ROWS = (ArgMax, ArgMin, Determinant, L2Normalization, PairwiseCoupling, SquaredDistances, TopkV2)
KINDS = (*_ELEMENTWISE, *_BY_ROWS)
"""The operators that this module lowers."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of the only kernel of an operator of ``KINDS``."""
    inputs, outputs = tuple(graph.inputs_of(node).present), graph.outputs_of(node)
    return (_elementwise if isinstance(node.operator, _ELEMENTWISE) else _by_rows)(node, inputs, outputs)


def _elementwise(node: Node, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> KernelCall:
    source, output = inputs[0], outputs[0]
    both, overwrites = input_and_output(source, output), in_place((source,), output)
    match node.operator:
        case Cast():
            target = "bool" if output.dtype is DType.BOOL else suffix(output.dtype)
            return _call("cast", "cast.h", f"{suffix(source.dtype)}_{target}", [source.elements], both, overwrites)
        case LogicalNot():
            # Both have elements of one byte.
            return _call("logical_not", "logical.h", "uint8", [source.elements], both, overwrites)
        case ComplexPart() as operator:
            kind = "magnitudes" if isinstance(operator, ComplexAbs) else "parts"
            part = [] if isinstance(operator, ComplexAbs) else [int(isinstance(operator, Imag))]
            line = f"mlf_complex_{kind}({', '.join(map(str, [output.elements, *part]))}, input, output);"
            return KernelCall("complex_parts", "complex_parts.h", both, (line,))
        case DynamicQuantize():
            parameters = (*both, writes("scale", outputs[1]), writes("zero_point", outputs[2]))
            return _call("dynamic_quantize", "quantize_dynamic.h", "float", [source.elements], parameters)
        case Shift(axis=axis):
            # A block is what lies behind the axis, so that blocks advance independently.
            blocks = math.prod(source.shape[:axis])
            sizes = f"{blocks}, {source.size // blocks}, {inputs[1].size // blocks}"
            names = (("const ", "kept", source), ("const ", "latest", inputs[1]), ("", "output", output))
            moved = tuple(Parameter(f"{const}uint8_t *", name, tensor.name) for const, name, tensor in names)
            return KernelCall("shift", "shift.h", moved, (f"mlf_shift({sizes}, kept, latest, output);",), (0,))
    # RESHAPE, if the memory plan could not place both at the same address, and BIT_CAST: the same bytes.
    parts = (Parameter("const void *", "input", source.name), Parameter("void *", "output", output.name))
    word = "bit_cast" if isinstance(node.operator, BitCast) else "reshape"
    # Only the header with the declaration of memcpy is needed.
    return KernelCall(word, "compiler.h", parts, (f"memcpy(output, input, {source.size});",))


def _by_rows(node: Node, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> KernelCall:
    source, output, depth = inputs[0], outputs[0], inputs[0].shape[-1]
    both, kind = input_and_output(source, output), suffix(source.dtype)
    match node.operator:
        case ArgMax() | ArgMin() as operator:
            word, axis, shape = operator.name.lower(), operator.axis, source.shape
            sizes = [math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])]
            return _call(word, "arg_max.h", f"{kind}_{suffix(output.dtype)}", sizes, both)
        case Determinant():
            # Elimination overwrites the matrix, and the input must stay as it is.
            copy = Parameter("float *", "matrix", ScratchBuffer(depth * depth * source.dtype.size))
            return _call("determinant", "determinant.h", "float", [output.elements, depth], (both[0], copy, both[1]))
        case L2Normalization(shifted=shifted):
            # uint8 networks of LiteRT round in another order (``shifted``), and that is another kernel.
            way = "_shifted" if shifted and source.dtype is DType.INT8 else ""
            numbers = [str(source.elements // depth), str(depth)]
            if source.dtype is DType.INT8:
                if depth > _LARGEST_DEPTH:
                    raise unsupported(node, f"int8 vectors have at most {_LARGEST_DEPTH} elements, this one {depth}")
                numbers.append(trained(zero_point(source)))
            line = f"mlf_l2_normalization{way}_{kind}({', '.join(numbers)}, input, output);"
            # In place: the length of a row is known before its first element is written.
            return KernelCall("l2_normalization", f"l2_normalization{way}.h", both, (line,), (0,))
        case PairwiseCoupling():
            rows, classes = output.shape
            memory = scratch("float", classes * (2 * classes + 1) * output.dtype.size)
            return _call("pairwise_coupling", "pairwise_coupling.h", "float", [rows, classes], (*both, memory))
        case SquaredDistances():
            sizes, points = [source.shape[0], inputs[1].shape[0], depth], reads("points", inputs[1])
            return _call("squared_distances", "squared_distances.h", "float", sizes, (both[0], points, both[1]))
        case TopkV2(k=most, least=least):
            line = f"{source.elements // depth}, {depth}, {most}, input, values, positions"
            parameters = (both[0], writes("values", output), writes("positions", outputs[1]))
            kernel = f"mlf_topk_{'least' if least else 'greatest'}_{kind}"
            return KernelCall("topk_v2", "topk.h", parameters, (f"{kernel}({line});",))
    raise TypeError(node.operator)


def _call(
    word: str,
    header: str,
    kind: str,
    sizes: Sequence[int],
    parameters: tuple[Parameter, ...],
    overwrites: tuple[int, ...] = (),
) -> KernelCall:
    """Return the call of ``mlf_<word>_<kind>`` with ``sizes``, then ``parameters`` in their order."""
    arguments = ", ".join([*map(str, sizes), *(parameter.name for parameter in parameters)])
    return KernelCall(word, header, parameters, (f"mlf_{word}_{kind}({arguments});",), overwrites)
