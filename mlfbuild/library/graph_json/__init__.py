"""The graph executor's JSON: parse and check it, and write it byte for byte like TVM.

``read`` makes an ``ExecutorGraph`` of the text, ``write`` the text of a graph, and ``c_runtime`` lists what TVM's C
runtime cannot run although the graph is valid::

    graph = parse_graph(path.read_bytes(), str(path))
    problems = c_runtime_problems(graph)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.graph_json.c_runtime import MAX_NDIM, MAX_PARAM_NAME, c_runtime_problems
    from mlfbuild.library.graph_json.executor_graph import (
        CALL, INPUT, ExecutorGraph, GraphNode, NodeEntry, storage_bindings, storage_sizes,
    )
    from mlfbuild.library.graph_json.read import parse_graph
    from mlfbuild.library.graph_json.write import graph_text
else:
    __getattr__ = lazy_attributes(__name__)
