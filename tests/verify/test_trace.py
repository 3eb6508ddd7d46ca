"""Intermediate tensors on this machine equal the outputs of each operator, for every compiler."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import mlfbuild
from mlfbuild.core.errors import ProcessFailedError, UnsupportedModelError
from mlfbuild.core.files import sha256
from mlfbuild.library import CodegenFile, Library, Module, TensorInfo
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate, evaluate_in_turn
from mlfbuild.verify.compare import first_difference
from mlfbuild.verify.host import Model
from mlfbuild.verify.host.trace import traced_tensors
from support.errors import raises
from support.libraries import graph_library
from support.native import compile_network, request
from support.random_graphs import random_case
from support.sketch import Sketch

Array = npt.NDArray[np.generic]
Load = Callable[..., Model]


@pytest.fixture
def load(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    tool: Callable[[str], str],
) -> Iterator[Load]:
    """Return a function that loads a library or an archive, isolated by default."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    models: list[Model] = []

    def make(source: Library | Path, *, isolated: bool = True) -> Model:
        path = source if isinstance(source, Path) else tmp_path / f"{len(models)}.tar"
        if isinstance(source, Library):
            mlfbuild.write_archive(source, path)
        models.append(mlfbuild.load(path, isolated=isolated, timeout=20))
        return models[-1]

    yield make
    for model in models:
        model.close()


def traced(graph: Graph, memory: str = "balanced") -> Library:
    wanted = request(graph.name, memory=memory, cpu="host")
    options = {**wanted.options, "trace": True}
    return compile_graph(graph, replace(wanted, options=options), sha256(graph.name.encode()))


def assert_as_in(expected: dict[str, Array], got: dict[str, Array]) -> None:
    for name, value in got.items():
        right = expected[name]
        assert (value.dtype, value.shape) == (right.dtype, right.shape), name
        difference = first_difference(right.reshape(-1), value.reshape(-1))
        assert difference is None, f"{name}: {difference}"


def blocks() -> Graph:
    """Convolutions that could run row by row, parts that are views, and a few bytes at the end."""
    s = Sketch("blocks")
    s.tensor("image", 1, 16, 16, 4)
    s.node(ops.Conv2D(padding=((1, 1), (1, 1))), "image", s.weights("w1", 8, 3, 3, 4), s.tensor("wide", 1, 16, 16, 8))
    s.node(
        ops.DepthwiseConv2D(padding=((1, 1), (1, 1))),
        "wide",
        s.weights("w2", 1, 3, 3, 8),
        s.tensor("deep", 1, 16, 16, 8),
    )
    s.node(ops.Conv2D(stride=(2, 2)), "deep", s.weights("w3", 4, 1, 1, 8), s.tensor("small", 1, 8, 8, 4))
    s.node(ops.Concatenation(0), "small", "small", s.tensor("twice", 2, 8, 8, 4))
    s.node(ops.Reshape(), "twice", s.tensor("flat", 2, 256))
    s.node(ops.FullyConnected(), "flat", s.weights("w4", 3, 256), s.tensor("logits", 2, 3, scale=4.0))
    return s.graph(["image"], ["logits"])


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
def test_every_tensor_equals_the_output_of_its_operator(load: Load, isolated: bool) -> None:
    graph = blocks()
    model = load(traced(graph), isolated=isolated)
    inputs = {"image": np.random.default_rng(3).integers(-128, 128, (1, 16, 16, 4), np.int8)}
    got = model.trace(inputs)
    assert list(got) == ["wide", "deep", "small", "twice", "flat", "logits"]
    assert_as_in(evaluate(graph, inputs), got)
    operators = [each.operator for each in model.traced]
    assert operators == ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "CONCATENATION", "RESHAPE", "FULLY_CONNECTED"]
    functions = [each.function for each in model.traced]
    assert functions[0] == "tvmgen_blocks_conv2d_3x3_16x16x4_to_16x16x8"
    assert functions[4] == "", "a reshape has nothing to do"


def test_results_equal_those_without_trace(load: Load) -> None:
    """Without trace, operators run row by row, and the arena is smaller."""
    graph = blocks()
    plain, whole = compile_network(graph), traced(graph)
    assert plain.modules[0].main[0].workspace_size < whole.modules[0].main[0].workspace_size
    inputs = {"image": np.random.default_rng(5).integers(-128, 128, (1, 16, 16, 4), np.int8)}
    expected = load(plain).run(inputs)["logits"]
    model = load(whole)
    np.testing.assert_array_equal(model.run(inputs)["logits"], expected)
    outputs, tensors = model.run_traced(inputs)
    np.testing.assert_array_equal(outputs["logits"], expected)
    np.testing.assert_array_equal(tensors["logits"], expected)


