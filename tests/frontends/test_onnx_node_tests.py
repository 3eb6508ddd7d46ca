"""ONNX's node tests: the result of each supported test must be right in numpy and as C.

``docs/onnx-node-tests.md`` lists the tests that pass, and the reasons for the others; ``--update-golden`` writes it.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.frontends.onnx.refused import SEE
from mlfbuild.graph import Graph
from mlfbuild.graph.evaluation import evaluate
from support.examples import first_on_push
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import NodeTest, node_tests

PAGE = Path(__file__).resolve().parents[2] / "docs/onnx-node-tests.md"
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


@pytest.fixture(scope="module")
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
    pairs = [(made, as_compiled(wanted)) for made, wanted in zip(outputs, taken.test.outputs, strict=True)]
    return all(
        made.shape == wanted.shape
        and made.dtype == wanted.dtype
        and np.allclose(made, wanted, rtol=taken.test.rtol, atol=taken.test.atol, equal_nan=True)
        for made, wanted in pairs
    )


def renamed(graph: Graph, name: str) -> Graph:
    return Graph(name, list(graph.tensors.values()), graph.nodes, graph.inputs, graph.outputs)


def test_graph_agrees_with_node_tests(sorted_tests: tuple[list[Taken], dict[str, str]]) -> None:
    wrong = []
    for taken in sorted_tests[0]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = evaluate(taken.graph, dict(zip(taken.graph.inputs, taken.inputs, strict=True)))
        if not agree(taken, [values[name] for name in taken.graph.outputs]):
            wrong.append(taken.test.name)
    assert wrong == []


@pytest.mark.parametrize("step", first_on_push([5, 1]))
def test_c_agrees_with_node_tests(sorted_tests: tuple[list[Taken], dict[str, str]], step: int) -> None:
    """Compare every ``step``-th model as C under sanitizers; each model of a program has another name."""
    taken = sorted_tests[0][::step]
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


def test_page_lists_all_tests(sorted_tests: tuple[list[Taken], dict[str, str]], request: pytest.FixtureRequest) -> None:
    taken, refused = sorted_tests
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page([one.test.name for one in taken], refused))
    committed = PAGE.read_text()
    if f"onnx {onnx.__version__}" in committed:
        assert committed == page([one.test.name for one in taken], refused)
    passing = {line[3:-1] for line in committed.splitlines() if line.startswith("- `")}
    present = {*refused, *(one.test.name for one in taken)}
    assert sorted(passing & present - {one.test.name for one in taken}) == []


def page(passing: list[str], refused: dict[str, str]) -> str:
    """Return the page of the documentation."""
    reasons = Counter(reason(text) for text in refused.values())
    lines = [
        "# ONNX's own tests",
        "",
        "The `onnx` package contains tests of single operators. This page lists those that use only plain types and",
        f"operators of ONNX itself: {len(passing) + len(refused)} tests in onnx {onnx.__version__}.",
        f"{len(passing)} of them pass, both in numpy and as C, and none fails. mlfbuild does not support the",
        "models of the others. If an operator requires constant weights and a test passes them as inputs, they are",
        "made constant.",
        "",
        "`pytest tests/frontends/test_onnx_node_tests.py --update-golden` writes this page.",
        "",
        "## Refused",
        "",
        "| tests | reason |",
        "|---:|---|",
        *(f"| {count} | {text} |" for text, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        "",
        "## Passing",
        "",
        *(f"- `{name}`" for name in sorted(passing)),
    ]
    return "\n".join(lines) + "\n"


def reason(text: str) -> str:
    """Return the reason without names of tensors."""
    text = re.sub(r"node \d+ \((\S+)\) writing '[^']*': ", r"\1: ", text)
    return re.sub(r"'[^']*'", "...", text)
