"""The description of a compiled network in its archive matches its C code."""

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from mlfbuild.archive import archive_files, pack_archive, read_archive
from mlfbuild.archive.conversion import rename_modules
from mlfbuild.archive.read import read_files
from mlfbuild.compilers import compiler_called
from mlfbuild.core import InputFileError
from mlfbuild.core.files import sha256
from mlfbuild.library import ArchiveFile, CompileRequest, Library, Module, Network, NetworkKernel, NetworkTensor
from mlfbuild.library.graph_json import CALL, parse_graph
from mlfbuild.library.network import ARENA
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor
from mlfbuild.native.graph.ops import Add, Concatenation, Conv2D, FullyConnected
from mlfbuild.targets import CPUS
from support.native import compile_network, generated, request
from support.odd_networks import GRAPHS
from support.sketch import Sketch

_CALL = re.compile(r"\n    (tvmgen_\w+)\(([^;]*)\);")


def network_of(library: Library) -> Network:
    (module,) = library.modules
    assert module.network is not None
    return module.network


def check_memory(module: Module) -> None:
    """Assert that no two tensors in the arena, or a tensor and scratch memory, share bytes at the same time.

    Except an output that overwrites an input of its operator, and views, whose operators do nothing.
    """
    network = module.network
    assert network is not None
    same: dict[int, int] = {}
    for operator in network.operators:
        if not operator.function:
            for number in (*operator.inputs, *operator.outputs):
                same[number] = same.get(operator.outputs[0], operator.outputs[0])
    lying = [(at, tensor) for at, tensor in enumerate(network.tensors) if tensor.memory == ARENA]
    for (i, a), (j, b) in itertools.combinations(lying, 2):
        times = range(max(a.first, b.first), min(a.last, b.last) + 1)
        if times and same_bytes(a, b) and root(same, i) != root(same, j):
            (time,) = times
            operator = network.operators[time]
            assert {i, j} & {*operator.inputs} and {i, j} & {*operator.outputs}, (a, b)
    for time, operator in enumerate(network.operators):
        scratch = operator.scratch
        for _, tensor in lying if scratch else ():
            alone = tensor.offset >= scratch.offset + scratch.size or tensor.offset + tensor.size <= scratch.offset
            assert alone or not tensor.first <= time <= tensor.last
    assert network.arena == module.main[0].workspace_size
    if network.operators:
        assert max(network.usage) <= module.workspace_bound <= network.arena


def same_bytes(a: NetworkTensor, b: NetworkTensor) -> bool:
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size


def root(same: dict[int, int], number: int) -> int:
    while same.get(number, number) != number:
        number = same[number]
    return number


def check_calls(library: Library) -> None:
    """Assert that the calls in C match the operators: function, constants, addresses in the arena."""
    network = network_of(library)
    called = [operator for operator in network.operators if operator.function]
    found = _CALL.findall(generated(library).partition("_model_id;")[2])
    assert [name for name, _ in found] == [operator.function for operator in called]
    for operator, (_, arguments) in zip(called, found, strict=True):
        assert set(re.findall(r"tvmgen_\w+", arguments)) == set(operator.symbols)
        tensors = [network.tensors[number] for number in (*operator.inputs, *operator.outputs)]
        places = {tensor.offset for tensor in tensors if tensor.memory == ARENA}
        inside = {int(offset) for offset in re.findall(r"arena\[(\d+)\]", arguments)}
        assert places <= inside
        start = operator.scratch.offset if operator.scratch else -1
        assert min(inside - places, default=start) == start, "what is no tensor is scratch memory"


@pytest.mark.parametrize("make", GRAPHS)
def test_odd_networks(make: Callable[[], Graph]) -> None:
    graph = make()
    library = compile_network(graph)
    network = network_of(library)
    check_memory(library.modules[0])
    check_calls(library)
    names = [tensor.name for tensor in network.tensors]
    assert len(names) == len(set(names)) and {*graph.inputs, *graph.outputs} <= set(names)
    assert read_archive(pack_archive(library), "net.tar") == library


