"""`mlfbuild compare A B --inputs X.npz`: two networks on the same inputs, and the first operator that differs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild import open_archive
from mlfbuild.archive import pack_archive
from mlfbuild.core.files import sha256
from mlfbuild.datasets import DataKeys
from mlfbuild.library import CodegenFile, Library
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from mlfbuild.quantization import QuantizeKeys, quantize
from support.command import Folder
from support.float_networks import calibration, float_onnx, hostile_tflite
from support.native import request

Array = npt.NDArray[np.float32]
W1 = np.array([[1, 2, 0, 0], [0, -3, 1, 0], [1, 0, 0, -1], [0, 0, 2, 1]], np.float32)
W2 = np.array([[1, 1, 0, 0], [0, 0, 1, -2]], np.float32)
X = np.random.default_rng(0).normal(0, 1, (3, 1, 4)).astype(np.float32)


def network(first: Array = W1, second: Array = W2, *, prefix: str = "", name: str = "net", source: str = "x") -> Graph:
    """Return ``y = second |first x|`` with the tensors ``hidden`` and ``bent`` in between, named after ``prefix``."""
    hidden, bent = f"{prefix}hidden", f"{prefix}bent"
    tensors = [Tensor(each, (1, 4), DType.FLOAT32) for each in (source, hidden, bent)]
    tensors += [Tensor("w1", (4, 4), DType.FLOAT32, None, first), Tensor("w2", (2, 4), DType.FLOAT32, None, second)]
    nodes = [
        Node("first", ops.FullyConnected(), (source, "w1"), (hidden,)),
        Node("bend", ops.Abs(), (hidden,), (bent,)),
        Node("second", ops.FullyConnected(), (bent, "w2"), ("y",)),
    ]
    return Graph(name, [*tensors, Tensor("y", (1, 2), DType.FLOAT32)], nodes, [source], ["y"])


def changed(matrix: Array, row: int, column: int, value: float) -> Array:
    copy = matrix.copy()
    copy[row, column] = value
    return copy


def compiled(graph: Graph, *, trace: bool = True) -> Library:
    wanted = request(graph.name, cpu="host")
    return compile_graph(graph, replace(wanted, options={"trace": trace}), sha256(graph.name.encode()))


@pytest.fixture
def project(
    folder: Folder,
    tool: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Folder:
    """Return a folder with ``a.tar`` and ``x.npz`` with three cases."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    add(folder, "a.tar", compiled(network()))
    np.savez(folder.root / "x.npz", in0=X)
    return folder


def add(folder: Folder, name: str, library: Library) -> None:
    folder.write(name, pack_archive(library))


def compare(project: Folder, *arguments: str, inputs: str = "x.npz") -> Any:
    return project.run("compare", *arguments, "--inputs", inputs)


def test_equal_networks(project: Folder) -> None:
    add(project, "b.tar", compiled(network()))
    ended = compare(project, "a.tar", "b.tar")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == (
        "a.tar and b.tar: 3 cases, 1 output and 3 intermediate tensors compared\nall outputs are equal\n"
    )
    assert compare(project, "a.tar", "b.tar", "-q") == replace(ended, out="")


@pytest.mark.parametrize(
    ("other", "operator"),
    [
        (network(changed(W1, 1, 1, -2.5)), "FULLY_CONNECTED 'hidden', float32 [1, 4], function 'tvmgen_net_"),
        (network(W1, changed(W2, 1, 3, 7)), "FULLY_CONNECTED 'y', float32 [1, 2], function 'tvmgen_net_"),
    ],
    ids=["first", "last"],
)
def test_different_weight_is_located(project: Folder, other: Graph, operator: str) -> None:
    add(project, "b.tar", compiled(other))
    ended = compare(project, "a.tar", "b.tar")
    assert (ended.status, ended.err) == (1, "mlfbuild: a.tar and b.tar: their contents differ\n")
    assert f"\nthe first operator that differs: {operator}" in ended.out
    assert "  differs in 3 of 3 cases\n" in ended.out
    assert "\noutput 'y', float32 [1, 2] differs\n" in ended.out
    found = compare(project, "a.tar", "b.tar", "--format", "json").json
    assert (found["equal"], found["cases"], found["paired_by_name"], found["paired_by_order"]) == (False, 3, 3, 0)
    assert (found["operator"]["case"], found["operator"]["cases"]) == (0, 3)
    assert [output["name"] for output in found["outputs"]] == ["y"]


