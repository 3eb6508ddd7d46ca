"""Metadata of model files, valid and damaged."""

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from mlfbuild.native.frontends.facts import ModelFacts, model_facts
from support.firmware_repo import tiny_network
from support.tflite_metadata import described, metadata

WRITTEN = metadata(
    description="finds cats", version="v2", author="Ann", license="Apache License. Version 2.0 http://www.apache.org"
)


def test_tflite_metadata() -> None:
    facts = model_facts(described("MLIR Converted.", WRITTEN), Path("m.tflite"))
    assert facts == ModelFacts("v2", "finds cats", "Ann", "Apache License. Version 2.0 http://www.apache.org")


def test_the_description_is_used_without_metadata() -> None:
    assert model_facts(described("MLIR Converted.", metadata(license="MIT")), Path("m.tflite")) == ModelFacts(
        description="MLIR Converted.", license="MIT"
    )
    assert model_facts(described("MLIR Converted."), Path("m.tflite")) == ModelFacts(description="MLIR Converted.")


def test_onnx_properties() -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    model = helper.make_model(graph, doc_string="counts\n  sheep", model_version=3)
    helper.set_model_props(model, {"model_author": "Ann", "model_license": "MIT", "other": "x"})
    assert model_facts(model.SerializeToString(), Path("m.onnx")) == ModelFacts("3", "counts sheep", "Ann", "MIT")


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (b"", ".tflite"), (b"", ".onnx"), (b"\xff" * 40, ".tflite"), (b"\xff" * 40, ".onnx"),
        (b"\xff\xff\xff\xffTFL3" + bytes(8), ".tflite"), (tiny_network(0), ".tflite"), (b"TFL3", ".tar"),
    ],
)  # fmt: skip
def test_files_without_metadata(data: bytes, suffix: str) -> None:
    assert model_facts(data, Path("m" + suffix)) == ModelFacts()


@pytest.mark.parametrize(
    "data",
    [
        described("d", b"no flatbuffer"), described("d", b""), described("d", WRITTEN, name="other"),
        described("d", WRITTEN, buffer=7),
    ],
)  # fmt: skip
def test_unreadable_metadata_has_no_licence(data: bytes) -> None:
    assert not model_facts(data, Path("m.tflite")).license


def test_damaged_files_never_crash() -> None:
    data = described("MLIR Converted.", WRITTEN)
    for at in range(len(data)):
        for value in (0, 0x7F, 0xFF):
            facts = model_facts(data[:at] + bytes([value]) + data[at + 1 :], Path("m.tflite"))
            assert "".join(vars(facts).values()).isprintable()


def test_texts_are_one_line_and_limited() -> None:
    facts = model_facts(described("", metadata(license="a\nb\x1b[31m\u202e", author="x" * 9000)), Path("m.tflite"))
    assert (facts.license, len(facts.author)) == ("a b[31m", 2000)