def test_mlperf_tiny_network(shared: Path, load: Load) -> None:
    data = (shared / "models/kws_int8.tflite").read_bytes()
    graph = parse_tflite(data, "kws", "kws")
    case = np.load(shared / "golden/kws_int8.npz")["in0"][0]
    inputs = {graph.inputs[0]: case.reshape(graph.tensor(graph.inputs[0]).shape)}
    got = load(traced(graph)).trace(inputs)
    assert len(got) == 13
    assert_as_in(evaluate(graph, inputs), got)


def check_random_network(load: Load, seed: int) -> None:
    """Compile a random network for either executor, and compare the outputs of every operator."""
    case = random_case(seed, 16)
    graph = parse_tflite(case.model, f"net{seed}", "net")
    inputs = dict(zip(graph.inputs, case.inputs, strict=True))
    wanted = request(graph.name, cpu="host")
    as_graph = compile_graph(graph, replace(wanted, executor="graph"), sha256(graph.name.encode()))
    for library in (traced(graph), as_graph):
        model = load(library, isolated=False)
        if model.traced:
            outputs, tensors = model.run_traced(inputs)
        else:  # passes left no operator
            network = library.modules[0].network
            assert network is not None and not network.operators
            outputs, tensors = model.run(inputs), {}
        expected = evaluate(graph, inputs)
        assert_as_in(expected, tensors)
        # By position: a tensor that is an output twice has a second name in C.
        for name, output in zip(graph.outputs, outputs.values(), strict=True):
            assert_as_in(expected, {name: output})


def test_random_networks(load: Load) -> None:
    for seed in range(500, 503):
        check_random_network(load, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(3000, 3100))
def test_many_random_networks(load: Load, seed: int) -> None:
    check_random_network(load, seed)


def counter() -> Graph:
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "sum", "y")]
    nodes = [Node("sum", ops.Add(), ("x", "kept"), ("sum",)), Node("double", ops.Add(), ("sum", "sum"), ("y",))]
    return Graph("net", tensors, nodes, ["x"], ["y"], [State("kept", "sum", np.ones((1, 4), np.float32))])


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
def test_traced_and_other_runs_share_one_state(load: Load, isolated: bool) -> None:
    model = load(traced(counter()), isolated=isolated)
    runs = [{"x": np.full((1, 4), value, np.float32)} for value in (1, 2, 3)]
    first, second, third = evaluate_in_turn(counter(), runs)
    assert_as_in(first, model.trace(runs[0]))
    assert_as_in(second, model.run(runs[1]))
    assert_as_in(third, model.trace(runs[2]))
    model.reset()
    assert_as_in(first, model.trace(runs[0]))


def test_network_without_operators(load: Load) -> None:
    graph = Graph("net", [Tensor("x", (1, 4), DType.FLOAT32)], [], ["x"], ["x"])
    model = load(traced(graph))
    with raises(UnsupportedModelError, "module-not-traceable", "net"):
        model.trace({"x": np.zeros((1, 4), np.float32)})


def test_network_without_trace_is_rejected(load: Load) -> None:
    model = load(compile_network(counter()))
    assert model.traced == ()
    with raises(UnsupportedModelError, "module-not-traceable", "net") as caught:
        model.trace({"x": np.zeros((1, 4), np.float32)})
    assert "-O trace=true" in caught.value.hint


def edited(library: Library, old: str, new: str, name: str = "_lib0.c") -> Library:
    (module,) = library.modules
    files = [
        CodegenFile(file.path, file.data.replace(old.encode(), new.encode())) if file.path.name.endswith(name) else file
        for file in module.codegen
    ]
    assert any(file.data != was.data for file, was in zip(files, module.codegen, strict=True))
    return Library((replace(module, codegen=tuple(files)),))


def test_errors_of_the_code_are_errors_of_a_traced_run(load: Load) -> None:
    library = traced(counter())
    inputs = {"x": np.zeros((1, 4), np.float32)}
    with raises(ProcessFailedError, "run-failed", "net"):
        load(edited(library, "    return 0;\n}", "    return 7;\n}")).trace(inputs)
    crash = "    *(volatile int *)8 = 1;\n    return 0;\n}"
    with raises(ProcessFailedError, "run-crashed", "net"):
        load(edited(library, "    return 0;\n}", crash)).trace(inputs)
    with pytest.raises(ValueError, match=r"^net: input 'x': is missing$"):
        load(library).trace({})


