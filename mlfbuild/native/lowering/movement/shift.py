"""SHIFT, which advances a ring buffer, in place if the memory plan permits it."""

from __future__ import annotations

import math

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Shift
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_shift``, which moves bytes of any type."""
    operator = node.operator
    assert isinstance(operator, Shift)
    (kept, new), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    # A block is what lies behind the axis, so that blocks advance independently.
    blocks = math.prod(kept.shape[: operator.axis])
    sizes = f"{blocks}, {kept.size // blocks}, {new.size // blocks}"
    return KernelCall("shift", "shift.h", (
        Parameter("const uint8_t *", "kept", kept.name),
        Parameter("const uint8_t *", "latest", new.name),
        Parameter("uint8_t *", "output", output.name),
    ), (f"mlf_shift({sizes}, kept, latest, output);",), (0,))  # fmt: skip
