"""`mlfbuild vectors` and what `verify` and `update` do with the vectors that it wrote."""

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mlfbuild.project import load_project
from mlfbuild.verify import VectorsOrigin, vectors_origin
from support.command import Folder
from support.firmware_repo import tiny_network
from support.oracle import tflite_micro_cases
from support.tflite_builder import Network

JUDGES = ("tflite_micro", "tflite_micro.python.tflite_micro", "ai_edge_litert", "ai_edge_litert.interpreter")


@pytest.fixture
def desk(folder: Folder, tool: Callable[..., str]) -> Folder:
    """A project without vectors; the model alpha names a file that does not exist yet."""
    tool("gcc", "cmake", "ninja")
    (folder.root / "alpha.npz").unlink()
    return folder


def origin_of(folder: Folder, name: str = "alpha.npz") -> VectorsOrigin:
    origin = vectors_origin(folder.root / name)
    assert origin is not None
    return origin


def test_tflite_micro_computes_the_outputs(desk: Folder) -> None:
    ended = desk.run("vectors", "alpha", "--cases", "5", "--seed", "7", "--format", "json", status=0)
    with np.load(desk.root / "alpha.npz") as arrays:
        inputs, outputs = arrays["in0"], arrays["out0"]
    assert inputs.shape == (5, 1, 8) and len(np.unique(inputs)) > 20
    right = tflite_micro_cases(tiny_network(0), [[case] for case in inputs])
    assert np.array_equal(outputs, np.stack([case[0] for case in right]))
    origin = origin_of(desk)
    assert (origin.judge.split(" 0.")[0], origin.checked, origin.seed) == ("TensorFlow Lite Micro", True, 7)
    assert (ended.json["cases"], ended.json["written"]) == (5, ["alpha.npz"])
    assert desk.run("verify").out == "alpha: 5 cases right on host, arena 0 of 0 bytes used\n"


def test_the_same_request_writes_the_same_bytes(desk: Folder) -> None:
    desk.run("vectors", "alpha", "--cases", "3")
    first = (desk.root / "alpha.npz").read_bytes()
    assert desk.run("vectors", "alpha", "--format", "json").json["written"] == []
    (desk.root / "alpha.npz").unlink()
    desk.run("vectors", "alpha", "--cases", "3")
    assert (desk.root / "alpha.npz").read_bytes() == first


def test_own_data_is_used_again(desk: Folder) -> None:
    mine = np.arange(-16, 16, dtype=np.int8).reshape(4, 1, 8)
    np.savez(desk.root / "day.npz", in0=mine)
    assert desk.run("vectors", "alpha", "--from", "day.npz").status == 0
    desk.write("models/alpha.tflite", tiny_network(5))
    assert desk.run("vectors", "alpha").status == 0
    with np.load(desk.root / "alpha.npz") as arrays:
        assert np.array_equal(arrays["in0"], mine)
        right = tflite_micro_cases(tiny_network(5), [[case] for case in mine])
        assert np.array_equal(arrays["out0"], np.stack([case[0] for case in right]))
    assert origin_of(desk).seed is None
    assert desk.refused("vectors", "alpha", "--from", "day.npz", "--seed", "1")[:2] == (2, "options-exclude-each-other")


def edited(folder: Folder) -> None:
    with np.load(folder.root / "alpha.npz") as arrays:
        changed = dict(arrays)
    np.savez(folder.root / "alpha.npz", **changed)


def with_other_outputs(folder: Folder) -> None:
    with zipfile.ZipFile(folder.root / "alpha.npz") as archive:
        comment = archive.comment
    with np.load(folder.root / "alpha.npz") as arrays:
        changed = {name: arrays[name] ^ 1 for name in arrays.files}
    np.savez(folder.root / "alpha.npz", **changed)
    with zipfile.ZipFile(folder.root / "alpha.npz", "a") as archive:
        archive.comment = comment


def with_comment(comment: bytes) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        with zipfile.ZipFile(folder.root / "alpha.npz", "a") as archive:
            archive.comment = comment

    return change


