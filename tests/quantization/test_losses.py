"""What each tensor of a quantised network has lost, and the advice that follows."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.datasets import DataKeys
from mlfbuild.library import CompileRequest, TensorInfo
from mlfbuild.quantization import LossCases, LossMeter, LostTensor, QuantizeKeys, loss_rows, loss_summary, quantize
from mlfbuild.quantization.engines import own_parts
from mlfbuild.quantization.losses import LossAdvice, LossReport, advice_for
from mlfbuild.targets import CPUS
from mlfbuild.usecases.compare import file_losses, measured_losses
from mlfbuild.usecases.quantize.improving import candidates
from support.float_networks import calibration, float_onnx, hostile_tflite


def test_the_ratio_is_that_of_its_definition_over_all_cases() -> None:
    random = np.random.default_rng(0)
    info = TensorInfo("t", "int8", 12, (1, 4, 3), 0.02, 5)
    meter, real = LossMeter(info), random.normal(0, 1, (7, 1, 4, 3)).astype(np.float32)
    stored = info.quantized(real + random.normal(0, 0.1, real.shape).astype(np.float32))
    for case, got in zip(real, stored, strict=True):
        meter.add(LossCases(case, info.dequantized(got), meter.round(case), case, case))
    found = meter.result("t", "ADD")
    noise = real - info.dequantized(stored).astype(np.float64)
    assert math.isclose(found.ratio, 10 * math.log10((real.astype(np.float64) ** 2).sum() / (noise**2).sum()))
    low, high = (limit - 5 for limit in (-128, 127))
    beyond = (real < (low - 1.01) * 0.02) | (real > (high + 1.01) * 0.02)
    assert (found.saturated, found.in_float) == (beyond.mean(), False)
    assert LossMeter(TensorInfo("f", "float32", 4, (1,))).result("f", "").ratio == math.inf


def lost(name: str, ratio: float, *inputs: str, **others: Any) -> LostTensor:
    facts = {"rounding": 60.0, "own": 60.0, "from_rounding": 60.0, "saturated": 0.0, "clipped": 0.0, "in_float": False}
    return LostTensor(name, "ADD", ratio, **{**facts, "inputs": inputs, "nodes": (name,), **others})


def test_advice_depends_on_what_makes_the_noise() -> None:
    good, after = lost("a", 50), lost("c", 19, "b")

    def advice(**noise: Any) -> dict[str, LossAdvice]:
        return advice_for([good, lost("b", 20, "a", **noise), after])

    assert advice() == {}
    assert advice(own=22.0) == {"b": LossAdvice("keep-float", ("b",))}
    assert advice(own=22.0, rounding=22.0) == {"b": LossAdvice("keep-float", ("b", "c"))}
    assert advice(from_rounding=22.0) == {"b": LossAdvice("keep-float", ("a", "b"))}
    assert advice(from_rounding=22.0, in_float=True) == {"b": LossAdvice("keep-float", ("a",))}
    assert advice(rounding=20.5, clipped=0.9) == {"b": LossAdvice("calibration")}
    assert LossReport(1, (good, after), ("c",), 0).whole == LossAdvice("int16")
    found = LossReport(1, (good, lost("b", 20, "a", own=21.0), after), ("c",), 0).to_json()
    assert (found["begins"], loss_summary(found)) == ("b", "noise begins at b (20.0 dB)")
    assert [row[4] for row in loss_rows(found)] == ["from its inputs", "begins", ""]
    assert LossReport(1, (good, after), ("a",), 0).whole is None


def test_candidates_change_one_thing_each_and_int16_comes_last() -> None:
    keys = QuantizeKeys(DataKeys(Path("x.npz")), method="mse", per_channel=False, keep_float=("b",))
    coarse, clipped = lost("b", 20, "a", own=21.0, rounding=21.0), lost("d", 10, "a", rounding=10.0, clipped=0.9)
    losses = LossReport(1, (lost("a", 50), coarse, lost("c", 19, "b"), clipped), ("c",), 0)
    found = [*candidates(keys, losses)]
    assert found == [
        replace(keys, method="minmax"),
        replace(keys, per_channel=True),
        replace(keys, keep_float=("b", "c")),
        replace(keys, activations="int16"),
    ]
    assert [*candidates(replace(keys, weights="int4"), LossReport(1, (), (), 0))] == []


def test_an_operator_has_the_parts_of_joined_names_that_no_other_has() -> None:
    names = ["act/Relu;norm;conv", "conv2/Add;norm;conv", "norm;conv", "y"]
    assert own_parts(names) == [["act/Relu"], ["conv2/Add"], ["norm;conv"], ["y"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tool: Any) -> Path:
    tool("gcc")
    root = tmp_path_factory.mktemp("losses")
    (root / "net.tflite").write_bytes(hostile_tflite())
    calibration(root / "net.npz", 20)
    return root


def measured(folder: Path, **keys: Any) -> LossReport:
    data = DataKeys(folder / "net.npz")
    quantize(folder / "net.tflite", QuantizeKeys(data, **keys), folder / "int8.tflite")
    return file_losses(folder / "net.tflite", folder / "int8.tflite", data)


@pytest.mark.sweep
def test_the_operator_behind_a_large_channel_is_named_and_the_advice_helps(folder: Path) -> None:
    report = measured(folder)
    worst = report.ranked[0]
    assert (worst.name, worst.operator, report.cases) == ("t6", "DEPTHWISE_CONV_2D", 20)
    assert worst.ratio < 10
    assert report.advice["t6"] == LossAdvice("keep-float", ("t3", "t6"))
    better = measured(folder, keep_float=report.advice["t6"].nodes)
    assert {each.name: each.ratio for each in better.tensors}["t6"] > worst.ratio + 40


@pytest.mark.sweep
def test_calibration_with_other_data_than_those_of_the_field_is_named(folder: Path) -> None:
    np.savez(folder / "dim.npz", in0=np.load(folder / "net.npz")["in0"] / 8)
    quantize(folder / "net.tflite", QuantizeKeys(DataKeys(folder / "dim.npz")), folder / "dim.tflite")
    report = file_losses(folder / "net.tflite", folder / "dim.tflite", DataKeys(folder / "net.npz"))
    assert report.advice["t0"] == LossAdvice("calibration")
    assert {each.name: each for each in report.tensors}["t0"].saturated > 0.8


@pytest.mark.sweep
def test_tensors_of_onnx_are_paired_though_operators_are_fused(folder: Path) -> None:
    (folder / "net.onnx").write_bytes(float_onnx())
    data = DataKeys(calibration(folder / "onnx.npz", 20, shape=(1, 3, 8, 8)))
    quantize(folder / "net.onnx", QuantizeKeys(data), folder / "int8.onnx")
    requests = [CompileRequest("net", folder / name, CPUS["host"], options={}) for name in ("net.onnx", "int8.onnx")]
    assert [measured_losses(*requests, data, most=most).cases for most in (0, 8, 20)] == [20, 7, 20]
    report = file_losses(folder / "net.onnx", folder / "int8.onnx", data)
    nodes = {each.name: each.nodes for each in report.tensors}
    assert nodes["relu"] == ("conv", "normal", "relu")
    assert {"x", "deep", "sum", "pool", "logits", "y"} < {*nodes}
    assert report.ranked[0].ratio > 30
