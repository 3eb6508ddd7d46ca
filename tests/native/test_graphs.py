"""Unusual networks, in which inputs, outputs, constants and aliases meet: C equals the numpy references."""

import importlib

import numpy as np
import pytest

from mlfbuild.core.files import sha256
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import Add, MaxPool2D, Quantize, Reshape
from support.host_c import run_many_on_host, run_on_host
from support.native import compile_bytes, compile_network, request
from support.odd_networks import (
    GRAPHS,
    folded_to_constants,
    in_place_chain,
    input_is_output,
    same_output_twice,
    values_of,
)
from support.sketch import Sketch
from support.tflite_builder import Network

FOLDING = importlib.import_module("mlfbuild.native.passes.fold_constants")  # its name is the function's, too


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    """The (expected, actual) outputs of every graph, from one program."""
    jobs, expected = [], []
    for make in GRAPHS:
        graph = make()
        library = compile_network(graph)
        values = values_of(graph)
        known = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
        expected.append([known[name] for name in graph.outputs])
        jobs.append((library, library.modules[0], values))
    got = run_many_on_host(jobs)
    return {make.__name__: pair for make, pair in zip(GRAPHS, zip(expected, got, strict=True), strict=True)}


@pytest.mark.parametrize("name", [make.__name__ for make in GRAPHS])
def test_outputs(name: str, results: dict[str, tuple[list[np.ndarray], list[np.ndarray]]]) -> None:
    expected, got = results[name]
    assert len(expected) == len(got)
    for wanted, value in zip(expected, got, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_tensor_that_is_several_outputs_has_several_names() -> None:
    (module,) = compile_network(same_output_twice()).modules
    assert [info.name for info in module.outputs] == ["y", "y_2", "y_3"]


def test_arena_of_a_chain_is_one_tensor() -> None:
    graph = in_place_chain()  # for a core whose kernels need no scratch memory
    (module,) = compile_graph(graph, request(graph.name, cpu="rv32imc"), sha256(b"")).modules
    assert module.main[0].workspace_size == 336  # 9 * 9 * 4 = 324, aligned to 16


def test_no_arena_if_inputs_and_outputs_suffice() -> None:
    (module,) = compile_network(input_is_output()).modules
    assert module.main[0].workspace_size == 0


def test_constants_that_are_too_large_to_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FOLDING, "_worth_its_flash", lambda *_: False)
    graph = folded_to_constants()
    library = compile_network(graph)
    values = values_of(graph)
    known = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
    for wanted, got in zip(graph.outputs, run_on_host(library, values), strict=True):
        np.testing.assert_array_equal(got, known[wanted])


def test_a_reshaped_constant_that_is_too_large_to_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FOLDING, "_worth_its_flash", lambda *_: False)
    s = Sketch("reshaped")
    s.node(Reshape(), s.tensor("a", 6, constant=True), s.tensor("matrix", 2, 3))
    s.node(Add(), s.tensor("x", 2, 3), "matrix", s.tensor("y", 2, 3))
    graph = s.graph(["x"], ["y"])
    (value,) = values_of(graph)
    np.testing.assert_array_equal(run_on_host(compile_network(graph), [value])[0], evaluate(graph, {"x": value})["y"])


def test_nan_and_infinity() -> None:
    """QUANTIZE stores NaN as 0.0 and clamps infinity; MAX_POOL_2D ignores NaN at any position."""
    s = Sketch("no_numbers")
    s.node(Quantize(), s.real("x", 1, 2, 2, 2), s.tensor("q", 1, 2, 2, 2))
    s.node(MaxPool2D((2, 2)), "x", s.real("greatest", 1, 1, 1, 2))
    graph = s.graph(["x"], ["q", "greatest"])
    value = np.array([np.nan, -np.inf, 2, np.nan, -1, 1e38, np.nan, 4], np.float32).reshape(1, 2, 2, 2)
    stored, greatest = run_on_host(compile_network(graph), [value])
    assert stored.ravel().tolist() == [3, -128, 23, 3, -7, 127, 3, 43]
    assert greatest.ravel().tolist() == [2, value[0, 1, 0, 1]]
    known = evaluate(graph, {"x": value})
    np.testing.assert_array_equal(stored, known["q"])
    np.testing.assert_array_equal(greatest, known["greatest"])


def test_more_dimensions_than_one_copy_supports() -> None:
    """TILE along four dimensions moves elements over eight; more than six are split into several copies."""
    network = Network()
    source = network.input((2, 3, 2, 3), dtype="int32")
    network.move("TILE", source, (4, 9, 6, 6), network.integers([2, 3, 3, 2]), kind="TileOptions")
    value = np.arange(36, dtype=np.int32).reshape(2, 3, 2, 3)
    (got,) = run_on_host(compile_bytes(network.build()), [value])
    np.testing.assert_array_equal(got, np.tile(value, (2, 3, 3, 2)))
