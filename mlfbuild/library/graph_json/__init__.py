"""The graph executor's JSON: read, checked and written as TVM reads and writes it."""

from mlfbuild.library.graph_json.c_runtime import c_runtime_problems
from mlfbuild.library.graph_json.read import parse_graph
from mlfbuild.library.graph_json.types import CALL, INPUT, ExecutorGraph, GraphNode, NodeEntry, storage_sizes
from mlfbuild.library.graph_json.write import graph_text

__all__ = [
    "CALL",
    "INPUT",
    "ExecutorGraph",
    "GraphNode",
    "NodeEntry",
    "c_runtime_problems",
    "graph_text",
    "parse_graph",
    "storage_sizes",
]