@pytest.mark.parametrize(
    "change", [edited, with_other_outputs, *map(with_comment, (b"", b"[]", b'{"mlfbuild_vectors": 2}', b"{" * 60000))]
)
def test_vectors_of_the_user_are_not_replaced(desk: Folder, change: Callable[[Folder], None]) -> None:
    desk.run("vectors", "alpha")
    change(desk)
    before = (desk.root / "alpha.npz").read_bytes()
    assert desk.refused("vectors", "alpha") == (6, "vectors-of-user", "alpha.npz")
    assert (desk.root / "alpha.npz").read_bytes() == before


def test_without_another_implementation(desk: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in JUDGES:
        monkeypatch.setitem(sys.modules, name, None)
    assert desk.refused("vectors", "alpha")[:2] == (3, "judge-not-installed")
    assert not (desk.root / "alpha.npz").exists()
    assert desk.run("vectors", "alpha", "--self").status == 0
    assert not origin_of(desk).checked
    ended = desk.run("verify", "--format", "json")
    (remark,) = ended.json[0]["remarks"]
    assert ended.status == 0 and "no second implementation" in remark


def test_litert_computes_what_tflite_micro_cannot(desk: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.run("vectors", "alpha")
    with np.load(desk.root / "alpha.npz") as arrays:
        right = arrays["out0"]
    for name in JUDGES[:2]:
        monkeypatch.setitem(sys.modules, name, None)
    assert desk.run("vectors", "alpha").status == 0
    with np.load(desk.root / "alpha.npz") as arrays:
        assert np.array_equal(arrays["out0"], right)
    assert origin_of(desk).judge.startswith("LiteRT")


def test_onnx_has_its_own_evaluator(desk: Folder) -> None:
    graph = helper.make_graph(
        [helper.make_node("Tanh", ["x"], ["h"]), helper.make_node("ReduceSum", ["h"], ["y"], keepdims=1)],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), desk.root / "net.onnx")
    text = (desk.root / "mlfbuild.yml").read_text()
    desk.write("mlfbuild.yml", text.replace("  alpha:", "  net: {source: net.onnx}\n  alpha:"))
    desk.run("vectors", "net", "--cases", "3", status=0)
    assert load_project(desk.root / "mlfbuild.yml").models["net"].vectors == {"": desk.root / "tests/net.npz"}
    with np.load(desk.root / "tests/net.npz") as arrays:
        expected = np.tanh(arrays["in0"].astype(np.float64)).sum(axis=(1, 2), keepdims=True)
        assert np.allclose(arrays["out0"], expected, atol=1e-6)
    assert origin_of(desk, "tests/net.npz").judge.startswith("ONNX ReferenceEvaluator")


def test_rows_of_a_stream_are_compared_with_its_windows(desk: Folder) -> None:
    net = Network()
    weights = np.arange(-6, 6, dtype=np.int8).reshape(1, 3, 1, 4) * 9
    x = net.input((1, 6, 1, 4), scale=0.1, zero_point=-3)
    model = net.build([net.depthwise_conv2d(x, weights, weight_scales=[0.02] * 4, scale=0.2, zero_point=5)])
    desk.write("models/ear.tflite", model)
    text = (desk.root / "mlfbuild.yml").read_text()
    added = "  ear: {source: models/ear.tflite, options: {stream: true}}\n  alpha:"
    desk.write("mlfbuild.yml", text.replace("  alpha:", added))
    desk.run("vectors", "ear", "--cases", "8", status=0)
    with np.load(desk.root / "tests/ear.npz") as arrays:
        rows, newest = arrays["in0"], arrays["out0"]
    assert rows.shape == newest.shape == (8, 1, 1, 1, 4)
    # The window is full of zeros before the first row.
    heard = np.concatenate([np.full((5, 4), -3, np.int8), rows.reshape(8, 4)])
    cases = tflite_micro_cases(model, [[heard[run : run + 6].reshape(1, 6, 1, 4)] for run in range(8)])
    assert np.array_equal(newest[:, 0, 0, 0], np.stack([case[0][0, -1, 0] for case in cases]))
    desk.run("vectors", "alpha", status=0)
    assert "ear: 8 cases right on host" in desk.run("verify", status=0).out


def test_a_missing_file_names_the_command(desk: Folder) -> None:
    ended = desk.run("build", "--format", "json")
    (problem,) = ended.error["problems"]
    assert problem["code"] == "no-such-file" and "mlfbuild vectors alpha" in problem["hint"]


def test_an_archive_has_no_second_implementation(desk: Folder) -> None:
    desk.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "a.tar")
    desk.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {a: {source: a.tar}}\n")
    assert desk.refused("vectors", "a")[:2] == (2, "vectors-of-another-compiler")


