"""ONNX's node tests: the result of each supported test must be right in numpy and as C.

``benchmarks/evidence.md`` has the numbers, and the reasons for tests that are refused; ``onnx_tests`` counts them.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnx
import pytest

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.frontends.onnx.refused import SEE
from mlfbuild.native.graph import DType, Graph
from mlfbuild.native.graph.nodes import evaluate
from onnx_tests.page import PAGE, changes, committed
from onnx_tests.runner import PASS, WIDENED, Outcome, results
from onnx_tests.suite import SIZES, VERSION, suite
from support.examples import first_on_push
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import NodeTest, node_tests

CHUNK = 70
"""Models in one C program."""


@dataclass(frozen=True)
class Taken:
    """A test whose model was read, with its inputs that are not constant."""

    test: NodeTest
    graph: Graph
    inputs: tuple[np.ndarray, ...]


def as_compiled(values: np.ndarray) -> np.ndarray:
    """Return ``values`` in the type that the compiled network has: float32 for float16."""
    return values.astype(np.float32) if values.dtype == np.float16 else values


def read(test: NodeTest) -> Taken:
    try:
        graph = parse_onnx(test.model.SerializeToString(), test.name, test.name)
    except UnsupportedModelError:
        if len(test.inputs) < 2:
            raise
        graph = parse_onnx(test.with_parameters().SerializeToString(), test.name, test.name)
    feeds = dict(zip((port.name for port in test.model.graph.input), test.inputs, strict=True))
    return Taken(test, graph, tuple(as_compiled(np.asarray(feeds[name])) for name in graph.inputs))


def read_or_refuse(test: NodeTest) -> Taken | str:
    """Return the test with its graph, or the reason why it is refused."""
    try:
        return read(test)
    except UnsupportedModelError as error:
        place = error.place.removeprefix(test.name).removeprefix(": ")
        text = f"{place}: {error.reason}" if place else error.reason
        return text if error.hint in {SEE, ""} else f"{text}; {error.hint}"


def sorted_tests() -> tuple[list[Taken], dict[str, str]]:
    """Return the supported tests, and the reason for each of the others."""
    taken, refused = [], {}
    for test in node_tests():
        found = read_or_refuse(test)
        if isinstance(found, Taken):
            taken.append(found)
        else:
            refused[test.name] = found
    return taken, refused


def agree(taken: Taken, outputs: list[np.ndarray]) -> bool:
    half = any(value.dtype == np.float16 for value in taken.test.outputs)  # whose steps are 5e-4 below 1
    atol = max(taken.test.atol, 1e-3) if half else taken.test.atol
    if "DFT" in {node.operator.name for node in taken.graph.nodes}:  # numpy's transform rounds where ours computes 0
        atol += np.finfo(np.float32).eps * max(float(np.abs(value).max()) for value in taken.test.outputs)
    pairs = [(made, as_compiled(wanted)) for made, wanted in zip(outputs, taken.test.outputs, strict=True)]
    return all(
        made.shape == wanted.shape
        and made.dtype == wanted.dtype
        and np.allclose(made, wanted, rtol=taken.test.rtol, atol=atol, equal_nan=True)
        for made, wanted in pairs
    )


def renamed(graph: Graph, name: str) -> Graph:
    return Graph(name, list(graph.tensors.values()), graph.nodes, graph.inputs, graph.outputs)


def wrong_in_numpy(supported: list[Taken]) -> list[str]:
    """Return the names of the tests with wrong results in numpy."""
    wrong = []
    for taken in supported:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = evaluate(taken.graph, dict(zip(taken.graph.inputs, taken.inputs, strict=True)))
        if not agree(taken, [values[name] for name in taken.graph.outputs]):
            wrong.append(taken.test.name)
    return wrong


def of_each_operator(supported: list[Taken]) -> list[Taken]:
    """Return the first tests that cover all pairs of an operator of ours and the types of its outputs."""
    seen: set[tuple[str, tuple[DType, ...]]] = set()
    chosen = []
    for taken in supported:
        nodes = taken.graph.nodes
        found = {
            (node.operator.name, tuple(taken.graph.tensors[name].dtype for name in node.outputs)) for node in nodes
        }
        if found - seen:
            chosen.append(taken)
            seen |= found
    return chosen


@pytest.mark.parametrize("compiled", first_on_push([of_each_operator, list]))
def test_node_tests_have_the_committed_outcomes_in_numpy_and_as_c(
    compiled: Callable[[list[Taken]], list[Taken]],
) -> None:
    """Compare the ``compiled`` models also as C under sanitizers; each model of a program has another name.

    ``PYTHONPATH=tests python -m onnx_tests --write`` updates the table of outcomes, if this is what you intend.
    """
    supported, refused = sorted_tests()
    assert wrong_in_numpy(supported) == []
    if onnx.__version__ == VERSION:  # of the table
        table = {name: line.split("\t")[1:] for name, line in committed().items()}
        present = {name: table[f"node/{name}"] for name in (*(one.test.name for one in supported), *refused)}
        passing = {name for name, words in present.items() if {PASS, WIDENED} & {*words}}
        assert passing == {one.test.name for one in supported}
    taken = compiled(supported)
    chunks = [taken[start : start + CHUNK] for start in range(0, len(taken), CHUNK)]
    with ThreadPoolExecutor(2) as pool:  # the threads wait for compilers
        assert [name for names in pool.map(wrong_as_c, chunks) for name in names] == []


def wrong_as_c(chunk: list[Taken]) -> list[str]:
    """Return the names of the tests with wrong results in one C program."""
    jobs = []
    for number, one in enumerate(chunk):
        library = compile_network(renamed(one.graph, f"m{number}"))
        jobs.append((library, library.modules[0], one.inputs))
    wrong = []
    for one, outputs in zip(chunk, run_many_on_host(jobs, optimise="-O0"), strict=True):
        shaped = [value.reshape(wanted.shape) for value, wanted in zip(outputs, one.test.outputs, strict=True)]
        if not agree(one, shaped):
            wrong.append(one.test.name)
    return wrong


def test_table_has_all_tests_and_no_failure() -> None:
    lines = [line.split("\t") for line in committed().values()]
    assert Counter(line[0].split("/")[0] for line in lines) == SIZES
    assert [line for line in lines for word in line[1:] if Outcome(word).failed] == []
    page = PAGE.read_text()
    for name, size in SIZES.items():
        words = [line[1:] for line in lines if line[0].startswith(f"{name}/")]
        shipped, constant = sum(word[0] == PASS for word in words), sum(PASS in word for word in words)
        assert f" | {size} | {shipped} | {constant} | 0 |" in page


@pytest.mark.sweep
def test_all_tests_of_onnx_have_the_committed_outcomes() -> None:
    whole = suite()
    found = list(results(whole, whole.tests()))
    assert changes(found) == []
    assert [str(each.test) for each in found if each.shipped.failed or each.constant.failed] == []
