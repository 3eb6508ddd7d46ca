"""Small files cannot make the compiler write gigabytes: constants are limited, and an option raises the limit."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.library import CompileRequest, Library, OptionValue
from mlfbuild.native import NATIVE
from mlfbuild.native.graph import ConstantBudget
from mlfbuild.targets import CPUS
from support.errors import raises
from support.onnx_models import Array, integers, model
from support.tflite_builder import Network

WIDE = 1 << 28
"""Elements of a tensor that a file of 113 bytes declares."""

Node = tuple[str, dict[str, Array], dict[str, Any], tuple[int, ...]]


MAKERS: dict[str, Node] = {
    "hardmax": ("Hardmax", {}, {"axis": -1}, (1, WIDE)),
    "eye": ("EyeLike", {}, {}, (1 << 14, 1 << 14)),
    "mask of a triangle": ("Trilu", {}, {}, (1 << 14, 1 << 14)),
    "power of 0": ("Pow", {"e": np.array(0, np.float32)}, {}, (1, WIDE)),
    "exclusive sum": ("CumSum", {"a": integers(0)}, {"exclusive": 1}, (1, WIDE)),
    "positions of elements": ("GatherElements", {"i": integers(0).reshape(1, 1)}, {"axis": 1}, (1, WIDE)),
    "positions of an edge": ("Pad", {"p": integers(0, 1, 0, 1)}, {"mode": "edge"}, (1, WIDE)),
    "matrix C": ("Gemm", {"b": np.ones((1, 1 << 14), np.float32), "c": np.ones(1, np.float32)}, {}, (1 << 14, 1)),
    "filling": ("ConstantOfShape", {}, {}, (1, WIDE)),
}


def compiled(folder: Path, file: str, data: bytes, executor: str = "aot", **options: OptionValue) -> Library:
    source = folder / file
    source.write_bytes(data)
    settings = {key.replace("_", "-"): value for key, value in options.items()}
    return NATIVE.compile(CompileRequest("net", source, CPUS["cortex-m4"], executor, options=settings))


@pytest.mark.parametrize("kind", MAKERS)
def test_an_operator_that_becomes_a_huge_constant(kind: str, tmp_path: Path) -> None:
    operator, constants, attributes, shape = MAKERS[kind]
    if kind == "filling":
        nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node(operator, ["s"], ["f"]),
                 helper.make_node("Add", ["x", "f"], ["y"])]  # fmt: skip
    else:
        nodes = [helper.make_node(operator, ["x", *constants], ["y"], **attributes)]
    data = model(nodes, [("x", shape)], [("y", [None] * len(shape))], constants)
    tracemalloc.start()
    with pytest.raises(UnsupportedModelError) as caught:
        compiled(tmp_path, "net.onnx", data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) < 1 << 17
    assert caught.value.code == "constants-too-large"
    assert f"({MAKERS[kind][0]}) writing" in caught.value.place
    assert peak < 64 << 20


def hardmax(width: int) -> bytes:
    return model([helper.make_node("Hardmax", ["x"], ["y"])], [("x", (1, width))], [("y", (1, width))])


def test_the_option_raises_and_lowers_the_limit(tmp_path: Path) -> None:
    size = 4 * 3000
    (module,) = compiled(tmp_path, "net.onnx", hardmax(3000), max_constants=size).modules
    assert module.main[0].constants_size == size
    with raises(UnsupportedModelError, "constants-too-large"):
        compiled(tmp_path, "net.onnx", hardmax(3000), max_constants=f"{size - 1}")
    assert compiled(tmp_path, "net.onnx", hardmax(3000), max_constants="1 MiB") == compiled(
        tmp_path, "net.onnx", hardmax(3000)
    )


@pytest.mark.parametrize("value", ["many", "64 MB of it", -1, 1.5, True])
def test_a_limit_that_is_no_size(value: OptionValue) -> None:
    found = NATIVE.check_options({"max-constants": value, "tree-room": value})
    assert [(key, mistake.code) for key, mistake in found] == [
        ("max-constants", "invalid-option"), ("tree-room", "invalid-option")
    ]  # fmt: skip


@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_the_constants_of_the_code_are_limited_too(executor: str, tmp_path: Path) -> None:
    """Two layers of the same weights: these are one constant, and belong to the second operator if there are two."""
    weights = np.random.default_rng(1).integers(-127, 128, (16, 16), dtype=np.int8)

    def network(*, same: bool) -> bytes:
        net = Network()
        x = net.input((1, 16), 0.5, 0, name="x")
        for each in (weights, weights if same else -weights):
            x = net.fully_connected(x, each, weight_scales=[0.1], scale=0.5)
        return net.build()

    one = compiled(tmp_path, "net.tflite", network(same=True), executor).modules[0].main[0].constants_size
    compiled(tmp_path, "net.tflite", network(same=True), executor, max_constants=one)
    with raises(UnsupportedModelError, "constants-too-large", at="net: FULLY_CONNECTED 't4'"):
        compiled(tmp_path, "net.tflite", network(same=False), executor, max_constants=one)


def test_the_limit_grows_with_the_file() -> None:
    ConstantBudget.of_file(1 << 20).check("node", 16 << 20)
    with pytest.raises(UnsupportedModelError):
        ConstantBudget.of_file(1 << 20).check("node", (16 << 20) + 1)
    ConstantBudget.of_file(1).check("node", 4 << 20)


def test_many_constants_of_allowed_size(tmp_path: Path) -> None:
    nodes = [helper.make_node("EyeLike", ["x"], [f"e{at}"]) for at in range(3)]
    nodes += [helper.make_node("Add", [f"s{at - 1}" if at else "x", f"e{at}"], [f"s{at}"]) for at in range(3)]
    data = model(nodes, [("x", (700, 700))], [("s2", (700, 700))])
    with pytest.raises(UnsupportedModelError) as caught:
        compiled(tmp_path, "net.onnx", data)
    assert "node 2 (EyeLike) writing 'e2'" in caught.value.place
