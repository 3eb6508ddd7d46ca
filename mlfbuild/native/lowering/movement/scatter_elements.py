"""SCATTER_ELEMENTS."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import ScatterElements, ScatterUpdate
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of a kernel for any type, or of one for an update of float32."""
    operator = node.operator
    assert isinstance(operator, ScatterElements)
    inputs, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    source, places, updates = inputs.optional(0), inputs[1], inputs[2]
    sizes = f"{output.elements}, {places.elements}"
    if source is None:
        return KernelCall("scatter_elements", "scatter_elements.h", (
            Parameter("const int32_t *", "places", places.name),
            # Without elements to start from, the kernel writes zeros first, and any type has zeros of its size.
            Parameter("const void *", "updates", updates.name),
            Parameter("void *", "output", output.name),
        ), (f"mlf_scatter_elements_on_zeros({sizes}, {output.dtype.size}, places, updates, output);",))  # fmt: skip
    # Updates that replace elements are copies of bytes, so that one kernel serves all types.
    if operator.update is ScatterUpdate.SET:
        c_type, kernel, sizes = "void", "mlf_scatter_elements_set", f"{sizes}, {source.dtype.size}"
    else:
        c_type, kernel = "float", f"mlf_scatter_elements_{operator.update.value}_float"
    return KernelCall("scatter_elements", "scatter_elements.h", (
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter("const int32_t *", "places", places.name),
        Parameter(f"const {c_type} *", "updates", updates.name),
        Parameter(f"{c_type} *", "output", output.name),
    ), (f"{kernel}({sizes}, input, places, updates, output);",))  # fmt: skip
