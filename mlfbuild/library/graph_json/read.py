"""Parse the JSON text of a graph, and check all indices, lengths and types in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from mlfbuild.core import InputFileError, quoted, shown
from mlfbuild.library.data_type import element_size
from mlfbuild.library.fields import parse_json
from mlfbuild.library.graph_json.executor_graph import CALL, INPUT, ExecutorGraph, GraphNode, NodeEntry

_LARGEST = 2**63 - 1
_EXPORT = "export the graph again"
_MAX_DIMS = 64
_MEMBERS = ("nodes", "arg_nodes", "heads", "attrs", "node_row_ptr")
_NODE_MEMBERS = {"op", "name", "inputs", "attr", "attrs", "control_deps"}
_CALL_ATTRS = ("func_name", "num_inputs", "num_outputs", "flatten_data")
_TAGS = {
    "shape": "list_shape", "dltype": "list_str", "storage_id": "list_int",
    "device_index": "list_int", "storage_scope": "list_str",
}  # fmt: skip
_REQUIRED_ATTRS = ("shape", "dltype", "storage_id")
# TVM's JSON has escapes for \t, \n and \r only (graph_json.write), so no other control character can be written again.
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


def parse_graph(data: bytes, where: str) -> ExecutorGraph:
    """Return the graph in a ``graph.json`` or ``<module>.graph`` with the JSON text ``data``.

    ``where`` is the file in errors. Raises ``InputFileError``, with the place in the file (``attrs.storage_id[3]``), if
    TVM's graph executor could not load the graph or would use an index that is out of range. Members and attributes
    that TVM does not know are kept.
    """
    return _Reader(where).graph(parse_json(data, where, _EXPORT))


_Items = TypeVar("_Items", bound=Sequence[object])


class _Reader:
    """Parses and checks values; ``at`` is the place of a value in the file."""

    def __init__(self, where: str) -> None:
        self.where = where

    def graph(self, document: object) -> ExecutorGraph:
        members = self.members(document, "", _MEMBERS)
        nodes = tuple(self.node(item, f"nodes[{i}]") for i, item in enumerate(self.items(members["nodes"], "nodes")))
        rows = self.row_pointers(members["node_row_ptr"], nodes)
        for index, node in enumerate(nodes):
            # Only earlier nodes count: TVM's executors run nodes in the order of the list.
            self.check_inputs(node, f"nodes[{index}]", rows[: index + 1])
        attrs = self.members(members["attrs"], "attrs", _REQUIRED_ATTRS)
        payloads = {name: self.payload(attrs[name], name) for name in attrs}
        count = rows[-1]
        shape = self.shapes(payloads["shape"], count)
        dltype = self.dtypes(payloads["dltype"], count)
        self.check_sizes(shape, dltype)
        return ExecutorGraph(
            nodes=nodes,
            arg_nodes=self.arg_nodes(members["arg_nodes"], nodes),
            heads=self.entries(members["heads"], "heads", rows),
            node_row_ptr=rows,
            shape=shape,
            dltype=dltype,
            storage_id=self.attr_numbers(payloads["storage_id"], "storage_id", count),
            device_index=self.attr_numbers(payloads["device_index"], "device_index", count)
            if "device_index" in payloads
            else None,
            storage_scope=self.attr_texts(payloads["storage_scope"], "storage_scope", count)
            if "storage_scope" in payloads
            else None,
            other_attrs=self.others(attrs, _TAGS, "attrs."),
            others=self.others(members, _MEMBERS, ""),
            attr_order=tuple(attrs),
        )

    # Nodes

    def node(self, value: object, at: str) -> GraphNode:
        members = self.members(value, at, ("op", "name", "inputs"))
        op = self.text(members["op"], f"{at}.op")
        if op not in {INPUT, CALL}:
            raise self.error(f"{at}.op", f"is {quoted(op)}, but must be {INPUT!r} or {CALL!r}")
        attrs = self.node_attrs(members, at)
        node = GraphNode(
            op=op,
            name=self.text(members["name"], f"{at}.name"),
            inputs=tuple(
                self.reference(item, f"{at}.inputs[{index}]")
                for index, item in enumerate(self.items(members["inputs"], f"{at}.inputs"))
            ),
            attrs=attrs,
            control_deps=self.numbers(members.get("control_deps", []), f"{at}.control_deps"),
            others=self.others(members, _NODE_MEMBERS, f"{at}."),
        )
        if op == CALL:
            self.check_call(node, at)
        return node

    def node_attrs(self, members: Mapping[str, object], at: str) -> tuple[tuple[str, str], ...]:
        key = "attr" if "attr" in members else "attrs"  # TVM's readers accept both
        attrs = self.members(members.get(key, {}), f"{at}.{key}")
        return tuple((self.text(name, f"{at}.{key}"), self.text(attrs[name], f"{at}.{key}.{name}")) for name in attrs)

    def check_call(self, node: GraphNode, at: str) -> None:
        for name in _CALL_ATTRS:
            value = node.attr(name)
            if value is None:
                raise self.missing(f"{at}.attrs.{name}")
            # At most nine digits, so that the number fits TVM's int.
            if name != "func_name" and not re.fullmatch("[0-9]{1,9}", value):
                raise self.wrong_type(f"{at}.attrs.{name}", "a string with a whole number")
        if int(node.attr("num_inputs") or 0) != len(node.inputs):
            reason = f"is {node.attr('num_inputs')}, but inputs has {len(node.inputs)}"
            raise self.error(f"{at}.attrs.num_inputs", reason, code="graph-length-wrong")

    def row_pointers(self, value: object, nodes: Sequence[GraphNode]) -> tuple[int, ...]:
        rows = self.numbers(value, "node_row_ptr")
        if len(rows) != len(nodes) + 1:
            reason = f"has {len(rows)} items, but must have one more than the {len(nodes)} nodes"
            raise self.error("node_row_ptr", reason, code="graph-length-wrong")
        if rows[0] != 0:
            raise self.error("node_row_ptr[0]", "must be 0")
        for index, node in enumerate(nodes):
            # An input has one entry; for a call the attribute states how many it has.
            outputs = int(node.attr("num_outputs") or 1) if node.op == CALL else 1
            if rows[index + 1] - rows[index] != outputs:
                expected = rows[index] + outputs
                reason = f"is {rows[index + 1]}, but must be {expected}, because node {index} has {outputs} outputs"
                raise self.error(f"node_row_ptr[{index + 1}]", reason)
        return rows

    def check_inputs(self, node: GraphNode, at: str, rows: Sequence[int]) -> None:
        for index, entry in enumerate(node.inputs):
            self.check_reference(entry, f"{at}.inputs[{index}]", rows)
        for index, other in enumerate(node.control_deps):
            if other >= len(rows) - 1:
                raise self.bad_index(f"{at}.control_deps[{index}]", f"node {other} does not precede this node")

    def arg_nodes(self, value: object, nodes: Sequence[GraphNode]) -> tuple[int, ...]:
        indices = self.numbers(value, "arg_nodes")
        seen: set[int] = set()
        for place, index in enumerate(indices):
            at = f"arg_nodes[{place}]"
            if index >= len(nodes):
                raise self.bad_index(at, f"is {index}, but there are {len(nodes)} nodes")
            if nodes[index].op != INPUT:
                raise self.bad_index(at, f"node {index} is a call, not an input")
            if index in seen:
                raise self.bad_index(at, f"node {index} occurs a second time")
            seen.add(index)
        return indices

    # References to entries

    def entries(self, value: object, at: str, rows: Sequence[int]) -> tuple[NodeEntry, ...]:
        found = tuple(self.reference(item, f"{at}[{index}]") for index, item in enumerate(self.items(value, at)))
        for index, entry in enumerate(found):
            self.check_reference(entry, f"{at}[{index}]", rows)
        return found

    def reference(self, value: object, at: str) -> NodeEntry:
        numbers = self.numbers(value, at)
        # TVM's `NodeEntry::Load` accepts an entry without the version.
        if len(numbers) not in {2, 3}:
            raise self.wrong_type(at, "[node, index] or [node, index, version]")
        return NodeEntry(*numbers)

    def check_reference(self, entry: NodeEntry, at: str, rows: Sequence[int]) -> None:
        if entry.node >= len(rows) - 1:
            raise self.bad_index(at, f"node {entry.node} does not exist, or does not precede the node that uses it")
        outputs = rows[entry.node + 1] - rows[entry.node]
        if entry.index >= outputs:
            raise self.bad_index(at, f"node {entry.node} has no output {entry.index}, only {outputs}")

    # Attributes, by entry

    def payload(self, value: object, name: str) -> object:
        at = f"attrs.{name}"
        items = self.items(value, at)
        if len(items) != 2:
            raise self.wrong_type(at, "a list of a type tag and a value")
        tag = self.text(items[0], f"{at}[0]")
        # Attributes that TVM does not know may have any tag.
        if tag != _TAGS.get(name, tag):
            raise self.error(f"{at}[0]", f"is {quoted(tag)}, but must be {_TAGS[name]!r}")
        return items[1]

    def shapes(self, value: object, count: int) -> tuple[tuple[int, ...], ...]:
        items = self.counted(self.items(value, "attrs.shape"), "attrs.shape", count)
        return tuple(self.shape(item, f"attrs.shape[{index}]") for index, item in enumerate(items))

    def shape(self, value: object, at: str) -> tuple[int, ...]:
        extents = self.numbers(value, at)
        if len(extents) > _MAX_DIMS:
            raise self.error(at, f"has {len(extents)} dimensions, more than {_MAX_DIMS}")
        return extents

    def dtypes(self, value: object, count: int) -> tuple[str, ...]:
        names = self.attr_texts(value, "dltype", count)
        for index, name in enumerate(names):
            if element_size(name) is None:
                raise self.error(f"attrs.dltype[{index}]", f"{quoted(name)} is not a data type of TVM")
        return names

    def check_sizes(self, shapes: Iterable[Sequence[int]], dtypes: Iterable[str]) -> None:
        for index, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
            size = 0 if 0 in shape else element_size(dtype) or 0
            # Step by step, so that many large extents are refused before their product has thousands of digits.
            for extent in shape:
                size *= extent
                if size > _LARGEST:
                    raise self.error(f"attrs.shape[{index}]", "is larger than 2^63-1 bytes")

    def attr_numbers(self, value: object, name: str, count: int) -> tuple[int, ...]:
        numbers = self.numbers(value, f"attrs.{name}", largest=2**31 - 1)  # int in TVM
        return self.counted(numbers, f"attrs.{name}", count)

    def attr_texts(self, value: object, name: str, count: int) -> tuple[str, ...]:
        items = self.counted(self.items(value, f"attrs.{name}"), f"attrs.{name}", count)
        return tuple(self.text(item, f"attrs.{name}[{index}]") for index, item in enumerate(items))

    # Values

    def error(self, at: str, reason: str, code: str = "graph-value-invalid") -> InputFileError:
        place = f"{self.where}: {shown(at)}" if at else self.where
        return InputFileError(code, place=place, reason=reason, hint=_EXPORT)

    def missing(self, at: str) -> InputFileError:
        return self.error(at, "is missing", "graph-member-missing")

    def wrong_type(self, at: str, expected: str) -> InputFileError:
        return self.error(at, f"must be {expected}", "graph-type-wrong")

    def bad_index(self, at: str, reason: str) -> InputFileError:
        return self.error(at, reason, "graph-index-invalid")

    def members(self, value: object, at: str, required: Iterable[str] = ()) -> Mapping[str, object]:
        if not isinstance(value, dict):
            raise self.wrong_type(at, "an object")
        missing = next((name for name in required if name not in value), None)
        if missing is not None:
            raise self.missing(f"{at}.{missing}" if at else missing)
        return value

    def items(self, value: object, at: str) -> Sequence[object]:
        if not isinstance(value, list):
            raise self.wrong_type(at, "a list")
        return value

    def counted(self, items: _Items, at: str, count: int) -> _Items:
        if len(items) != count:
            reason = f"has {len(items)} items, but must have {count}, one for each output of each node"
            raise self.error(at, reason, "graph-length-wrong")
        return items

    def numbers(self, value: object, at: str, largest: int = _LARGEST) -> tuple[int, ...]:
        items = self.items(value, at)
        for index, item in enumerate(items):
            if type(item) is not int or not 0 <= item <= largest:  # and not bool, a subclass of int
                raise self.wrong_type(f"{at}[{index}]", f"a whole number from 0 to {largest}")
        return tuple(items)  # type: ignore[arg-type]  # checked above

    def text(self, value: object, at: str) -> str:
        if not isinstance(value, str):
            raise self.wrong_type(at, "a string")
        if _UNWRITABLE.search(value):
            raise self.error(at, "has control characters or surrogates")
        return value

    def others(self, members: Mapping[str, object], known: Iterable[str], prefix: str) -> tuple[tuple[str, str], ...]:
        names = members.keys() - set(known)
        return tuple((name, self.json(members[name], f"{prefix}{name}")) for name in members if name in names)

    def json(self, value: object, at: str) -> str:
        # The name of the member must also be one that can be written again.
        self.text(at, at)
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            # `ensure_ascii=False` lets surrogates pass, which UTF-8 then refuses.
            text.encode()
        except (RecursionError, ValueError):
            raise self.error(at, "is nested too deeply, or has an infinite number or a surrogate") from None
        return text
