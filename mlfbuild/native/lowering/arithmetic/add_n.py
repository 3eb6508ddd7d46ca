"""ADD_N."""

from __future__ import annotations

from mlfbuild.native.graph import C_TYPES, Graph, Node
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.lowering.reduction.cumsum import sum_rescaling
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_add_n_<type>``."""
    sources = list(graph.inputs_of(node).present)
    (output,) = graph.outputs_of(node)
    c_type, names = C_TYPES[output.dtype], [f"input{at}" for at in range(len(sources))]
    rescaling = sum_rescaling(sources[0], output)
    words = [*(parameter.name for parameter in rescaling), str(output.elements), str(len(sources)), "inputs", "output"]
    return KernelCall("add_n", "add_n.h", (
        *rescaling,
        *(reads(name, source) for name, source in zip(names, sources, strict=True)),
        writes("output", output),
    ), (
        # A C array of pointers has any number of inputs, so that one kernel serves all of them.
        f"const {c_type} *const inputs[] = {{{', '.join(names)}}};",
        f"mlf_add_n_{suffix(output.dtype)}({', '.join(words)});",
    # Elements are read from all inputs before the output is written, at the same position.
    ), tuple(range(len(sources))))  # fmt: skip
