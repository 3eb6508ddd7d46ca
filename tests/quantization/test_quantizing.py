"""Quantise small networks with both engines: they run on integers, with the numbers of the formats' own runtimes."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.core import LOOK, MlfError
from mlfbuild.datasets import DataKeys
from mlfbuild.native import read_model
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.quantization import QuantizedNetwork, QuantizeKeys, quantize, quantizing
from mlfbuild.quantization.engines import METHODS, ONNX, TFLITE
from support.firmware_repo import tiny_network
from support.float_networks import SHAPE, calibration, float_onnx, float_tflite
from support.onnx_quantized import assert_within_a_step
from support.oracle import tflite_micro_cases
from support.tflite_builder import Network

CASES = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("networks")
    (root / "net.tflite").write_bytes(float_tflite())
    (root / "net.onnx").write_bytes(float_onnx())
    calibration(root / "net.tflite.npz")
    calibration(root / "net.onnx.npz", shape=(1, 3, 8, 8))
    return root


def made(folder: Path, name: str, out: str = "", **keys: Any) -> tuple[QuantizedNetwork, Path]:
    chosen = QuantizeKeys(DataKeys(folder / f"{name}.npz"), **keys)
    path = folder / (out or f"made.{name}")
    return quantize(folder / name, chosen, path), path


def outputs(path: Path, dtype: str, shape: tuple[int, ...]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return random inputs, and what the graph of ``path`` makes of them."""
    graph = read_model(path, "net")
    limits = np.iinfo(dtype)
    cases = [*np.random.default_rng(1).integers(limits.min, limits.max + 1, (CASES, *shape), dtype)]
    (name,), (output,) = graph.inputs, graph.outputs
    return cases, [evaluate(graph, {name: case})[output] for case in cases]


def sweep(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.sweep)


@pytest.mark.parametrize(
    ("keys", "dtype"),
    [
        ({}, "int8"),
        sweep({"activations": "int16"}, "int16"),
        sweep({"weights": "int4"}, "int8"),
        sweep({"per_channel": False}, "int8"),
        *(sweep({"method": method}, "int8") for method in METHODS[TFLITE][1:]),
    ],
)
def test_numbers_are_those_of_tensorflow_lite_micro(folder: Path, keys: dict[str, Any], dtype: str) -> None:
    result, path = made(folder, "net.tflite", **keys)
    assert (result.cases, len(result.operators), result.floats) == (100, 7, ())
    assert bool(result.warnings) == ("method" in keys)
    cases, own = outputs(path, dtype, SHAPE)
    expected = tflite_micro_cases(path.read_bytes(), [[case] for case in cases])
    assert np.array_equal(own, [outputs[0] for outputs in expected])
    assert len(np.unique(own)) > 2


@pytest.mark.parametrize(
    "keys", [{}, sweep({"per_channel": False}), *(sweep({"method": method}) for method in METHODS[ONNX][1:])]
)
def test_numbers_are_those_of_onnxruntime_within_a_step(folder: Path, keys: dict[str, Any]) -> None:
    from onnxruntime import InferenceSession

    result, path = made(folder, "net.onnx", **keys)
    assert (result.cases, result.floats, bool(result.warnings)) == (100, (), "method" in keys)
    assert "BATCH_NORMALIZATION" not in {each.kind for each in result.operators}
    cases, own = outputs(path, "int8", (1, 3, 8, 8))
    session = InferenceSession(path)
    assert_within_a_step(own, [session.run(None, {"x": case})[0] for case in cases])
    assert len(np.unique(own)) > 2


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["net.tflite", "net.onnx"])
def test_the_same_inputs_give_the_same_file(folder: Path, name: str) -> None:
    first, second = (made(folder, name, f"{count}.{name}")[1].read_bytes() for count in ("first", "second"))
    assert first == second


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "kept"), [("net.tflite", "softmax"), ("net.onnx", "y")])
def test_what_stays_float_is_named(folder: Path, name: str, kept: str) -> None:
    result, path = made(folder, name, keep_float=(kept,))
    assert [(each.kind, each.reason) for each in result.floats] == [("SOFTMAX", "keep-float names it")]
    graph = read_model(path, "net")
    ports = [graph.tensor(each) for each in (*graph.inputs, *graph.outputs)]
    assert [each.dtype.value for each in ports] == ["int8", "float32"]
    names = read_model(folder / name, "net")
    assert [each.name for each in ports] == [*names.inputs, *names.outputs]
    result, path = made(folder, name, io="float32")
    graph = read_model(path, "net")
    assert [graph.tensor(each).dtype.value for each in (*graph.inputs, *graph.outputs)] == ["float32"] * 2
    assert result.floats == ()


