"""Graphs: TVM's are rewritten byte for byte, and invalid ones are refused with the place."""

import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.errors import InputFileError
from mlfbuild.library import TensorInfo
from mlfbuild.library.graph_json import (
    ExecutorGraph,
    GraphNode,
    NodeEntry,
    c_runtime_problems,
    graph_text,
    parse_graph,
    storage_sizes,
)
from support.errors import raises
from support.libraries import GRAPH_JSON


def parsed(text: str) -> ExecutorGraph:
    return parse_graph(text.encode(), "a.graph")


def small() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(GRAPH_JSON)
    return document


def graphs_of(archives: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(archives.glob("*.tar")):
        with tarfile.open(path) as archive:
            for member in archive:
                if "executor-config/graph/" in member.name and member.isfile():
                    file = archive.extractfile(member)
                    assert file is not None
                    yield path.name, file.read()


def test_tvm_graphs_are_rewritten_byte_for_byte(shared: Path) -> None:
    names = []
    for name, data in graphs_of(shared / "archives"):
        assert graph_text(parse_graph(data, name)).encode() == data, name
        names.append(name)
    assert len(names) == 10
    assert sum(name.startswith("v5-") for name in names) == 3


def test_arguments_and_outputs_of_a_graph() -> None:
    graph = parsed(GRAPH_JSON)
    assert graph.nodes[2].function == "tvmgen_net_add"
    assert graph.nodes[2].inputs == (NodeEntry(0), NodeEntry(1))
    assert graph.inputs({"p0"}) == (TensorInfo("x", "float32", 8, (1, 2)),)
    assert [tensor.name for tensor in graph.arguments] == ["x", "p0"]
    assert graph.outputs == (TensorInfo("output", "float32", 8, (1, 2)),)
    assert storage_sizes(graph) == {0: 8, 1: 8, 2: 8}
    assert c_runtime_problems(graph) == []


def test_several_outputs_are_numbered() -> None:
    document = small()
    document["heads"] = [[2, 0, 0], [0, 0]]
    assert [(tensor.name, tensor.shape) for tensor in parsed(json.dumps(document)).outputs] == [
        ("output0", (1, 2)),
        ("output1", (1, 2)),
    ]


def test_shared_storage_has_the_size_of_its_largest_entry() -> None:
    document = small()
    document["attrs"]["storage_id"][1] = [0, 1, 0]
    document["attrs"]["shape"][1] = [[1, 2], [1, 2], [3, 5]]
    document["attrs"]["dltype"][1] = ["float32", "int4", "bool"]
    assert storage_sizes(parsed(json.dumps(document))) == {0: 15, 1: 2}


def test_members_unknown_to_tvm_are_kept_and_written_last() -> None:
    document = small()
    document["metadata"] = {"made by": [1.5, None, "ä"]}
    document["nodes"][0]["color"] = "red"
    document["attrs"]["depth"] = ["size_t", 3]
    document["attrs"]["weights"] = ["list_float", [0.5]]
    graph = parsed(json.dumps(document))
    again = json.loads(graph_text(graph))
    assert again == {**document, "nodes": again["nodes"]}
    assert list(again)[-1] == "metadata"
    assert again["nodes"][0]["color"] == "red"
    assert parsed(graph_text(graph)) == graph
    assert c_runtime_problems(graph) == [
        "attrs.weights: the C runtime skips only attributes of type list_int and size_t",
        "nodes[0].color: the C runtime refuses unknown members",
    ]


def changed(place: str, value: object) -> str:
    """Return the small graph with ``value`` at ``place``, such as ``nodes.2.inputs``; ``...`` removes the member."""
    document: Any = small()
    *way, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    target = document
    for step in way:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("changed_place", "value", "code", "place"),
    [
        ("nodes", ..., "graph-member-missing", "nodes"),
        ("heads", ..., "graph-member-missing", "heads"),
        ("node_row_ptr", ..., "graph-member-missing", "node_row_ptr"),
        ("attrs.shape", ..., "graph-member-missing", "attrs.shape"),
        ("nodes", {}, "graph-type-wrong", "nodes"),
        ("nodes.1", 7, "graph-type-wrong", "nodes[1]"),
        ("nodes.1.name", ..., "graph-member-missing", "nodes[1].name"),
        ("nodes.1.name", 7, "graph-type-wrong", "nodes[1].name"),
        ("nodes.1.name", "\x01", "graph-value-invalid", "nodes[1].name"),
        ("nodes.1.name", "\ud800", "graph-value-invalid", "nodes[1].name"),
        ("nodes.1.op", "Convolution", "graph-value-invalid", "nodes[1].op"),
        ("nodes.2.attrs.func_name", ..., "graph-member-missing", "nodes[2].attrs.func_name"),
        ("nodes.2.attrs.hash", 7, "graph-type-wrong", "nodes[2].attrs.hash"),
        ("nodes.2.attrs.num_inputs", "two", "graph-type-wrong", "nodes[2].attrs.num_inputs"),
        ("nodes.2.attrs.num_inputs", "3", "graph-length-wrong", "nodes[2].attrs.num_inputs"),
        ("nodes.2.attrs.num_outputs", "2", "graph-value-invalid", "node_row_ptr[3]"),
        ("nodes.2.inputs.0", [0], "graph-type-wrong", "nodes[2].inputs[0]"),
        ("nodes.2.inputs.0", [2, 0, 0], "graph-index-invalid", "nodes[2].inputs[0]"),
        ("nodes.2.inputs.0", [0, 1, 0], "graph-index-invalid", "nodes[2].inputs[0]"),
        ("nodes.2.inputs.0", [0, -1, 0], "graph-type-wrong", "nodes[2].inputs[0][1]"),
        ("nodes.2.control_deps", [2], "graph-index-invalid", "nodes[2].control_deps[0]"),
        ("arg_nodes", [0, 3], "graph-index-invalid", "arg_nodes[1]"),
        ("arg_nodes", [0, 2], "graph-index-invalid", "arg_nodes[1]"),
        ("arg_nodes", [0, 0], "graph-index-invalid", "arg_nodes[1]"),
        ("arg_nodes", [True], "graph-type-wrong", "arg_nodes[0]"),
        ("heads", [[3, 0, 0]], "graph-index-invalid", "heads[0]"),
        ("heads", [[2, 1, 0]], "graph-index-invalid", "heads[0]"),
        ("node_row_ptr", [0, 1, 2], "graph-length-wrong", "node_row_ptr"),
        ("node_row_ptr", [1, 2, 3, 4], "graph-value-invalid", "node_row_ptr[0]"),
        ("node_row_ptr", [0, 1, 1, 2], "graph-value-invalid", "node_row_ptr[2]"),
        ("attrs.shape", ["list_shape"], "graph-type-wrong", "attrs.shape"),
        ("attrs.shape.0", "list_int", "graph-value-invalid", "attrs.shape[0]"),
        ("attrs.shape.1", [[1]], "graph-length-wrong", "attrs.shape"),
        ("attrs.shape.1.2", [-1], "graph-type-wrong", "attrs.shape[2][0]"),
        ("attrs.shape.1.2", [1] * 65, "graph-value-invalid", "attrs.shape[2]"),
        ("attrs.shape.1.2", [2**62, 2], "graph-value-invalid", "attrs.shape[2]"),
        ("attrs.storage_id.1.2", 2**31, "graph-type-wrong", "attrs.storage_id[2]"),
        ("attrs.storage_id.1", [0], "graph-length-wrong", "attrs.storage_id"),
        ("attrs.dltype.1.0", "float128k", "graph-value-invalid", "attrs.dltype[0]"),
        ("attrs.device_index", ["list_int", [1]], "graph-length-wrong", "attrs.device_index"),
        ("attrs.storage_scope", ["list_str", 1], "graph-type-wrong", "attrs.storage_scope"),
        ("attrs.x", 1, "graph-type-wrong", "attrs.x"),
    ],
)  # fmt: skip
def test_an_invalid_graph_is_refused(changed_place: str, value: object, code: str, place: str) -> None:
    with raises(InputFileError, code, at=f"a.graph: {place}") as caught:
        parsed(changed(changed_place, value))
    assert "\n" not in str(caught.value)


