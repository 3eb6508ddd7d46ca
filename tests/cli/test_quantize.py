"""`mlfbuild quantize` of one file; tests/quantization tests what the file then computes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlfbuild.verify.host import load
from support.command import Folder
from support.float_networks import calibration, float_tflite, hostile_tflite


@pytest.fixture
def floats(folder: Folder) -> Folder:
    folder.write("net.tflite", float_tflite())
    calibration(folder.root / "data.npz", 4)
    return folder


def test_a_file_is_quantised(floats: Folder) -> None:
    made = floats.run("quantize", "net.tflite", "--calibration", "data.npz", "-o", "int8.tflite", "--format", "json")
    assert (made.json["file"], made.json["cases"], len(made.json["warnings"])) == ("int8.tflite", 4, 1)
    assert {each["reason"] for each in made.json["operators"]} == {""}
    assert mistake(floats, "int8.tflite", "-o", "new.tflite") == (2, "quantized-already")


@pytest.mark.sweep
def test_a_bias_that_clips_is_named(floats: Folder) -> None:
    inputs = np.load(floats.root / "data.npz")["in0"]
    np.savez(floats.root / "small.npz", in0=inputs * 1e-7)
    words = ("--activations", "int16", "-o", "x.tflite", "--format", "json")
    for data, clipped in (("small.npz", True), ("data.npz", False)):
        made = floats.run("quantize", "net.tflite", "--calibration", data, *words)
        assert any("bias" in text for text in made.json["warnings"]) == clipped


def mistake(floats: Folder, *words: str) -> tuple[int, str]:
    return floats.refused("quantize", *words, "--calibration", "data.npz")[:2]


def test_mistakes_before_an_engine_runs(floats: Folder) -> None:
    floats.write("other.tflite", float_tflite(1))
    assert mistake(floats, "net.tflite", "-o", "other.tflite") == (6, "output-of-another-kind")
    assert mistake(floats, "net.tflite", "-o", "net.onnx") == (2, "quantize-output-format")
    assert mistake(floats, "net.tflite", "-o", "new.tflite", "-O", "memory=smallest") == (2, "option-not-applicable")
    assert mistake(floats, "net.tflite", "-o", "new.tflite", "-O", "dim.n=2") == (2, "dims-of-tflite")
    assert mistake(floats, "net.tflite", "-o", "new.tflite", "--method", "entropy") == (2, "unknown-method")
    floats.write("page.tflite", "<!DOCTYPE html>")
    assert mistake(floats, "page.tflite", "-o", "new.tflite") == (5, "web-page-not-model")


PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  net:
    source: net.tflite
    quantize: {calibration: data.npz}
    evaluate: {data: test.npz, metric: mse, at-most: %s}
"""


@pytest.fixture
def hostile(folder: Folder, tool: Callable[[str], str]) -> Folder:
    """Return a project whose model loses a channel by quantisation, with what the float network computes."""
    tool("gcc")
    folder.write("net.tflite", hostile_tflite())
    inputs = np.load(calibration(folder.root / "data.npz", 16))["in0"]
    (outputs,) = load(folder.root / "net.tflite").run_cases([inputs[:, np.newaxis]])
    np.savez(folder.root / "test.npz", in0=inputs, out0=outputs)
    return folder


def improved(hostile: Folder, limit: str, *words: str, status: int = 0) -> Any:
    hostile.write("mlfbuild.yml", PROJECT % limit)
    return hostile.run("quantize", "net", "--improve", *words, "--format", "json", status=status)


def improved_file(hostile: Folder, *limits: str, status: int) -> Any:
    """Improve the model file alone; ``limits`` are further keys of evaluate."""
    words = [f"--evaluate={each}" for each in ("data=test.npz", "metric=mse", *limits)]
    command = ("quantize", "net.tflite", "--improve", "--calibration", "data.npz", "-o", "file.tflite", *words)
    return hostile.run(*command, "--format", "json", status=status)


def test_advice_is_applied_until_the_accuracy_suffices(hostile: Folder) -> None:
    done = improved(hostile, "0.00002", "-o", "better.tflite", "--write").json
    assert (done["changes"], done["passed"]) == ({"keep-float": ["t3", "t6"]}, True)
    assert [each["changes"] for each in done["steps"]] == [{}, done["changes"]]
    assert done["steps"][0]["result"]["value"] > 10 * done["steps"][1]["result"]["value"]
    better = (hostile.root / "better.tflite").read_bytes()
    assert better == (hostile.root / "build/quantized/net.tflite").read_bytes()
    assert "keep-float: [t3, t6]" in (hostile.root / "mlfbuild.yml").read_text()
    of_file = improved_file(hostile, "at-most=0.00002", status=0).json
    assert [of_file[key] for key in ("steps", "changes")] == [done[key] for key in ("steps", "changes")]
    assert (hostile.root / "file.tflite").read_bytes() == better


@pytest.mark.sweep
def test_it_fails_when_no_advice_is_left(hostile: Folder) -> None:
    ended = improved(hostile, "0", status=1)
    assert {"keep-float": ["t3", "t6"], "activations": "int16"}.items() <= ended.json["changes"].items()
    assert not ended.json["passed"]
    assert len(improved(hostile, "1").json["steps"]) == 1


def test_mistakes_with_improve(hostile: Folder) -> None:
    hostile.write("mlfbuild.yml", PROJECT % "1")

    def refused(*words: str) -> tuple[int, str]:
        return hostile.refused("quantize", *words)[:2]

    assert refused("nett", "--improve") == (2, "unknown-model")
    assert refused("net.tflite", "--write") == (2, "option-needs-another")
    assert refused("net", "--improve", "-o", "x.onnx") == (2, "option-not-applicable")
    assert refused("net", "--improve", "--io", "float32") == (2, "option-not-applicable")
    assert refused("net.tflite", "-o", "x.tflite") == (2, "quantize-option-missing")
    assert refused("net.tflite", "-o", "x.tflite", "--calibration", "data.npz", "-j", "1") == (
        2,
        "option-needs-another",
    )
    for limits, code, place in (
        ((), "improve-limits-missing", "--evaluate"),
        (("at-least=1",), "limit-of-wrong-side", "--evaluate at-least"),
        (("at-most=1", "data=none.npz"), "no-such-file", "--evaluate data"),
        (("at-most=1", "metrics=mse"), "unknown-key", "--evaluate metrics"),
    ):
        error = improved_file(hostile, *limits, status=2).error
        assert (error["code"], error["place"]) == (code, place)
    hostile.write("mlfbuild.yml", (PROJECT % "1").replace(", at-most: 1", ""))
    assert refused("net", "--improve") == (2, "nothing-to-improve")