@pytest.mark.sweep
def test_a_node_that_is_folded_into_another_keeps_its_name(folder: Path) -> None:
    """A batch normalisation becomes part of the convolution before it, whose output then has another name."""
    result, _ = made(folder, "net.onnx", keep_float=("conv", "relu"))
    reasons = {each.kind: each.reason for each in result.floats}
    assert [reasons[kind] for kind in ("CONV_2D", "RELU")] == ["keep-float names it"] * 2


@pytest.mark.sweep
def test_an_operator_that_the_engine_does_not_quantise_is_named(folder: Path) -> None:
    net = Network()
    (folder / "log.tflite").write_bytes(net.build([net.unary("LOG_SOFTMAX", net.input(SHAPE))]))
    calibration(folder / "log.tflite.npz")
    result, _ = made(folder, "log.tflite")
    assert [each.reason for each in result.floats] == ["ai-edge-quantizer does not quantise LOG_SOFTMAX"]


@pytest.mark.sweep
def test_few_cases_and_values_that_clip_are_warned_of(folder: Path) -> None:
    def warnings(**keys: Any) -> int:
        chosen = QuantizeKeys(DataKeys(folder / "own.npz"), **keys)
        return len(quantize(folder / "net.onnx", chosen, folder / "own.onnx").warnings)

    calibration(folder / "own.npz", 5, shape=(1, 3, 8, 8))
    assert warnings() == 1
    data = np.random.default_rng(0).random((1000, 3, 8, 8), np.float32)
    data[0, 0, 0, 0] = 50
    np.savez(folder / "own.npz", in0=data)
    assert (warnings(), warnings(method="percentile")) == (0, 2)


def refused(folder: Path, array: Any, name: str = "net.tflite", **keys: Any) -> tuple[str, int]:
    np.savez(folder / "bad.npz", **(array if isinstance(array, dict) else {"in0": array}))
    with pytest.raises(MlfError) as caught:
        quantize(folder / name, QuantizeKeys(DataKeys(folder / "bad.npz"), **keys), folder / f"bad.{name}")
    assert not (folder / f"bad.{name}").exists()
    assert "\n" not in str(caught.value).partition(LOOK)[0]
    return caught.value.code, caught.value.exit_code


def test_bad_data_are_refused_before_an_engine_is_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantizing, "_run_engine", None)
    good = np.random.default_rng(0).random((4, *SHAPE[1:]), np.float32)
    assert refused(folder, good[:, :7]) == ("data-shape", 5)
    assert refused(folder, good > 0.5) == ("data-type", 5)
    assert refused(folder, np.full_like(good, np.nan)) == ("data-not-finite", 5)
    assert refused(folder, np.full_like(good, 0.5)) == ("calibration-constant", 5)
    assert refused(folder, good[:0]) == ("data-without-cases", 1)
    assert refused(folder, {"other": good}) == ("array-missing", 5)
    assert refused(folder, good, method="entropy") == ("unknown-method", 2)
    assert refused(folder, good, io="int16") == ("quantize-io", 2)
    assert refused(folder, good, "net.onnx", weights="int4") == ("quantize-int4", 2)
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    assert refused(folder, good) == ("extra-not-installed", 3)


def test_a_network_that_is_quantised_already_is_refused(folder: Path) -> None:
    (folder / "int8.tflite").write_bytes(tiny_network(0))
    assert refused(folder, np.zeros((1, 8), np.float32), "int8.tflite") == ("quantized-already", 2)


@pytest.mark.sweep
def test_mistakes_that_the_engine_finds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = np.random.default_rng(0).random((4, *SHAPE[1:]), np.float32)
    assert refused(folder, good, keep_float=("softmx",)) == ("keep-float-unknown", 2)
    monkeypatch.setitem(quantizing._ENVIRONMENT, "PYTHONPATH", "/nowhere")
    monkeypatch.setitem(quantizing._ENVIRONMENT, "PYTHONHOME", "/nowhere")
    assert refused(folder, good) == ("quantize-failed", 7)