def test_a_list_is_not_a_graph() -> None:
    with raises(InputFileError, "graph-type-wrong", at="a.graph"):
        parsed("[]")


@pytest.mark.parametrize("text", ["", "7", "{", '{"nodes": [', "NaN", "[" * 100_000])
def test_text_that_is_not_a_graph(text: str) -> None:
    with raises(InputFileError, "graph-type-wrong" if text == "7" else "json-invalid", at="a.graph"):
        parsed(text)


@pytest.mark.parametrize(
    ("changed_place", "value", "place"),
    [
        ("nodes.0.name", "n" * 119, "nodes[0].name"),
        ("nodes.0.name", "n" * 118, None),
        ("nodes.0.name", 'a"b', "nodes[0]"),
        ("nodes.2.attrs.func_name", "__nop", "nodes[2].attrs.func_name"),
        ("nodes.2.attrs." + "k" * 19, "", f"nodes[2].attrs.{'k' * 19}"),
        ("nodes.2.control_deps", [0], "nodes[2].control_deps"),
        ("attrs.shape.1.0", [], "attrs.shape[0]"),
        ("attrs.shape.1.0", [1] * 7, "attrs.shape[0]"),
        ("attrs.shape.1.0", [4, 0], "attrs.shape[0]"),
        ("attrs.shape.1.0", [2**31], "attrs.shape[0]"),
        ("attrs.dltype.1.0", "float32x4", "attrs.dltype[0]"),
        ("attrs.dltype.1.0", "bfloat16", None),
        ("attrs.dltype.1.2", "int4", "heads[0]"),
        ("attrs.storage_id.1.0", 3, "attrs.storage_id[0]"),
        ("attrs.storage_scope", ["list_str", ["", "", "x"]], "attrs.storage_scope"),
        ("attrs.device_index", ["list_int", [1, 2, 1]], "attrs.device_index"),
        ("attrs.a_name_too_long", ["list_int", []], "attrs.a_name_too_long"),
        ("extra", 1, "extra"),
        ("metadata", 1, None),
    ],
)  # fmt: skip
def test_graphs_that_the_c_runtime_cannot_run(changed_place: str, value: object, place: str | None) -> None:
    graph = parsed(changed(changed_place, value))
    places = [problem.split(": ")[0] for problem in c_runtime_problems(graph)]
    assert places == ([] if place is None else [place])
    assert parsed(graph_text(graph)) == graph


