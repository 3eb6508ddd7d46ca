"""REVERSE_SEQUENCE."""

from __future__ import annotations

import math

from mlfbuild.native.graph import C_TYPES, Graph, Node
from mlfbuild.native.graph.ops import ReverseSequence
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_reverse_sequence_<type of the lengths>``."""
    operator = node.operator
    assert isinstance(operator, ReverseSequence)
    (source, lengths), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    # The two dimensions in order of memory; a flag marks which of them is the sequence.
    first, second = sorted((operator.sequence, operator.batch))
    fields = {
        "outer": math.prod(source.shape[:first]),
        "first": source.shape[first],
        "middle": math.prod(source.shape[first + 1 : second]),
        "second": source.shape[second],
        "run": math.prod(source.shape[second + 1 :]) * source.dtype.size,
        "sequence_first": int(operator.sequence == first),
    }
    return KernelCall("reverse_sequence", "reverse_sequence.h", (
        Parameter("const void *", "input", source.name),
        Parameter(f"const {C_TYPES[lengths.dtype]} *", "lengths", lengths.name),
        Parameter("void *", "output", output.name),
    ), (
        *struct_lines("mlf_reverse_sequence", "shape", fields),
        f"mlf_reverse_sequence_{suffix(lengths.dtype)}(&shape, input, lengths, output);",
    ))  # fmt: skip
