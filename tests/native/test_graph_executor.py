"""Networks for the graph executor, run as TVM runs them, equal the C code for the AOT executor."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.archive.merge.registry import parse_registry
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UnsupportedModelError, UsageError
from mlfbuild.core.files import sha256
from mlfbuild.library import CompileRequest, Library
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import Add, AveragePool2D, Concatenation, Equal, Reshape, Split
from mlfbuild.targets import CPUS, RUNTIME
from mlfbuild.usecases.validate import validate_archive
from support.errors import raises
from support.graph_interpreter import C99, Interpreter
from support.host_c import run_many_on_host
from support.native import compile_network, generated, request
from support.odd_networks import GRAPHS, values_of
from support.random_graphs import random_case
from support.sketch import Sketch

Array = npt.NDArray[Any]


def graph_library(graph: Graph, cpu: str = "cortex-m4", memory: str = "balanced") -> Library:
    wanted = replace(request(graph.name, cpu=cpu, memory=memory), executor="graph")
    return compile_graph(graph, wanted, sha256(graph.name.encode()))


def interpreter(library: Library, folder: Path, *findings: str) -> Interpreter:
    """Write the archive, assert that it has no other ``findings``, and load it."""
    archive = folder / "net.tar"
    folder.mkdir(exist_ok=True)
    write_archive(library, archive)
    assert [f"{found.place}: {found.message}" for found in validate_archive(archive).findings] == list(findings)
    return Interpreter(archive, folder / "tree")


def assert_same(got: list[Array], wanted: list[Array]) -> None:
    assert len(got) == len(wanted)
    for value, right in zip(got, wanted, strict=True):
        assert value.tobytes() == np.ascontiguousarray(right).tobytes()


# Networks ------------------------------------------------------------------------------------------------------------


def compiled(shared: Path, name: str, memory: str = "balanced", cpu: str = "cortex-m4") -> Library:
    source = shared / "models" / f"{name}.tflite"
    wanted = CompileRequest("net", source, CPUS[cpu], executor="graph", options={"memory": memory})
    return compiler_called("native").compile(wanted)


@pytest.mark.parametrize(
    ("name", "memory"),
    [("kws_int8", "balanced"), ("ic_int8", "fastest"), ("ad_int8", "balanced"), ("vww_int8", "smallest")],
)
def test_networks_of_mlperf_tiny(name: str, memory: str, shared: Path, tmp_path: Path) -> None:
    library = compiled(shared, name, memory)
    runner = interpreter(library, tmp_path)
    with np.load(shared / "golden" / f"{name}.npz") as vectors:
        cases, expected = vectors["in0"][:2], vectors["out0"][:2]
    for case, right in zip(cases, expected, strict=True):
        assert_same(runner.run([case]), [right])
    (module,) = library.modules
    assert runner.storage_size + runner.largest_workspace == module.main[0].workspace_size


@pytest.mark.parametrize("graph", [make() for make in GRAPHS], ids=[make.__name__ for make in GRAPHS])
def test_odd_networks(graph: Graph, tmp_path: Path) -> None:
    library = graph_library(graph)
    write_archive(library, tmp_path / "net.tar")  # without inputs, TVM's C runtime would not take its parameters
    values = values_of(graph)
    wanted = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
    assert_same(
        Interpreter(tmp_path / "net.tar", tmp_path / "tree").run(values), [wanted[name] for name in graph.outputs]
    )


def check_random(seeds: range, steps: int, folder: Path) -> None:
    """Compare every output of a random network for both executors with the same inputs."""
    for seed in seeds:
        case = random_case(seed, steps)
        graph = parse_tflite(case.model, f"net{seed}", "net")
        aot = compile_network(graph)
        ((*wanted,),) = run_many_on_host([(aot, aot.modules[0], case.inputs)], sanitize=False)
        write_archive(graph_library(graph), folder / f"{seed}.tar")
        assert_same(Interpreter(folder / f"{seed}.tar", folder / f"{seed}").run(case.inputs), wanted)


def test_random_networks(tmp_path: Path) -> None:
    check_random(range(5), 12, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(4000, 4400, 20))
def test_many_random_networks(first: int, tmp_path: Path) -> None:
    check_random(range(first, first + 20), 16, tmp_path)


# What a graph cannot say, or TVM's C runtime does not take -----------------------------------------------------------


def test_output_with_two_shapes_is_copied(tmp_path: Path) -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 2, 6), "x", s.tensor("sum", 2, 6))
    s.node(Reshape(), "sum", s.tensor("wide", 3, 4))
    s.node(Reshape(), "sum", s.tensor("flat", 12))
    s.node(Reshape(), "x", s.tensor("column", 12, 1))
    graph = s.graph(["x"], ["wide", "flat", "column"])
    runner = interpreter(graph_library(graph), tmp_path)
    (x,) = values_of(graph)
    wide, flat, column = runner.run([x])
    assert (wide.shape, flat.shape, column.shape) == ((3, 4), (12,), (12, 1))
    assert flat.tobytes() == wide.tobytes()
    assert column.tobytes() == x.tobytes()
    operators = [node["name"] for node in runner.graph["nodes"] if node["op"] != "null"]
    assert operators == ["tvmgen_net_add_0", "tvmgen_net_reshape_2", "tvmgen_net_reshape_3"]


def test_scalars_are_vectors_of_one_element(tmp_path: Path) -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x"), "x", s.tensor("y"))
    library = graph_library(s.graph(["x"], ["y"]))
    assert [tensor.shape for tensor in (*library.modules[0].inputs, *library.modules[0].outputs)] == [(), ()]
    runner = interpreter(library, tmp_path)
    assert runner.graph["attrs"]["shape"] == ["list_shape", [[1], [1]]]
    assert open_archive(tmp_path / "net.tar").modules[0].outputs[0].shape == ()


def test_booleans_are_bytes(tmp_path: Path) -> None:
    tensors = [Tensor("x", (5,), DType.FLOAT32), Tensor("y", (5,), DType.FLOAT32), Tensor("same", (5,), DType.BOOL)]
    graph = Graph("net", tensors, [Node("equal", Equal(), ("x", "y"), ("same",))], ["x", "y"], ["same"])
    runner = interpreter(graph_library(graph), tmp_path)
    assert runner.graph["attrs"]["dltype"] == ["list_str", ["float32", "float32", "uint8"]]
    x = np.arange(5, dtype=np.float32)
    assert runner.run([x, np.array([0, 2, 2, 2, 4], np.float32)])[0].tolist() == [1, 0, 1, 0, 1]
    assert open_archive(tmp_path / "net.tar").modules[0].outputs[0].dtype == "bool"


def test_an_operator_of_many_outputs(tmp_path: Path) -> None:
    s = Sketch()
    s.tensor("x", 2, 6)
    parts = tuple(s.tensor(f"part{index}", 2, 2) for index in range(3))
    s.nodes.append(Node("split", Split(1), ("x",), parts))
    s.node(Add(), "part2", "part0", s.tensor("sum", 2, 2))
    graph = s.graph(["x"], ["part1", "sum", "part1"])
    (x,) = values_of(graph)
    wanted = evaluate(graph, {"x": x})
    room = "executor-config/graph/net.graph: attrs.storage_id[3]: is 3, the C runtime has room for one per node"
    runner = interpreter(graph_library(graph), tmp_path, room)
    assert runner.graph["node_row_ptr"] == [0, 1, 4, 5]
    assert_same(runner.run([x]), [wanted[name] for name in graph.outputs])


def test_more_than_six_dimensions(tmp_path: Path) -> None:
    s = Sketch()
    shape = (2, 1, 3, 1, 2, 1, 2, 1)
    s.node(Add(), s.tensor("x", *shape), "x", s.tensor("y", *shape))
    graph = s.graph(["x"], ["y"])
    (x,) = values_of(graph)
    runner = interpreter(graph_library(graph), tmp_path)
    assert runner.graph["attrs"]["shape"][1] == [[6, 1, 2, 1, 2, 1]] * 2
    assert_same(runner.run([x]), [evaluate(graph, {"x": x})["y"]])


def test_arrays_of_a_call_with_many_arguments_are_one_parameter(tmp_path: Path) -> None:
    s = Sketch()
    names = [s.tensor(f"x{index}", 1, 4) for index in range(5)]
    constants = [s.tensor(f"c{index}", 1, 3, constant=True) for index in range(4)]
    joined = [name for pair in zip(names, constants, strict=False) for name in pair] + names[4:]
    s.nodes.append(Node("join", Concatenation(1), tuple(joined), (s.tensor("y", 1, 32),)))
    graph = s.graph(names, ["y"])
    runner = interpreter(graph_library(graph), tmp_path)
    values = values_of(graph)
    wanted = evaluate(graph, dict(zip(names, values, strict=True)))
    assert_same(runner.run(values), [wanted["y"]])
    (node,) = (node for node in runner.graph["nodes"] if node["op"] != "null")
    assert len(node["inputs"]) == 6  # and one output: TVM's C runtime accepts fewer than ten


def test_more_tensors_than_the_c_runtime_supports_are_a_finding(tmp_path: Path) -> None:
    s = Sketch()
    names = [s.tensor(f"x{index}", 1, 4) for index in range(9)]
    s.nodes.append(Node("join", Concatenation(1), tuple(names), (s.tensor("y", 1, 36),)))
    graph = s.graph(names, ["y"])
    place = "executor-config/graph/net.graph: nodes[9]"
    few = f"{place}: has 10 inputs and outputs, the C runtime accepts fewer than 10"
    runner = interpreter(graph_library(graph), tmp_path, few)
    values = values_of(graph)
    assert_same(runner.run(values), [np.concatenate(values, axis=1)])


def test_input_with_the_name_of_a_parameter(tmp_path: Path) -> None:
    s = Sketch()
    s.node(Add(), s.tensor("p0", 7), s.tensor("c", 7, constant=True), s.tensor("y", 7))
    graph = s.graph(["p0"], ["y"])
    runner = interpreter(graph_library(graph), tmp_path)
    assert [node["name"] for node in runner.graph["nodes"]] == ["p0", "p0_", "tvmgen_net_add_0"]
    (x,) = values_of(graph)
    assert_same(runner.run([x]), [evaluate(graph, {"p0": x})["y"]])


# Memory --------------------------------------------------------------------------------------------------------------


def test_a_chain_is_computed_in_place() -> None:
    graph = next(make for make in GRAPHS if make.__name__ == "in_place_chain")()
    (module,) = graph_library(graph, cpu="rv32imc").modules  # whose kernels need no scratch memory
    assert module.main[0].workspace_size == 9 * 9 * 4 + 5 * 2 * 4  # the chain, and the input of the last operator


def test_branches_run_in_an_order_with_fewer_buffers(tmp_path: Path) -> None:
    s = Sketch()
    s.tensor("x", 1, 8, 8, 4)
    for at in range(3):
        s.node(AveragePool2D((1, 1)), "x", s.tensor(f"large{at}", 1, 8, 8, 4))
    for at in range(3):
        s.node(AveragePool2D((8, 8), (8, 8)), f"large{at}", s.tensor(f"small{at}", 1, 1, 1, 4))
    s.node(Concatenation(3), *(f"small{at}" for at in range(3)), s.tensor("y", 1, 1, 1, 12))
    graph = s.graph(["x"], ["y"])
    library = graph_library(graph)
    large = graph.tensor("large0").size
    assert library.modules[0].main[0].workspace_size < 2 * large, "all three large tensors have one buffer"
    values = values_of(graph)
    wanted = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
    assert_same(interpreter(library, tmp_path).run(values), [wanted["y"]])


def test_the_option_memory(shared: Path) -> None:
    modules = [compiled(shared, "vww_int8", memory).modules[0] for memory in ("smallest", "balanced", "fastest")]
    smallest, balanced, fastest = (module.main[0].workspace_size for module in modules)
    assert smallest < 0.6 * balanced
    small = compiled(shared, "kws_int8", "smallest").modules[0]
    assert [any("has no effect" in text for text in module.notes) for module in (*modules, small)] == [
        False, False, False, True,
    ]  # fmt: skip
    assert balanced < 0.9 * fastest


def test_equal_arrays_are_one_parameter() -> None:
    s = Sketch()
    s.tensor("c", 8, constant=True)
    s.tensors.append(replace(s.tensors[0], name="again"))
    s.node(Add(), s.tensor("x", 8), "c", s.tensor("y", 8))
    s.node(Add(), "y", "again", s.tensor("z", 8))
    (module,) = graph_library(s.graph(["x"], ["z"])).modules
    assert list(module.params) == ["p0"]


def test_missing_memory_is_an_error_without_a_crash(shared: Path, tmp_path: Path) -> None:
    runner = interpreter(compiled(shared, "kws_int8"), tmp_path)
    case = np.zeros((1, 49, 10, 1), np.int8)
    for allocations in (0, 1, 5):
        assert runner.status([case], allocations)[0] == -1
    assert runner.status([case])[0] == 0


# C -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_code_compiles_for_arm(cpu: str, shared: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    library = compiled(shared, "kws_int8", cpu=cpu)
    for file in library.modules[0].codegen:
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).write_bytes(file.data)
    includes = [f"-I{tmp_path / 'host/include'}", f"-I{RUNTIME / 'tvm'}"]
    machine = [f"-mcpu={cpu}", "-mthumb", f"-mfloat-abi={CPUS[cpu].float_abi}"]
    for number in (0, 1):
        subprocess.run(
            [tool("arm-none-eabi-gcc"), *machine, *C99, "-O2", "-DMLF_MODULE=net", *includes, "-c",
             tmp_path / f"host/src/net_lib{number}.c", "-o", tmp_path / "lib.o"],
            check=True,
        )  # fmt: skip


def test_generated_files(golden: Callable[[str, str], None]) -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 1, 2, 2, 3), s.tensor("c", 3, constant=True), s.tensor("sum", 1, 2, 2, 3))
    s.node(Reshape(), "sum", s.tensor("rows", 4, 3))
    s.node(Add(), "rows", "rows", s.tensor("y", 4, 3))
    library = graph_library(s.graph(["x"], ["y"]), cpu="host")
    for ending in ("_lib0.c", "_lib1.c", "mlf_net.h"):
        text = generated(library, ending)
        assert all(len(line) <= 120 for line in text.splitlines()) or ending == "_lib0.c"  # as TVM's
        golden(text, f"net{ending}" if ending.startswith("_") else ending)
    golden(bytes(library.modules[0].graph_json or b"").decode(), "net.graph")


def test_registry_can_be_merged() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 3), "x", s.tensor("y", 3))
    registry = parse_registry(generated(graph_library(s.graph(["x"], ["y"]))))
    assert registry is not None
    assert registry.functions == (("tvmgen_net_add_3", "tvmgen_net_add_3"),)
    assert registry.count_bytes == 2


# What is refused -----------------------------------------------------------------------------------------------------


def test_network_with_state_is_rejected() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 3), s.tensor("kept", 3), s.tensor("sum", 3))
    graph = Graph("net", s.tensors, s.nodes, ["x"], ["sum"], [State("kept", "sum", np.zeros(3, np.int8))])
    with raises(UnsupportedModelError, "graph-executor-without-state", at="net: 'kept'"):
        graph_library(graph)


def test_invalid_options_and_executors_are_rejected(tmp_path: Path) -> None:
    wanted = CompileRequest("net", tmp_path / "net.tflite", CPUS["host"], executor="graph", options={"trace": True})
    with raises(UsageError, "trace-of-graph", at="net: options.trace"):
        compiler_called("native").compile(wanted)
    with raises(UsageError, "unknown-executor", at="net: executor"):
        compiler_called("native").outline(replace(wanted, executor="vm", options={}))