def test_each_call_names_its_constants() -> None:
    s = Sketch()
    s.tensor("x", 1, 8, 8, 4)
    s.node(Conv2D(), "x", s.weights("w", 4, 1, 1, 4), s.tensor("a", 1, 8, 8, 4))
    s.node(Conv2D(), "a", s.weights("v", 4, 1, 1, 4), s.tensor("b", 1, 8, 8, 4))
    s.node(Add(), "b", s.tensor("c", 1, 8, 8, 4, constant=True), s.tensor("y", 1, 8, 8, 4))
    library = compile_graph(
        s.graph(["x"], ["y"]), replace(request("net"), options={"memory": "fastest"}), sha256(b"net")
    )
    first, second, third = network_of(library).operators
    assert (first.name, first.operator, first.function) == ("node a", "CONV_2D", "tvmgen_net_conv2d_1x1_8x8x4")
    assert second.function == first.function, "equal shapes share a function"
    assert first.symbols and second.symbols and not {*first.symbols} & {*second.symbols}
    assert any("constant" in symbol for symbol in third.symbols)
    assert [operator.macs for operator in (first, second, third)] == [1024, 1024, 0]
    tensors = network_of(library).tensors
    assert [(tensor.name, tensor.memory, tensor.first, tensor.last) for tensor in tensors] == [
        ("x", "input", 0, 0),
        ("a", "arena", 0, 1),
        ("b", "arena", 1, 2),
        ("y", "output", 2, 2),
    ]


def test_operators_that_run_row_by_row(shared: Path) -> None:
    wanted = CompileRequest("net", shared / "models/vww_int8.tflite", CPUS["cortex-m4"], options={"memory": "smallest"})
    (module,) = compiler_called("native").compile(wanted).modules
    check_memory(module)
    assert module.network is not None and module.network.macs == 3_766_476
    chains = [operator for operator in module.network.operators if " + " in operator.operator]
    assert chains and all(
        len(chain.name.split(" + ")) == len(chain.operator.split(" + ")) and chain.function for chain in chains
    )


def test_considered_kernels_are_those_of_the_cpu() -> None:
    found = {cpu: _kernels_of_a_layer(cpu) for cpu in ("cortex-m4", "cortex-m55", "cortex-m0plus", "host")}
    chosen = {cpu: [each.kernel for each in kernels if each.chosen] for cpu, kernels in found.items()}
    assert chosen == {
        "cortex-m4": ["fully_connected_dsp"],
        "cortex-m55": ["fully_connected_mve"],
        "cortex-m0plus": ["fully_connected_thumb"],
        "host": ["fully_connected"],
    }
    for kernels in found.values():
        for each in kernels:
            known = each.function.startswith("mlf_") and each.constants is not None and each.workspace is not None
            assert each.reason and known == bool(each.function) and (known or not each.chosen)
    served = [each.kernel for each in found["cortex-m55"] if each.function]
    assert served == ["fully_connected_mve", "fully_connected_dsp", "fully_connected"]


def _kernels_of_a_layer(cpu: str) -> tuple[NetworkKernel, ...]:
    s = Sketch()
    s.node(FullyConnected(), s.tensor("x", 1, 16), s.weights("w", 8, 16), s.tensor("y", 1, 8))
    wanted = replace(request("net"), cpu=CPUS[cpu])
    library = compile_graph(s.graph(["x"], ["y"]), wanted, sha256(b"net"))
    (operator,) = network_of(library).operators
    (chosen,) = (each for each in operator.kernels if each.chosen)
    assert f"{chosen.function}(" in generated(library)
    (main,) = library.modules[0].main
    assert chosen.constants == main.constants_size
    return operator.kernels


