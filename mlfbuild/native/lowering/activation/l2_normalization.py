"""L2_NORMALIZATION."""

from __future__ import annotations

from mlfbuild.native.graph import C_TYPES, DType, Graph, Node
from mlfbuild.native.graph.ops import L2Normalization
from mlfbuild.native.lowering.call import KernelCall, Parameter, unsupported
from mlfbuild.native.lowering.common.activation import suffix, zero_point
from mlfbuild.native.settings import CodegenSettings

# 255 * 255 * 2**15 < 2**31.
_LARGEST_DEPTH = 1 << 15
"""The most squares of 9-bit numbers whose sum fits in 32 bits."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_l2_normalization_<type>``."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert isinstance(node.operator, L2Normalization)
    # uint8 networks of LiteRT round in another order (``shifted``), and that is another kernel.
    way = "_shifted" if node.operator.shifted and source.dtype is DType.INT8 else ""
    depth = source.shape[-1]
    arguments = [str(source.elements // depth), str(depth)]
    if source.dtype is DType.INT8:
        if depth > _LARGEST_DEPTH:
            raise unsupported(node, f"int8 vectors have at most {_LARGEST_DEPTH} elements, this one {depth}")
        arguments.append(str(zero_point(source)))
    c_type = C_TYPES[source.dtype]
    kernel = f"mlf_l2_normalization{way}_{suffix(source.dtype)}"
    return KernelCall("l2_normalization", f"l2_normalization{way}.h", (
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter(f"{c_type} *", "output", output.name),
    # In place: the length of a row is known before its first element is written.
    ), (f"{kernel}({', '.join(arguments)}, input, output);",), (0,))  # fmt: skip