def test_reported_element_and_values(project: Folder) -> None:
    """The third row of the first matrix determines element 2 of the product."""
    other = changed(W1, 2, 0, 5)
    add(project, "b.tar", compiled(network(other)))
    found = compare(project, "a.tar", "b.tar", "--format", "json").json["operator"]
    told = found["difference"]
    assert (found["name"], found["operator"], told["element"], told["count"], told["elements"]) == (
        "hidden", "FULLY_CONNECTED", 2, 1, 4,
    )  # fmt: skip
    assert float(told["expected"]) == pytest.approx(float((W1 @ X[0, 0])[2]), rel=1e-6)
    assert float(told["got"]) == pytest.approx(float((other @ X[0, 0])[2]), rel=1e-6)


def test_an_early_difference_in_a_late_case_comes_first(project: Folder) -> None:
    """In case 0 only the last operator differs; in case 2 the first one does."""
    inputs = X.copy()
    inputs[:2, :, 1] = 0
    np.savez(project.root / "late.npz", in0=inputs)
    add(project, "b.tar", compiled(network(changed(W1, 1, 1, 9), changed(W2, 0, 0, 3))))
    found = compare(project, "a.tar", "b.tar", "--format", "json", inputs="late.npz").json
    assert (found["operator"]["name"], found["operator"]["case"], found["operator"]["cases"]) == ("hidden", 2, 1)
    assert (found["outputs"][0]["case"], found["outputs"][0]["cases"]) == (0, 3)


def test_float_differences_within_the_tolerance_of_verify(project: Folder) -> None:
    add(project, "b.tar", compiled(network(changed(W1, 0, 0, 1 + 1e-7))))
    assert compare(project, "a.tar", "b.tar").status == 0


def test_difference_without_effect_on_outputs(project: Folder) -> None:
    add(project, "b.tar", compiled(network(W1 * np.float32(-1))))
    ended = compare(project, "a.tar", "b.tar")
    assert ended.status == 1, "a tensor of that name is another one"
    assert "the first operator that differs: FULLY_CONNECTED 'hidden'" in ended.out
    assert ended.out.endswith("\nall outputs are equal\n")


def test_networks_with_other_names(project: Folder) -> None:
    """Both matrices differ in signs that the ABS between them removes; tensors paired by guess may differ."""
    add(project, "b.tar", compiled(network(W1 * np.float32(-1), prefix="other_")))
    ended = compare(project, "a.tar", "b.tar")
    assert (ended.status, ended.err) == (0, "")
    assert "\n  paired by name: 1, by order among tensors of the same type and shape: 2\n" in ended.out
    assert "\nan operator differs, but no output does: FULLY_CONNECTED 'hidden'" in ended.out
    assert "\n  paired by order, so these may be different tensors\n" in ended.out
    add(project, "b.tar", compiled(network(changed(W1, 1, 1, 9), prefix="other_")))
    ended = compare(project, "a.tar", "b.tar")
    assert ended.status == 1
    assert "\nthe first operator that differs: FULLY_CONNECTED 'hidden'" in ended.out


@pytest.mark.parametrize("other", [network(), network(W1, changed(W2, 1, 3, 7))], ids=["equal", "different"])
def test_archives_without_traced_tensors(project: Folder, other: Graph) -> None:
    add(project, "b.tar", compiled(other, trace=False))
    ended = compare(project, "a.tar", "b.tar")
    different = bool((other.tensor("w2").data != W2).any())
    assert ended.status == int(different)
    assert ended.out.startswith(
        "a.tar and b.tar: 3 cases, 1 output compared\n  b.tar exposes only its outputs: compile it with -O trace=true\n"
    )
    assert ("output 'y', float32 [1, 2] differs" in ended.out) == different
    assert "operator" not in ended.out


def counter(step: Array) -> Graph:
    """Return a network that adds its input and ``step`` to a state in each run."""
    tensors = [Tensor(each, (1, 4), DType.FLOAT32) for each in ("x", "kept", "more", "total", "y")]
    nodes = [
        Node("more", ops.Mul(), ("kept", "step"), ("more",)),
        Node("total", ops.Add(), ("x", "kept"), ("total",)),
        Node("y", ops.Add(), ("more", "total"), ("y",)),
    ]
    constant = Tensor("step", (1, 4), DType.FLOAT32, None, step)
    return Graph("net", [*tensors, constant], nodes, ["x"], ["y"], [State("kept", "y", np.zeros((1, 4), np.float32))])