def test_vectors_of_another_version_are_named(desk: Folder) -> None:
    desk.run("vectors", "alpha")
    desk.write("models/alpha.tflite", tiny_network(5))
    ended = desk.run("verify", "--format", "json", status=1)
    (remark,) = ended.json[0]["remarks"]
    assert "mlfbuild vectors" in remark
    assert desk.run("vectors", "alpha").status == 0
    ended = desk.run("verify", "--format", "json")
    assert (ended.status, ended.json[0]["remarks"]) == (0, [])


def test_an_update_computes_them_again(desk: Folder) -> None:
    desk.run("vectors", "alpha", "--cases", "3", "--seed", "2")
    desk.write("new.tflite", tiny_network(5))
    ended = desk.run("update", "alpha", "new.tflite", "--format", "json", status=0)
    assert [Path(path).name for path in ended.json["written"]] == ["alpha.tflite", "alpha.npz"]
    assert (origin_of(desk).seed, desk.run("verify").status) == (2, 0)


def test_a_version_of_another_shape_that_was_built_already(desk: Folder) -> None:
    desk.run("vectors", "alpha", "--cases", "3", "--seed", "2")
    desk.write("models/alpha.tflite", tiny_network(5, size=12))
    event = desk.run("verify", "--format", "json").error
    assert (event["code"], "mlfbuild vectors" in event["hint"]) == ("vectors-array-shape", True)
    ended = desk.run("update", "alpha", "models/alpha.tflite", "--format", "json")
    assert (ended.status, [Path(path).name for path in ended.json["written"]]) == (0, ["alpha.npz"])
    assert any("nothing to compare" in line for line in ended.json["notes"])
    assert desk.run("verify").status == 0


def test_an_update_leaves_vectors_of_the_user(folder: Folder, tool: Callable[..., str]) -> None:
    tool("gcc", "cmake", "ninja")
    before = (folder.root / "alpha.npz").read_bytes()
    folder.write("new.tflite", tiny_network(5))
    ended = folder.run("update", "alpha", "new.tflite", "--format", "json")
    assert [Path(path).name for path in ended.json["written"]] == ["alpha.tflite"]
    assert any("alpha.npz is not from mlfbuild" in line for line in ended.json["notes"])
    assert (folder.root / "alpha.npz").read_bytes() == before


def test_the_sample_of_a_new_project_follows_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Folder(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    assert desk.run("init", "fw", "--model", "models/alpha.tflite").status == 0
    monkeypatch.chdir(tmp_path / "fw")
    sample = tmp_path / "fw/src/sample.h"
    before = sample.read_bytes()
    desk.write("fw/models/alpha.tflite", tiny_network(5))
    ended = desk.run("vectors", "alpha", "--format", "json")
    assert ended.json["written"] == ["tests/alpha.npz", "src/sample.h"]
    with np.load(tmp_path / "fw/tests/alpha.npz") as arrays:
        assert f"{', '.join(map(str, arrays['out0'][0].reshape(-1)))},".encode() in sample.read_bytes()
    assert sample.read_bytes() != before
    desk.write("fw/models/alpha.tflite", tiny_network(5, size=12))
    assert desk.run("vectors", "alpha", "--format", "json").json["written"] == ["tests/alpha.npz", "src/sample.h"]
    assert b"[12] = {" in sample.read_bytes()
    desk.write("fw/src/sample.h", sample.read_bytes() + b"/* mine */\n")
    desk.write("fw/models/alpha.tflite", tiny_network(6))
    ended = desk.run("vectors", "alpha", "--format", "json")
    assert ended.json["written"] == ["tests/alpha.npz"]
    assert any("sample.h stays as it is" in line for line in ended.json["notes"])