def test_trace_larger_than_memory_is_rejected(load: Load) -> None:
    """The code does not run if the tensors in the metadata are too large."""
    (module,) = traced(counter()).modules
    huge = replace(module.trace[0], tensor=TensorInfo("sum", "float32", 1 << 42, (1 << 40,)))
    model = load(Library((replace(module, trace=(huge, *module.trace[1:])),)))
    with raises(UnsupportedModelError, "trace-too-large", "net"):
        model.trace({"x": np.zeros((1, 4), np.float32)})


# Graphs


def test_graph_of_the_native_compiler(load: Load) -> None:
    """Its calls have the names in the model; a reshape is not a call."""
    graph = blocks()
    library = compile_graph(graph, replace(request("blocks"), executor="graph"), sha256(b"blocks"))
    model = load(library)
    inputs = {"image": np.random.default_rng(3).integers(-128, 128, (1, 16, 16, 4), np.int8)}
    got = model.trace(inputs)
    assert list(got) == ["wide", "deep", "small", "twice", "logits"]
    assert_as_in(evaluate(graph, inputs), got)
    assert [each.function for each in model.traced][-1] == "tvmgen_blocks_fully_connected_2x256_to_2x3"
    (module,) = library.modules
    lying = replace(module, trace=module.trace[1:])
    assert [each.tensor.name for each in traced_tensors(lying)][-1] == "tvmgen_blocks_fully_connected_5"


def test_graph_of_tvm(shared: Path, load: Load) -> None:
    model = load(shared / "archives/many-graph.tar")
    x, y = np.random.default_rng(1).normal(0, 1, (2, 2, 4)).astype(np.float32)
    outputs, got = model.run_traced({"x": x, "y": y})
    assert list(got) == ["tvmgen_many_fused_add", "tvmgen_many_fused_subtract_nn_relu", "tvmgen_many_fused_nn_softmax"]
    assert [each.function for each in model.traced] == list(got)
    exponents = np.exp(x + y - (x + y).max(axis=-1, keepdims=True))
    expected = (x + y, np.maximum(x - y, 0), exponents / exponents.sum(axis=-1, keepdims=True))
    for value, right in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=0, atol=1e-6)
    assert [any((value == tensor).all() for tensor in got.values()) for value in outputs.values()] == [True] * 3


@pytest.mark.parametrize("archive", ["conv-graph", "conv-graphlink", "kws_int8-graph", "v5-kws_int8-graph"])
def test_reused_storage(shared: Path, load: Load, archive: str) -> None:
    """The first tensor is overwritten at the end, and the last one is the output."""
    model = load(shared / "archives" / f"{archive}.tar", isolated=False)
    vectors = np.load(shared / "archives" / f"{archive}.npz")
    (source,) = model.inputs
    value = vectors[f"in_{source.name}"][0]
    outputs, got = model.run_traced({source.name: value})
    (output,) = outputs.values()
    first, *_, last = got.values()
    np.testing.assert_array_equal(last, output)
    assert first.shape == model.traced[0].tensor.shape
    if "kws" in archive:
        np.testing.assert_array_equal(first, value.astype(np.int16) - 83, err_msg="the input without its zero point")
    else:
        np.testing.assert_array_equal(
            first, value.transpose(0, 2, 3, 1)[:, None], err_msg="the input in another layout"
        )


def graph_module(*names: str, dtype: str = "float32", function: str = "tvmgen_net_add") -> Module:
    """Return a graph of calls ``names``, each of the previous result and the parameter, on tensors of ``dtype``."""
    (module,) = graph_library("net").modules
    graph = json.loads(bytes(module.graph_json or b""))
    entries = len(names) + 2
    call = graph["nodes"][2]
    graph["nodes"][2:] = [
        {
            **call,
            "name": name,
            "attrs": {**call["attrs"], "func_name": function},
            "inputs": [[at and at + 1, 0, 0], [1, 0, 0]],
        }
        for at, name in enumerate(names)
    ]
    graph["heads"] = [[entries - 1, 0, 0]]
    graph["attrs"] = {
        "dltype": ["list_str", [dtype] * entries],
        "storage_id": ["list_int", list(range(entries))],
        "shape": ["list_shape", [[1, 2]] * entries],
    }
    graph["node_row_ptr"] = list(range(entries + 1))
    return replace(module, graph_json=json.dumps(graph).encode())


def test_names_of_a_graph() -> None:
    names = [each.tensor.name for each in traced_tensors(graph_module("add", "add", "last"))]
    assert names == ["add", "add#2", "last"]
    assert traced_tensors(graph_module("add", function="__nop")) == (), "nothing is called"
    assert traced_tensors(graph_module("add", dtype="handle")) == (), "nothing that numpy has a value for"