def test_networks_with_a_state_report_the_first_wrong_case(project: Folder) -> None:
    """The state is 0 in case 0; the factor has an effect from case 1 on, and on the state from case 2 on."""
    for name, factor in (("one", 2), ("two", 3)):
        add(project, f"{name}.tar", compiled(counter(np.full((1, 4), factor, np.float32))))
    found = compare(project, "one.tar", "two.tar", "--format", "json").json
    assert (found["operator"]["name"], found["operator"]["operator"], found["operator"]["case"]) == ("more", "MUL", 1)


# Archives of TVM


def test_changed_parameter_of_a_graph_is_located(project: Folder, shared: Path) -> None:
    """Each parameter belongs to the network's last layer or to an earlier one."""
    path = shared / "archives/conv-graph.tar"
    library = open_archive(path)
    (module,) = library.modules
    params = {name: value.copy() for name, value in module.params.items()}
    params["p0"].reshape(-1)[0] += 1
    add(project, "broken.tar", replace(library, modules=(replace(module, params=params),)))
    vectors = str(shared / "archives/conv-graph.npz")
    ended = compare(project, str(path), "broken.tar", inputs=vectors)
    assert ended.status == 1
    assert (
        "\nthe first operator that differs: 'tvmgen_conv_fused_nn_contrib_conv2d_NCHWc_nn_relu', "
        "float32 [1, 2, 32, 32, 4]\n" in ended.out
    )
    assert compare(project, str(path), str(path), inputs=vectors).status == 0


def test_archives_of_two_versions_of_tvm(project: Folder, shared: Path) -> None:
    """0.8 and 0.14 have other names for most calls, and for the output."""
    paths = [str(shared / "archives" / name) for name in ("v5-kws_int8-graph.tar", "kws_int8-graph.tar")]
    ended = compare(project, *paths, inputs=str(shared / "archives/kws_int8-graph.npz"))
    assert (ended.status, ended.err) == (0, "")
    assert "1 output and 14 intermediate tensors compared\n  outputs were paired by position, because" in ended.out


def test_an_aot_archive_of_tvm(project: Folder, shared: Path) -> None:
    paths = [str(shared / "archives" / name) for name in ("add-aotc.tar", "add-graph.tar")]
    ended = compare(project, *paths, inputs=str(shared / "archives/add-graph.npz"))
    assert ended.status == 0
    assert "add-aotc.tar exposes only its outputs: use an archive for the graph executor\n" in ended.out


# Mistakes


def port_graph(dtype: DType = DType.FLOAT32, shape: tuple[int, ...] = (1, 4), inputs: int = 1) -> Graph:
    tensors = [Tensor(name, shape, dtype) for name in ("x", "b", "y")[: inputs + 1]]
    tensors[-1] = replace(tensors[-1], name="y")
    operands = ("x", "x") if inputs == 1 else ("x", "b")
    return Graph("net", tensors, [Node("sum", ops.Add(), operands, ("y",))], list(dict.fromkeys(operands)), ["y"])


@pytest.mark.parametrize(
    "other",
    [port_graph(DType.INT32), port_graph(shape=(2, 2)), port_graph(inputs=2), port_graph()],
    ids=["dtype", "shape", "count", "output"],
)
def test_different_interfaces_are_refused(project: Folder, other: Graph) -> None:
    add(project, "b.tar", compiled(other))
    refused = project.refused("compare", "a.tar", "b.tar", "--inputs", "x.npz")
    assert refused == (2, "interfaces-differ", "a.tar and b.tar")


def test_inputs_with_other_names_and_order(project: Folder) -> None:
    def difference(*names: str) -> Library:
        tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in (*sorted(names), "y")]
        return compiled(Graph("net", tensors, [Node("sub", ops.Sub(), ("p", "q"), ("y",))], list(names), ["y"]))

    add(project, "pq.tar", difference("p", "q"))
    add(project, "qp.tar", difference("q", "p"))
    np.savez(project.root / "pq.npz", p=X, q=X + 1)
    assert compare(project, "pq.tar", "qp.tar", inputs="pq.npz").status == 0, "paired by name"
    add(project, "b.tar", compiled(network(source="image")))
    ended = compare(project, "a.tar", "b.tar")
    assert (ended.status, ended.err) == (0, "")
    assert "\n  inputs were paired by position, because their names differ\n" in ended.out


