"""`mlfbuild evaluate`: the compiled network over a test set, here and on a board, and what is refused."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from mlfbuild.jobs import load as load_project, target_jobs
from mlfbuild.report.document.read import mistake_in, report_schema
from mlfbuild.report.html.evaluated import evaluated_views, lowest_accuracy
from mlfbuild.usecases import evaluate_jobs, evaluated_state
from mlfbuild.verify.host import load
from support.command import Folder
from support.firmware_repo import tiny_network
from support.float_networks import calibration, float_onnx

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
  m4: {cpu: cortex-m4, board: mps2-an386}
models:
  alpha:
    source: models/alpha.tflite
    evaluate: {data: test.npz, %s}
"""
CASES = 600


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> dict[str, np.ndarray]:
    """Real inputs, and the classes that the network finds, the first 60 of them changed."""
    tool("gcc")
    path = tmp_path_factory.mktemp("evaluate") / "alpha.tflite"
    path.write_bytes(tiny_network(0))
    inputs = np.random.default_rng(3).uniform(-6, 6, (CASES, 8)).astype(np.float32)
    model = load(path)
    (outputs,) = model.run_cases([model.inputs[0].quantized(inputs[:, np.newaxis])])
    classes = outputs.reshape(CASES, 4).argmax(axis=1)
    labels = np.where(np.arange(CASES) < 60, (classes + 1) % 4, classes)
    return {"in0": inputs, "labels": labels, "out0": model.outputs[0].dequantized(outputs)}


@pytest.fixture
def desk(folder: Folder, truth: dict[str, np.ndarray]) -> Folder:
    np.savez(folder.root / "test.npz", **truth)
    folder.write("mlfbuild.yml", PROJECT % "metric: top1, at-least: 0.9")
    return folder


def test_the_value_is_that_of_the_whole_test_set(desk: Folder) -> None:
    ended = desk.run("evaluate", "--model", "alpha", "--format", "json", status=0)
    (found,) = ended.json["evaluations"]
    assert (found["passed"], found["machine"], found["limits"]) == (True, "this machine", {"at-least": 0.9})
    result = found["result"]
    assert (result["value"], result["cases"]) == (0.9, CASES)
    assert all(each["case"] < 60 and each["found"] == (each["label"] - 1) % 4 for each in result["worst"])
    assert sum(cases for label, found, cases in result["confusion"] if label != found) == 60
    assert "alpha: top1 0.9, 600 cases (at-least 0.9) on this machine" in desk.run("evaluate").out
    assert desk.refused("evaluate", "--losses")[:2] == (2, "losses-without-quantize")


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("metric: top1, at-least: 0.91", 1, "evaluation-short"),
        ("metric: mse, at-most: 0", 0, ""),
        ("metric: mse, output: nothing", 2, "unknown-output"),
        ("metric: 'own:score', at-least: 0.9", 0, ""),
        ("metric: 'own:raises', at-least: 0.9", 5, "function-failed"),
        ("metric: 'own:scalar', at-least: 0.9", 2, "metric-result"),
        ("metric: 'own:nothing', at-least: 0.9", 2, "no-such-function"),
        ("metric: 'other:score', at-least: 0.9", 2, "function-not-imported"),
    ],
)
def test_limits_and_functions(desk: Folder, text: str, status: int, code: str) -> None:
    desk.write("mlfbuild.yml", PROJECT % text)
    desk.write(
        "own.py",
        "def score(outputs, expected):\n    return outputs.reshape(len(outputs), -1).argmax(1) == expected\n"
        "def raises(outputs, expected):\n    return outputs[9999]\n"
        "def scalar(outputs, expected):\n    return 1.0\n",
    )
    ended = desk.run("evaluate", "--format", "json", status=status)
    if status:
        assert ended.error["code"] == code
        assert "\n" not in ended.error["message"]


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"labels": np.full(CASES, 4)}, 5, "label-out-of-range"),
        ({"labels": None, "out0": None}, 5, "data-labels-missing"),
        ({"in0": np.zeros((CASES, 9), np.float32)}, 5, "data-shape"),
        ({"labels": np.zeros(CASES - 1, np.int64)}, 5, "data-case-counts"),
    ],
)
def test_data_that_do_not_fit(
    desk: Folder, truth: dict[str, np.ndarray], change: dict[str, np.ndarray | None], status: int, code: str
) -> None:
    arrays = {name: array for name, array in {**truth, **change}.items() if array is not None}
    np.savez(desk.root / "test.npz", **arrays)
    assert desk.run("evaluate", "--format", "json", status=status).error["code"] == code


def test_the_key_is_checked_with_the_project_file(desk: Folder) -> None:
    (desk.root / "test.npz").unlink()
    missing = [("no-such-file", "mlfbuild.yml:8:22: models.alpha.evaluate.data")]
    assert desk.mistakes("check") == desk.mistakes("evaluate") == desk.mistakes("verify") == missing
    desk.write("mlfbuild.yml", PROJECT % "metric: top2, max-drop: 0.1")
    assert [code for code, _ in desk.mistakes("check")] == ["unknown-metric", "drop-without-float-source"]
    desk.write("mlfbuild.yml", "mlfbuild: 1\ntargets: [host]\nmodels: [models/alpha.tflite]\n")
    assert desk.refused("evaluate")[:2] == (1, "nothing-to-evaluate")


