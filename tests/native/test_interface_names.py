"""Names of inputs and outputs: those of the key ``interface``, or names that survive another conversion."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlfbuild.archive import open_archive, pack_archive
from mlfbuild.core import UnsupportedModelError, UsageError
from mlfbuild.jobs import target_jobs
from mlfbuild.jobs.tree.verification import Subject, subject_of
from mlfbuild.library import Library, own_name, port_names
from mlfbuild.library.keys import InterfaceNames
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.ops import Add
from mlfbuild.project import load_project
from mlfbuild.verify.host import load
from support.errors import raises
from support.native import generated, request
from support.sketch import Sketch

KERAS = "serving_default_keras_tensor_{}:0"


def network(inputs: tuple[str, str], outputs: tuple[str, str]) -> Graph:
    """Return a graph whose outputs are the sums a + a and a + b of its inputs."""
    s = Sketch()
    for name in inputs:
        s.tensor(name, 2)
    s.node(Add(), inputs[0], inputs[0], s.tensor(outputs[0], 2))
    s.node(Add(), inputs[0], inputs[1], s.tensor(outputs[1], 2))
    return s.graph(list(inputs), list(outputs))


def compiled(graph: Graph, executor: str = "aot", **names: tuple[str, ...] | dict[str, str]) -> Library:
    wanted = replace(request(graph.name), executor=executor, interface=InterfaceNames(**names))
    return compile_graph(graph, wanted, "0" * 64)


def ports(library: Library) -> list[str]:
    (module,) = library.modules
    return [tensor.name for tensor in (*module.inputs, *module.outputs)]


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("serving_default_keras_tensor_12:0", ""), ("serving_default_input_2:0", ""),
        ("serving_default_args_0:0", ""), ("serving_default_mfcc:0", "mfcc"), ("StatefulPartitionedCall:1", ""),
        ("StatefulPartitionedCall_1:0", ""), ("PartitionedCall:0", ""), ("keras_tensor_7", ""),
        ("sequential_3/dense_7/Softmax", ""), ("495", ""), ("onnx::Conv_12", ""), ("/fc/Gemm_output_0", ""),
        ("input_1", "input_1"), ("Identity", "Identity"), ("input.1", "input.1"), ("a:0", "a:0"),
        ("scores", "scores"),
    ],
)  # fmt: skip
def test_generated_parts_of_names_are_removed(name: str, own: str) -> None:
    assert own_name(name) == own


def test_generated_names_are_numbered_by_position() -> None:
    generated_names = ("StatefulPartitionedCall:1", "StatefulPartitionedCall:0")
    assert port_names([KERAS.format(3), "mfcc", KERAS.format(9)], generated_names) == (
        ("input", "mfcc", "input_2"),
        ("output", "output_1"),
    )
    assert port_names(["7", "input"], ["7"]) == (("input", "input_"), ("input",))


@given(st.lists(st.sampled_from([*"abc", *map(str, range(9)), "input", "input_", "output_1"]), min_size=2, unique=True))
def test_chosen_names_are_as_distinct_as_those_of_the_file(names: list[str]) -> None:
    inputs, outputs = port_names(names[::2], names[1::2])
    assert len({*inputs, *outputs}) == len(names)


def test_converting_again_changes_no_byte_of_the_header() -> None:
    old, new = (
        compiled(network((KERAS.format(at), KERAS.format(at + 1)), (f"StatefulPartitionedCall_{at}:0", f"{at}")))
        for at in (3, 41)
    )
    assert generated(old, "tvmgen_net.h") == generated(new, "tvmgen_net.h")
    assert ports(old) == ["input", "input_1", "output", "output_1"]


def test_names_by_position_and_by_those_of_the_file() -> None:
    graph = network(("x:0", KERAS.format(2)), ("y", "StatefulPartitionedCall:0"))
    library = compiled(graph, inputs=("audio", "video"), outputs={"StatefulPartitionedCall:0": "scores"})
    assert ports(library) == ["audio", "video", "y", "scores"]
    header = generated(library, "tvmgen_net.h")
    assert "struct tvmgen_net_inputs {\n  void* audio;\n  void* video;\n};" in header
    assert "#define TVMGEN_NET_SCORES_SIZE 2\n" in header
    (module,) = library.modules
    assert [tensor.source_name for tensor in module.inputs] == ["x:0", KERAS.format(2)]
    assert module.network is not None
    assert [tensor.name for tensor in module.network.tensors] == ["audio", "video", "y", "scores"]


def test_the_archive_keeps_the_names_of_the_file(tmp_path: Path) -> None:
    library = compiled(network(("x:0", "b"), ("y", "z")), inputs=("audio", "b"))
    (tmp_path / "net.tar").write_bytes(pack_archive(library))
    (module,) = open_archive(tmp_path / "net.tar").modules
    assert module.inputs == library.modules[0].inputs
    assert module.inputs[0].names == ("audio", "x:0", "x_0")


@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_runs_accept_both_names(
    executor: str, tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library = compiled(network(("x:0", "b"), ("y", "z")), executor, inputs=("audio", "video"), outputs=("one", "two"))
    (tmp_path / "net.tar").write_bytes(pack_archive(library))
    model = load(tmp_path / "net.tar")
    a, b = np.array([1, 2], np.int8), np.array([4, 6], np.int8)
    outputs = model.run({"x:0": a, "video": b})
    assert list(outputs) == ["one", "two"]
    assert {name: values.tolist() for name, values in outputs.items()} == {
        name: values.tolist() for name, values in model.run({"audio": a, "b": b}).items()
    }
    with pytest.raises(ValueError, match="given twice"):
        model.run({"x:0": a, "audio": a, "video": b})
    with pytest.raises(ValueError, match="missing"):
        model.run({"x:0": a})


@pytest.mark.parametrize(
    ("names", "code", "place"),
    [
        ({"inputs": ("a",)}, "interface-count", "net: interface.inputs"),
        ({"outputs": ("a", "b", "c")}, "interface-count", "net: interface.outputs"),
        ({"inputs": {"q": "a"}}, "interface-name-unknown", "net: interface.inputs"),
        ({"outputs": {"x": "a"}}, "interface-name-unknown", "net: interface.outputs"),
    ],
)
def test_names_that_do_not_fit_the_model(names: dict[str, tuple[str, ...]], code: str, place: str) -> None:
    with raises(UsageError, code, at=place):
        compiled(network(("x", "b"), ("y", "z")), **names)


def test_the_key_separates_names_that_are_equal_in_c() -> None:
    graph = network(("a:0", "a/0"), ("y", "z"))
    with pytest.raises(UnsupportedModelError):
        compiled(graph)
    assert ports(compiled(graph, inputs=("first", "second")))[:2] == ["first", "second"]


def test_another_name_is_another_archive(tmp_path: Path) -> None:
    def settings(interface: str) -> set[str]:
        text = f"mlfbuild: 1\ntargets: {{m4: {{cpu: cortex-m4}}}}\nmodels: {{net: {{source: n.tflite{interface}}}}}\n"
        (tmp_path / "mlfbuild.yml").write_text(text)
        (tmp_path / "n.tflite").touch()
        ((job,),) = (target.models for target in target_jobs(load_project(tmp_path / "mlfbuild.yml")))
        return {job.settings(), job.tree_settings()}

    variants = ["", ", interface: {inputs: [a]}", ", interface: {outputs: [a]}", ", interface: {inputs: {x: a}}"]
    assert len(set.union(*map(settings, variants))) == 2 * len(variants)


def test_test_firmware_knows_both_names() -> None:
    library = compiled(network(("x:0", "b"), ("y", "z")), inputs=("audio", "b"))
    subject = subject_of(library.modules[0], "mps2-an386")
    read = Subject.from_json(subject.to_json().encode(), "image")
    assert [tensor.names for tensor in read.inputs] == [("audio", "x:0", "x_0"), ("b",)]
