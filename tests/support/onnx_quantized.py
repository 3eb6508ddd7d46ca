"""Compare quantised ONNX networks with ONNX's evaluator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import settings, strategies as st

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import DType, Graph
from mlfbuild.native.graph.nodes import evaluate
from support.examples import examples
from support.onnx_models import QuantizedNetwork, Scale, reference

Array = np.ndarray[Any, np.dtype[Any]]


RANDOM = np.random.default_rng(11)


START = RANDOM.bit_generator.state


BYTES = ("uint8", "int8")


PROPERTIES = settings(max_examples=examples(40), deadline=None, derandomize=True)


def restart() -> None:
    """Reset the generator of random numbers."""
    RANDOM.bit_generator.state = START


def integers(shape: Sequence[int], dtype: str) -> Array:
    """Return random integers of all values."""
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


def values_of(data: bytes) -> tuple[Graph, list[Array], list[Array], list[Array]]:
    """Return the graph of ``data``, random inputs, its outputs, and those of ONNX's evaluator."""
    graph = parse_onnx(data, "net", "net.onnx")
    inputs = [integers(graph.tensor(name).shape, graph.tensor(name).dtype.value) for name in graph.inputs]
    feeds = dict(zip(graph.inputs, inputs, strict=True))
    values = evaluate(graph, feeds)
    return graph, inputs, [values[name] for name in graph.outputs], reference(data, feeds)


def assert_within_a_step(made: Sequence[Array], wanted: Sequence[Array], steps: int = 1) -> None:
    """Check that both are integers that differ by at most ``steps``."""
    for one, other in zip(made, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert np.abs(one.astype(np.int64) - other.astype(np.int64)).max() <= steps


def check(network: QuantizedNetwork, *, floats: bool = False, domains: Sequence[str] = ()) -> Graph:
    """Check the outputs, and that they are computed in integers unless ``floats``."""
    graph, _, made, wanted = values_of(network.bytes(domains=domains))
    assert_within_a_step(made, wanted)
    assert any(tensor.dtype is DType.FLOAT32 for tensor in graph.tensors.values()) == floats
    return graph


@st.composite
def scales(draw: st.DrawFn, least: float = 0.005, greatest: float = 0.2) -> Scale:
    """Draw a scale and zero point of an 8-bit type."""
    dtype = draw(st.sampled_from(BYTES))
    low = -128 if dtype == "int8" else 0
    scale = float(np.float32(draw(st.floats(least, greatest))))
    return Scale(scale, draw(st.sampled_from([low, low + 128, low + 100, low + 255])), dtype)
