"""Write a graph as JSON text in the layout of dmlc-core's ``JSONWriter``, which TVM uses.

TVM's readers depend on the layout: they know only five escapes in strings, and only integers as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mlfbuild.library.graph_json.executor_graph import ExecutorGraph, GraphNode, NodeEntry

_ESCAPES = {"\r": "\\r", "\n": "\\n", "\\": "\\\\", "\t": "\\t", '"': '\\"'}
_ESCAPED = re.compile(r'[\r\n\\\t"]')
_SHORT = 10  # lists of more numbers have one number per line


def graph_text(graph: ExecutorGraph) -> str:
    """Return ``graph`` as JSON, byte for byte like TVM's code generator.

    Members that TVM does not know come last, so that readers that stop at ``metadata`` have read the graph before.

    The order of attributes is that in which the graph was read (``attr_order``), because TVM's is that of a hash
    table. A graph that ``parse_graph`` read gives the text that it was read from, if TVM wrote that.
    """
    attrs = {
        "shape": _tagged("list_shape", _list([_numbers(shape, 4) for shape in graph.shape], 3)),
        "dltype": _tagged("list_str", _texts(graph.dltype)),
        "storage_id": _tagged("list_int", _numbers(graph.storage_id, 3)),
        "device_index": None if graph.device_index is None else _tagged("list_int", _numbers(graph.device_index, 3)),
        "storage_scope": None if graph.storage_scope is None else _tagged("list_str", _texts(graph.storage_scope)),
        **dict(graph.other_attrs),
    }
    # TVM's own order is that of a hash table, which nothing but the file records.
    order = dict.fromkeys([*graph.attr_order, *attrs])
    written = [(name, text) for name in order if (text := attrs.get(name)) is not None]
    return _object(
        [
            ("nodes", _list([_node(node) for node in graph.nodes], 1)),
            ("arg_nodes", _numbers(graph.arg_nodes, 1)),
            ("heads", _entries(graph.heads, 1)),
            ("attrs", _object(written, 1)),
            ("node_row_ptr", _numbers(graph.node_row_ptr, 1)),
            *graph.others,
        ],
        0,
    )


def _node(node: GraphNode) -> str:
    members = [("op", _text(node.op)), ("name", _text(node.name))]
    # TVM leaves out empty attributes and dependencies, and the text must equal its own.
    if node.attrs:
        members.append(("attrs", _object([(name, _text(value)) for name, value in node.attrs], 3)))
    members.append(("inputs", _entries(node.inputs, 3)))
    if node.control_deps:
        members.append(("control_deps", _numbers(node.control_deps, 3)))
    return _object([*members, *node.others], 2)


def _entries(entries: Sequence[NodeEntry], depth: int) -> str:
    numbers = ((entry.node, entry.index, entry.version) for entry in entries)
    return _list([_list([str(number) for number in item], depth + 1) for item in numbers], depth)


def _tagged(tag: str, payload: str) -> str:
    return _list([_text(tag), payload], 2)


def _texts(texts: Iterable[str]) -> str:
    return _list([_text(text) for text in texts], 3)


def _numbers(numbers: Sequence[int], depth: int) -> str:
    items = [str(number) for number in numbers]
    # As dmlc-core's ArrayHandler: a list of more than ten numbers has one in each line, and so have all lists of other
    # values.
    return f"[{', '.join(items)}]" if len(items) <= _SHORT else _list(items, depth)


def _list(items: Sequence[str], depth: int) -> str:
    """Return a list at the indentation ``depth``, with one item per line."""
    return _lines("[", items, "]", depth)


def _object(members: Sequence[tuple[str, str]], depth: int) -> str:
    return _lines("{", [f"{_text(name)}: {value}" for name, value in members], "}", depth)


def _lines(opening: str, items: Sequence[str], closing: str, depth: int) -> str:
    if not items:
        return opening + closing
    # Two blanks for each level, as dmlc-core indents.
    indent = "\n" + "  " * depth
    return opening + ", ".join(f"{indent}  {item}" for item in items) + indent + closing


def _text(text: str) -> str:
    return f'"{_ESCAPED.sub(lambda found: _ESCAPES[found[0]], text)}"'
