"""ERF, which TensorFlow Lite does not have: the kernel equals the C library's error function."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.graph import DType, Graph, Node, Tensor
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import Erf
from support.board_cases import wrong_networks
from support.host_c import run_on_host
from support.native import compile_network

EVERYWHERE = np.concatenate([np.linspace(-5, 5, 4001), np.geomspace(1e-30, 1e30, 500), [0.0, np.inf, -np.inf]])


def network(elements: int) -> Graph:
    tensors = [Tensor("x", (elements,), DType.FLOAT32), Tensor("y", (elements,), DType.FLOAT32)]
    return Graph("net", tensors, [Node("erf", Erf(), ("x",), ("y",))], ["x"], ["y"])


def test_equals_the_error_function() -> None:
    """The relative error is at most 1e-6, even for small values."""
    x = EVERYWHERE.astype(np.float32)
    (made,) = run_on_host(compile_network(network(x.size)), [x])
    wanted = np.array([math.erf(value) for value in x.tolist()])
    np.testing.assert_allclose(made.reshape(-1), wanted, rtol=1e-6, atol=1e-37)
    np.testing.assert_array_equal(evaluate(network(x.size), {"x": x})["y"], wanted.astype(np.float32))


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    x = np.linspace(-4.5, 4.5, 300, dtype=np.float32)
    wanted = evaluate(network(x.size), {"x": x})["y"]
    assert wrong_networks([(compile_network(network(x.size)), [x], [wanted])], cpu, tmp_path, tool) == []


def test_nan_stays_nan() -> None:
    x = np.array([np.nan], np.float32)
    (made,) = run_on_host(compile_network(network(1)), [x])
    assert np.isnan(made).all()
