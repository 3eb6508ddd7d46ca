"""STABLEHLO_COMPOSITE becomes the operators of its decomposition."""

import numpy as np
import pytest
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from support.errors import raises
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, litert_run
from support.subgraph_networks import caller, composite, doubled
from support.tflite_builder import Network

X = np.array([1, 2], np.float32)


@pytest.mark.parametrize("net", [caller(doubled()), caller(doubled(2), doubled())], ids=["one", "nested"])
def test_a_composite_is_its_decomposition(net: Network) -> None:
    model = net.build()
    graph = parse_tflite(model, "net", "net")
    assert graph.notes == ()
    assert {node.operator.name for node in graph.nodes} == {"ADD", "MUL"}
    (got,) = run_on_host(compile_bytes(model), [X])
    assert_equal(got, litert_run(model, [X])[0], "net")


def test_reasons_name_the_composite() -> None:
    other = doubled()
    other.operators[0].code = BuiltinOperator.MULTINOMIAL
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(caller(other).build(), "net", "net")
    assert (caught.value.code, caught.value.place) == (
        "operator-unsupported",
        "net: operator 0 (MULTINOMIAL) writing 't2'",
    )


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (caller(doubled(), subgraph=2), "subgraph 2 of 2"),
        (caller(doubled(1)), "subgraph 1"),
        (caller(doubled(), subgraph=0), "subgraph 0"),
    ],
    ids=["missing", "recursive", "its own"],
)
def test_decompositions_that_make_no_sense(net: Network, words: str) -> None:
    with raises(InputFileError, "tflite-malformed") as caught:
        parse_tflite(net.build(), "net", "net")
    assert words in caught.value.reason


def test_a_composite_without_options() -> None:
    net = caller(doubled())
    net.operators[0].decomposition = None
    with pytest.raises(InputFileError) as caught:
        parse_tflite(net.build(), "net", "net")
    assert caught.value.place == "net: operator 0 (STABLEHLO_COMPOSITE)"


@pytest.mark.sweep
def test_a_small_file_cannot_repeat_subgraphs_without_end() -> None:
    """12 levels with 8 calls each would be 8**12 operators."""
    parts = [doubled(*[level + 2] * 8) for level in range(11)]
    with pytest.raises(InputFileError) as caught:
        parse_tflite(caller(*parts, doubled()).build(), "net", "net")
    assert "too many" in caught.value.reason


def test_a_composite_that_reads_a_tensor_that_does_not_exist() -> None:
    net, other = Network(), Network()
    composite(net, [99], [net.input((2,))], 1)
    other.outputs = [other.input((2,))]
    net.others = [other]
    with raises(InputFileError, "tflite-malformed"):
        parse_tflite(net.build(), "net", "net")
