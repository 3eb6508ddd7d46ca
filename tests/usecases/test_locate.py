"""The first wrong operator is found by running every operator's result on the target."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild import native
from mlfbuild.jobs import load, target_jobs
from mlfbuild.library import CompileRequest, Library
from mlfbuild.native import build
from mlfbuild.native.graph import ConstantBudget, Graph
from mlfbuild.usecases.build import build_project as build_all
from mlfbuild.usecases.verify import verify_job, verify_jobs
from support.oracle import tflite_micro_cases
from support.tflite_builder import Network

RANDOM = np.random.default_rng(5)


@pytest.fixture
def project(tmp_path: Path, tool: Callable[..., str]) -> Path:
    """A project of three FULLY_CONNECTED layers for this machine, with two cases from TensorFlow Lite Micro."""
    tool("gcc", "cmake", "ninja")
    network = Network()
    tensor = network.input((1, 6), scale=0.05)
    for _ in range(3):
        weights = RANDOM.integers(-127, 128, (6, 6), np.int8)
        tensor = network.fully_connected(tensor, weights, np.zeros(6, np.int32), weight_scales=[0.01], scale=0.05)
    write_project(tmp_path, network.build([tensor]), cases=2)
    return tmp_path


def write_project(folder: Path, model: bytes, cases: int) -> None:
    inputs = RANDOM.integers(-128, 128, (cases, 1, 6), np.int8)
    outputs = np.stack([case[0] for case in tflite_micro_cases(model, [[case] for case in inputs])])
    np.savez(folder / "net.npz", in0=inputs, out0=outputs)
    (folder / "net.tflite").write_bytes(model)
    (folder / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {host: {cpu: host}}\nmodels: {net: {source: net.tflite, vectors: net.npz}}\n"
    )


def streaming_network() -> bytes:
    """A sum that is kept between runs, then a layer."""
    network = Network()
    handle = network.variable("total")
    total = network.add(network.read(handle, (1, 6), scale=0.5), network.input((1, 6), scale=0.05), scale=0.5)
    network.assign(handle, total)
    weights = RANDOM.integers(-127, 128, (6, 6), np.int8)
    layer = network.fully_connected(total, weights, np.zeros(6, np.int32), weight_scales=[0.01], scale=0.5)
    return network.build([layer])


def patch_compiler(monkeypatch: pytest.MonkeyPatch, compile_graph: object) -> None:
    """Replace the compiler in its face first, because the face would otherwise load and keep the replacement."""
    monkeypatch.setattr(native, "compile_graph", compile_graph)
    monkeypatch.setattr(build, "compile_graph", compile_graph)


def verified(folder: Path) -> str:
    loaded = load(folder / "mlfbuild.yml")
    targets = target_jobs(loaded)
    build_all(targets)
    (job,) = verify_jobs(loaded, targets, folder / "build")
    report = verify_job(job)
    assert report.passed == (not report.wrong)
    return report.text()


def test_correct_model_has_no_hint(project: Path) -> None:
    assert verified(project) == "net: 2 cases right on host, arena 22 of 32 bytes used"


def test_broken_second_operator_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = build.compile_graph

    def broken(graph: Graph, request: CompileRequest, model_id: str, budget: ConstantBudget | None = None) -> Library:
        bias = graph.tensor(str(graph.nodes[1].inputs[2]))
        assert bias.data is not None
        worse = replace(bias, data=bias.data + np.int32(1000))
        tensors = [worse if tensor is bias else tensor for tensor in graph.tensors.values()]
        return sound(Graph(graph.name, tensors, graph.nodes, graph.inputs, graph.outputs), request, model_id, budget)

    patch_compiler(monkeypatch, broken)
    lines = verified(project).splitlines()
    assert lines[0].startswith("net: case 0, output 0 (t9), element 0: expected ")
    assert lines[-1] == "net: the first operator with a wrong result on this machine is FULLY_CONNECTED 't6'"


def test_wrong_vectors_are_distinguished(project: Path) -> None:
    arrays = dict(np.load(project / "net.npz"))
    arrays["out0"][1, 0, 3] ^= 1
    np.savez(project / "net.npz", **arrays)
    lines = verified(project).splitlines()
    assert "case 1" in lines[0]
    assert "element 3: expected" in lines[0]
    assert "on this machine every operator matches its reference" in lines[-1]


def test_rounding_errors_of_a_small_probability_are_right(project: Path) -> None:
    """A sigmoid of -9.4 has nine times the relative rounding error of its argument."""
    network = Network()
    weights, bias = np.full((1, 6), -2, np.float32), np.array([2.6], np.float32)
    logit = network.fully_connected(network.input((1, 6), dtype="float32"), weights, bias, dtype="float32")
    model = network.build([network.reshape(network.unary("LOGISTIC", logit, dtype="float32"), (1,))])
    inputs = np.ones((1, 1, 6), np.float32)
    probability = tflite_micro_cases(model, [[inputs[0]]])[0][0]
    assert 8e-5 < probability.item() < 9e-5
    (project / "net.tflite").write_bytes(model)
    np.savez(project / "net.npz", in0=inputs, out0=[probability * np.float32(1 + 8.5e-5)])
    assert verified(project).startswith("net: 1 case right on host")

    np.savez(project / "net.npz", in0=inputs, out0=[probability * np.float32(1.5)])
    lines = verified(project).splitlines()
    assert "case 0, output 0" in lines[0]
    assert "add a tolerance to the vectors" in lines[-1]


@pytest.mark.parametrize("cases", [1, 4])
def test_cases_of_a_streaming_network_are_one_stream(project: Path, cases: int) -> None:
    write_project(project, streaming_network(), cases)
    assert verified(project).startswith(f"net: {cases} case{'s' * (cases > 1)} right on host")


def test_operator_that_fails_late_in_a_stream_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(project, streaming_network(), 4)
    sound = build.compile_graph

    def broken(graph: Graph, request: CompileRequest, model_id: str, budget: ConstantBudget | None = None) -> Library:
        states = [replace(state, after=state.before) for state in graph.states]
        tensors = list(graph.tensors.values())
        return sound(
            Graph(graph.name, tensors, graph.nodes, graph.inputs, graph.outputs, states), request, model_id, budget
        )

    patch_compiler(monkeypatch, broken)
    lines = verified(project).splitlines()
    assert lines[0].startswith("net: case 1, output 0")
    assert lines[-1].startswith("net: the first operator with a wrong result on this machine is RESHAPE")  # reads it
