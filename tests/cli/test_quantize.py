"""`mlfbuild quantize` of one file; tests/quantization tests what the file then computes."""

import pytest

from support.command import Folder
from support.float_networks import calibration, float_tflite


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


def mistake(floats: Folder, *words: str) -> tuple[int, str]:
    return floats.refused("quantize", *words, "--calibration", "data.npz")[:2]


def test_mistakes_before_an_engine_runs(floats: Folder) -> None:
    floats.write("other.tflite", float_tflite(1))
    assert mistake(floats, "net.tflite", "-o", "other.tflite") == (6, "output-of-another-kind")
    assert mistake(floats, "net.tflite", "-o", "net.onnx") == (2, "quantize-output-format")
    assert mistake(floats, "net.tflite", "-o", "new.tflite", "-O", "memory=smallest") == (2, "option-not-applicable")
    assert mistake(floats, "net.tflite", "-o", "new.tflite", "-O", "dim.n=2") == (2, "dims-of-tflite")
    assert mistake(floats, "net.tflite", "-o", "new.tflite", "--method", "entropy") == (2, "unknown-method")