def test_verify_measures_models_that_have_the_key(desk: Folder) -> None:
    desk.write("mlfbuild.yml", PROJECT % "metric: top1, at-least: 0.91")
    ended = desk.run("verify", "--junit", "verify.xml", "--format", "json", status=1)
    (found,) = ended.json
    assert (ended.error["code"], found["passed"], found["evaluation"]["result"]["value"]) == (
        "evaluation-short",
        False,
        0.9,
    )
    _, case = ET.parse(desk.root / "verify.xml").iter("testcase")
    assert (case.attrib["name"], case.attrib["line"]) == ("alpha", "8")
    assert [child.attrib["type"] for child in case] == ["evaluation-short"]


def state(desk: Folder) -> dict[str, Any]:
    """Return what a report has about the model."""
    project = load_project(desk.root / "mlfbuild.yml")
    found = evaluated_state(evaluate_jobs(project, target_jobs(project))[0])
    assert mistake_in(found, {"$defs": report_schema()["$defs"], "$ref": "#/$defs/evaluate"}) is None
    return found


def test_reports_have_the_last_result(desk: Folder) -> None:
    def after(text: str = "metric: top1, at-least: 0.9") -> dict[str, Any]:
        desk.write("mlfbuild.yml", PROJECT % text)
        return state(desk)

    assert after() == {"state": "never"}
    desk.run("evaluate", status=0)
    passed, failed = after(), after("metric: top1, at-least: 0.95")
    assert (passed["state"], failed["state"]) == ("passed", "failed")
    (view,) = evaluated_views({"evaluate": [failed]})
    assert [table.title for table in view.tables] == ["Confusion", "Classes", "Worst cases"]
    assert lowest_accuracy([{"name": "alpha", "evaluate": [passed]}]) == (0.9, "top1 of alpha")
    assert after("metric: f1, at-least: 0.9")["state"] == "outdated"
    (changed,) = (
        each["changes"] for each in desk.run("why", "--format", "json").json["results"] if "evaluation" in each["title"]
    )
    assert changed == [{"name": "metric", "before": "top1", "now": "f1"}]
    own, code = "metric: 'own:score', at-least: 1", "def score(outputs, labels):\n    return labels >= 0\n"
    desk.write("mlfbuild.yml", PROJECT % own)
    desk.write("own.py", code)
    desk.run("evaluate", status=0)
    assert after(own)["state"] == "passed"
    desk.write("own.py", f"{code}\n")
    assert after(own)["state"] == "outdated"
    (desk.root / "test.npz").write_bytes(b"")
    assert after()["state"] == "outdated"


def test_a_drop_is_that_from_the_float_network(desk: Folder) -> None:
    desk.write("models/alpha.onnx", float_onnx())
    calibration(desk.root / "calibration.npz", shape=(1, 3, 8, 8))
    images, expected = np.random.default_rng(1).random((20, 3, 8, 8), np.float32), np.zeros((20, 4), np.float32)
    np.savez(desk.root / "test.npz", in0=images, out0=expected)
    key = "metric: mse, max-drop: 0.05}\n    dims: {n: 1}\n    quantize: {calibration: calibration.npz"
    desk.write("mlfbuild.yml", (PROJECT % key).replace("alpha.tflite", "alpha.onnx"))
    assert state(desk)["losses"] == {"state": "never"}
    (found,) = desk.run("evaluate", "--losses", "--format", "json", status=0).json["evaluations"]
    result = found["result"]
    # Softmax of four classes: the mean of the squares is from 1/16 to 1/4.
    value, source = result["value"], result["source_value"]
    assert 1 / 16 < source < 1 / 4 and value not in {source, 0} and abs(value - source) < 0.02
    assert state(desk)["losses"] == {"state": "current", **found["losses"]}
    assert (found["losses"]["cases"], found["losses"]["begins"]) == (20, None)
    _, view = evaluated_views({"name": "alpha", "evaluate": [state(desk)]})
    (table,) = view.tables
    assert [row[0] for row in table.rows] == [each["label"] for each in found["losses"]["tensors"]]
    assert "no tensor is below 30 dB" in desk.run("evaluate", "--losses", "--format", "markdown", status=0).out
    np.savez(desk.root / "test.npz", in0=(images * 255 - 128).astype(np.int8), out0=expected)
    assert state(desk)["losses"] == {"state": "outdated"}
    assert desk.run("evaluate", "--format", "json", status=5).error["code"] == "data-not-real"


def test_an_emulated_board_runs_a_test_set_in_batches(desk: Folder, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    ended = desk.run("evaluate", "--target", "m4", "--format", "markdown", status=0)
    assert "| passed | `alpha for m4` | `mps2-an386` | `top1` | 0.9 | at-least 0.9 | 600 |" in ended.out