def test_crash_or_timeout_names_the_archive(project: Folder) -> None:
    (module,) = compiled(network()).modules
    for name, code in (("crash", "*(volatile int *)8 = 1;"), ("hang", "for (volatile int i = 0;; i++) {}")):
        files = tuple(
            CodegenFile(file.path, file.data.replace(b"    return 0;\n}", f"    {code}\n    return 0;\n}}".encode()))
            for file in module.codegen
        )
        add(project, f"{name}.tar", Library((replace(module, codegen=files),)))
    inputs = ("--inputs", "x.npz")
    assert project.refused("compare", "a.tar", "crash.tar", *inputs) == (7, "run-crashed", "crash.tar: net")
    arguments = ("compare", "hang.tar", "a.tar", *inputs, "--timeout", "0.5")
    assert project.refused(*arguments) == (7, "run-timed-out", "hang.tar: net")


def test_unrunnable_code_names_the_archive(project: Folder, shared: Path) -> None:
    foreign = shared / "archives/conv-llvm_graph_m4.tar"
    place = f"{foreign}: conv: codegen/host/lib/conv_lib0.o"
    arguments = ("compare", "a.tar", str(foreign), "--inputs", "x.npz")
    assert project.refused(*arguments) == (2, "object-for-another-cpu", place)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["--inputs", "none.npz"], (5, "no-such-input", "none.npz")),
        (["--inputs", "a.tar"], (5, "not-a-vectors-file", "a.tar")),
        (["--inputs", "bad.npz"], (5, "vectors-array-type", "bad.npz: in0")),
        (["--inputs", "empty.npz"], (1, "vectors-without-cases", "empty.npz")),
        (["--inputs", "x.npz", "--model", "kws"], (2, "unknown-module", "a.tar")),
        (["--inputs", "x.npz", *["--model", "net"] * 3], (2, "too-many-models", "--model")),
        (["--inputs", "x.npz", "--timeout", "0"], (2, "command-line-invalid", "")),
        (["--timeout", "3"], (2, "option-needs-another", "--timeout")),
        (["--model", "net"], (2, "option-needs-another", "--model")),
    ],
)
def test_mistakes(project: Folder, arguments: list[str], refused: tuple[int, str, str]) -> None:
    np.savez(project.root / "bad.npz", in0=X.astype(np.float64))
    np.savez(project.root / "empty.npz", in0=X[:0])
    assert project.refused("compare", "a.tar", "a.tar", *arguments) == refused


def test_networks_of_different_names(project: Folder) -> None:
    both = Library((*compiled(network(name="kws")).modules, *compiled(network(name="vww")).modules))
    add(project, "both.tar", both)
    arguments = ("compare", "both.tar", "a.tar", "--inputs", "x.npz")
    assert project.refused(*arguments) == (2, "module-not-chosen", "both.tar")
    found = compare(project, "both.tar", "a.tar", "--model", "vww", "--model", "net", "--format", "json").json
    assert (found["models"], found["equal"]) == (["vww", "net"], True)


@pytest.mark.sweep  # on each push, docs/converting.md runs it, and test_quantize.py checks the advice
def test_a_quantised_network_is_ranked_beside_its_float_one(project: Folder) -> None:
    for name, network in (("net.tflite", hostile_tflite()), ("other.onnx", float_onnx())):
        project.write(name, network)
    data = DataKeys(calibration(project.root / "x.npz", 8))
    quantize(project.root / "net.tflite", QuantizeKeys(data), project.root / "int8.tflite")
    found = compare(project, "net.tflite", "int8.tflite", "--format", "json").json
    assert found["tensors"][0]["advice"] == {"kind": "keep-float", "nodes": ["t3", "t6"]}
    assert (found["cases"], [each["name"] for each in found["tensors"][:2]]) == (8, ["t6", "t7"])
    assert "keep-float: [t3, t6]" in compare(project, "net.tflite", "int8.tflite").out
    for first, second, code in (
        ("int8.tflite", "net.tflite", "quantized-network-first"),
        ("other.onnx", "int8.tflite", "networks-not-paired"),
    ):
        assert project.refused("compare", first, second, "--inputs", "x.npz")[:2] == (2, code)