def test_operators_by_rows_have_the_kernels_of_each_node(shared: Path) -> None:
    wanted = CompileRequest("net", shared / "models/ic_int8.tflite", CPUS["cortex-m4"])
    library = compiler_called("native").compile(wanted)
    together = [each for each in network_of(library).operators if each.by_rows is not None]
    assert together
    for operator in together:
        nodes = operator.operator.split(" + ")
        chosen = [kernel.node for kernel in operator.kernels if kernel.chosen]
        assert chosen == ([*range(len(nodes))] if len(nodes) > 1 else [None])
        assert operator.by_rows is not None and operator.by_rows.memory < operator.by_rows.memory_alone
    assert read_archive(pack_archive(library), "net.tar") == library


def test_plans_of_other_tools_are_kept_and_wrong_ones_refused() -> None:
    library = compile_network(GRAPHS[0]())
    bare = Library(tuple(replace(module, network=None) for module in library.modules), library.version)
    other = replace(bare, other_files=(ArchiveFile(PurePosixPath("plan.json"), b'{"steps": []}'),))
    assert read_archive(pack_archive(other), "net.tar") == other
    name = library.modules[0].name
    text = json.dumps({"mlfbuild_plan": 1, "modules": {name: [{}] * 99}}).encode()
    files = archive_files(library)
    with pytest.raises(InputFileError) as error:
        read_files({**files, "plan.json": text}, "net.tar")
    assert error.value.code == "metadata-network-invalid" and "plan.json" in error.value.place


def test_views() -> None:
    s = Sketch()
    s.tensor("x", 1, 4, 4, 16)
    for name in ("a", "b"):
        s.node(Conv2D(), "x", s.weights(f"w{name}", 16, 1, 1, 16), s.tensor(name, 1, 4, 4, 16))
    s.node(Concatenation(1), "a", "b", s.tensor("both", 1, 8, 4, 16))
    s.node(Conv2D(), "both", s.weights("v", 3, 1, 1, 16), s.tensor("y", 1, 8, 4, 3))
    library = compile_network(s.graph(["x"], ["y"]))
    check_memory(library.modules[0])
    network = network_of(library)
    lying = {tensor.name: tensor for tensor in network.tensors}
    assert network.operators[2].function == ""
    assert (lying["a"].offset, lying["b"].offset) == (lying["both"].offset, lying["both"].offset + 256)
    assert network.usage[2] == 512, "bytes that two names have count once"


def test_state() -> None:
    x, kept, y = (Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "y"))
    state = State("kept", "y", np.zeros((1, 4), np.float32))
    graph = Graph("net", [x, kept, y], [Node("sum", Add(), ("x", "kept"), ("y",))], ["x"], [], [state])
    network = network_of(compile_network(graph))
    assert [(tensor.name, tensor.memory, tensor.offset) for tensor in network.tensors] == [
        ("x", "input", 0),
        ("kept", "state", 0),
        ("y", "state", 0),
    ]


def test_graph_has_its_calls_in_order(shared: Path) -> None:
    wanted = CompileRequest("net", shared / "models/kws_int8.tflite", CPUS["cortex-m4"], executor="graph")
    library = compiler_called("native").compile(wanted)
    network = network_of(library)
    graph = parse_graph(bytes(library.modules[0].graph_json or b""), "net.graph")
    assert [operator.function for operator in network.operators] == [
        node.function for node in graph.nodes if node.op == CALL
    ]
    assert (network.tensors, network.macs) == ((), 2_656_768), "executors decide where tensors lie"
    code = generated(library, "_lib1.c")
    for operator in network.operators:
        body = code.partition(f"TVM_DLL int32_t {operator.function}(")[2].partition("\n}\n")[0]
        assert set(re.findall(r"tvmgen_net_\w+", body)) - {"tvmgen_net_data"} == set(operator.symbols)


def test_names_follow_the_module_name() -> None:
    library = compile_network(GRAPHS[8]())
    (module,) = library.modules
    renamed = rename_modules(library, {module.name: "other"})
    check_calls(renamed)
    assert all("tvmgen_other_" in operator.function for operator in network_of(renamed).operators)