def test_too_many_arguments_for_the_c_runtime() -> None:
    document = small()
    document["nodes"][2]["inputs"] = [[0, 0, 0]] * 9
    document["nodes"][2]["attrs"]["num_inputs"] = "9"
    problem = "nodes[2]: has 10 inputs and outputs, the C runtime accepts fewer than 10"
    assert c_runtime_problems(parsed(json.dumps(document))) == [problem]


# Any graph -----------------------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\r\n\t"\\'), max_size=12)


@st.composite
def sound_graphs(draw: st.DrawFn) -> ExecutorGraph:
    nodes: list[GraphNode] = []
    rows = [0]
    for index in range(draw(st.integers(1, 8))):
        if index == 0 or draw(st.booleans()):
            nodes.append(GraphNode("null", draw(NAMES)))
        else:
            inputs = tuple(draw(st.lists(st.sampled_from(entries_of(rows)), max_size=12)))
            outputs = draw(st.integers(0, 3))
            attrs = {
                **draw(st.dictionaries(NAMES, NAMES, max_size=2)),
                "func_name": draw(NAMES), "num_inputs": str(len(inputs)),
                "num_outputs": str(outputs), "flatten_data": "0",
            }  # fmt: skip
            nodes.append(GraphNode("tvm_op", draw(NAMES), inputs, tuple(attrs.items())))
        last = nodes[-1]
        rows.append(rows[-1] + int(last.attr("num_outputs") or 1) if last.op == "tvm_op" else rows[-1] + 1)
    count = rows[-1]

    def each(values: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(st.lists(values, min_size=count, max_size=count)))

    order = ["shape", "dltype", "storage_id"]
    devices = each(st.integers(0, 35)) if draw(st.booleans()) else None
    scopes = each(st.sampled_from(["", "global", "global.texture"])) if draw(st.booleans()) else None
    order += ["device_index"] * (devices is not None) + ["storage_scope"] * (scopes is not None)
    return ExecutorGraph(
        nodes=tuple(nodes),
        arg_nodes=tuple(index for index, node in enumerate(nodes) if node.op == "null"),
        heads=tuple(draw(st.lists(st.sampled_from(entries_of(rows)), max_size=3))),
        node_row_ptr=tuple(rows),
        shape=each(st.lists(st.integers(0, 9), max_size=12).map(tuple)),
        dltype=each(st.sampled_from(["float32", "int8", "bool", "uint8x4", "int4"])),
        storage_id=each(st.integers(0, 40)),
        device_index=devices,
        storage_scope=scopes,
        attr_order=tuple(draw(st.permutations(order))),
    )


def entries_of(rows: list[int]) -> list[NodeEntry]:
    return [
        NodeEntry(node, index, node % 2)
        for node in range(len(rows) - 1)
        for index in range(rows[node + 1] - rows[node])
    ]


@given(sound_graphs())
def test_any_valid_graph_is_written_and_read_unchanged(graph: ExecutorGraph) -> None:
    text = graph_text(graph)
    assert parsed(text) == graph
    assert graph_text(parsed(text)) == text
    assert sum(storage_sizes(graph).values()) >= 0
    assert all("\n" not in problem for problem in c_runtime_problems(graph))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(sound_graphs(), st.data())
def test_changed_graphs_never_crash(graph: ExecutorGraph, data: st.DataObject) -> None:
    document: Any = json.loads(graph_text(graph))
    target = document
    while True:  # walk to any value and replace it
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(target[key], (dict, list)) or data.draw(st.booleans()):
            target[key] = data.draw(JSON)
            break
        target = target[key]
    read_or_refused(json.dumps(document).encode())


@given(sound_graphs(), st.data())
def test_damaged_graph_text_never_crashes(graph: ExecutorGraph, data: st.DataObject) -> None:
    text = bytearray(graph_text(graph).encode())
    start = data.draw(st.integers(0, len(text)))
    text[start : start + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    read_or_refused(bytes(text))


def read_or_refused(data: bytes) -> None:
    refusal = None
    try:
        graph = parse_graph(data, "a.graph")
    except InputFileError as error:
        refusal = error
    if refusal is not None:
        assert refusal.place.split(": ")[0] == "a.graph"
        assert "\n" not in str(refusal)
    else:
        c_runtime_problems(graph)
        assert parse_graph(graph_text(graph).encode(), "a.graph") == graph


def test_the_order_of_attributes_has_no_meaning() -> None:
    graph = parsed(GRAPH_JSON)
    assert json.loads(graph_text(replace(graph, attr_order=()))) == json.loads(graph_text(graph))
