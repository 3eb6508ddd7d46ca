"""LOOKUP: the table of the node, passed to the kernel of its type."""

from __future__ import annotations

import numpy as np

from mlfbuild.cgen import C_TYPES
from mlfbuild.compilers.native.lowering.call import Constant, KernelCall, Parameter
from mlfbuild.compilers.native.lowering.common.activation import suffix
from mlfbuild.compilers.native.lowering.unary import unary_call, unary_tensors
from mlfbuild.compilers.native.settings import CodegenSettings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import Lookup


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_lookup_<type>``."""
    source, output = unary_tensors(graph, node)
    assert isinstance(node.operator, Lookup)
    c_type = C_TYPES[source.dtype]
    table = Constant.array("table", c_type, np.array(node.operator.table, source.dtype.numpy))
    parameters = (Parameter(f"const {c_type} *", "table", table),)
    kernel = f"lookup_{suffix(source.dtype)}"
    return unary_call(node.operator, source, output, kernel, ("table",), parameters, header="unary.h")
