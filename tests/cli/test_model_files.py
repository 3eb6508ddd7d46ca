"""`inspect`, `validate`, `run` and `compare` with model files in place of archives."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import helper

from support.command import Folder
from support.firmware_repo import tiny_network
from support.onnx_models import model


@pytest.fixture
def compiled(folder: Folder, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return the folder with ``alpha.tar``, compiled for the Cortex-M4."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    assert folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "alpha.tar").status == 0
    return folder


def onnx_network() -> bytes:
    """Return a network whose output is twice its input."""
    return model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", (1, 4))], [("y", (1, 4))])


def test_inspect_describes_what_a_model_file_compiles_to(folder: Folder) -> None:
    facts = folder.run("inspect", "models/alpha.tflite", "--format", "json").json
    (module,) = facts["modules"]
    assert (module["name"], module["target"], module["inputs"][0]["shape"]) == ("alpha", ["c -keys=cpu"], [1, 8])
    page = folder.run("inspect", "models/alpha.tflite", "--model", "alpha").out
    assert page.splitlines()[0] == "models/alpha.tflite, compiled for this machine"
    assert folder.refused("inspect", "models/alpha.tflite", "--model", "beta") == (
        2, "unknown-module", "models/alpha.tflite",
    )  # fmt: skip
    folder.write("double.onnx", onnx_network())
    assert folder.run("inspect", "double.onnx", "--format", "json").json["modules"][0]["name"] == "double"


def test_validate_checks_what_a_model_file_compiles_to(folder: Folder) -> None:
    report = folder.run("validate", "models/alpha.tflite", "--format", "json").json
    assert (report["archive"], report["valid"], report["errors"]) == ("models/alpha.tflite", True, 0)
    folder.write("junk.tflite", b"junk" * 300)
    assert folder.refused("validate", "junk.tflite") == (5, "tflite-malformed", "junk.tflite: header")
    assert folder.refused("validate", "none.tflite") == (5, "no-such-input", "none.tflite")


def test_the_content_decides_whether_a_file_is_an_archive(compiled: Folder) -> None:
    compiled.write("renamed.tflite", (compiled.root / "alpha.tar").read_bytes())
    assert "-mcpu=cortex-m4" in compiled.run("inspect", "renamed.tflite").out
    compiled.write("weights.bin", (compiled.root / "models/alpha.tflite").read_bytes())
    assert compiled.run("inspect", "weights.bin").out.startswith("weights.bin, compiled for this machine\n")


@pytest.mark.parametrize(
    "where", [(), pytest.param(("--board", "mps2-an386"), marks=pytest.mark.sweep)], ids=["here", "board"]
)
def test_run_gives_the_outputs_of_the_archive(
    compiled: Folder, where: tuple[str, ...], tool: Callable[..., str]
) -> None:
    if where:
        tool("qemu-system-arm", "arm-none-eabi-gcc", "cmake", "ninja")
    ended = compiled.run("run", "models/alpha.tflite", "--inputs", "alpha.npz", "-o", "y.npz", *where)
    assert (ended.status, ended.err) == (0, "")
    (outputs,) = np.load(compiled.root / "y.npz").values()
    expected = np.load(compiled.root / "alpha.npz")["out0"]
    np.testing.assert_array_equal(outputs.reshape(expected.shape), expected)


def test_run_with_onnx(compiled: Folder) -> None:
    compiled.write("double.onnx", onnx_network())
    x = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    np.savez(compiled.root / "x.npz", x=x)
    assert compiled.run("run", "double.onnx", "--inputs", "x.npz", "-o", "y.npz").status == 0
    np.testing.assert_array_equal(np.load(compiled.root / "y.npz")["y"], 2 * x)
    assert compiled.refused("run", "double.onnx", "--inputs", "x.npz", "-o", "y.npz", "--model", "kws") == (
        2, "unknown-module", "double.onnx",
    )  # fmt: skip


def test_compare_compiles_for_the_cpu_of_the_other_archive(compiled: Folder) -> None:
    for pair in (("alpha.tar", "models/alpha.tflite"), ("models/alpha.tflite", "alpha.tar")):
        ended = compiled.run("compare", *pair)
        assert (ended.status, ended.err) == (0, ""), ended
    for first in ("alpha.tar", "models/alpha.tflite"):
        found = compiled.run("compare", first, "models/beta.tflite", "--format", "json", status=1)
        differences = {(each["module"], each["what"]) for each in found.json["differences"]}
        expected = {("alpha", "code")} | ({("alpha", "tensor")} if first.endswith(".tflite") else set())
        assert differences == expected, "beta has other weights, and gets the name alpha"


def test_compare_of_models_lists_tensors_and_counts_files_of_c(compiled: Folder) -> None:
    arguments = ("compare", "models/alpha.tflite", "models/beta.tflite")
    ended = compiled.run(*arguments)
    rows = [row.split() for row in ended.out.splitlines() if row.startswith("  ")]
    assert [row[0] for row in rows if row[0] != "alpha:"] == ["tensor", "tensor", "code"]
    assert "tvmgen_alpha.h" not in ended.out
    assert "alpha_lib0.c: " in compiled.run(*arguments, "-v").out


def test_compare_names_the_first_operator_of_two_model_files_that_differs(compiled: Folder) -> None:
    compiled.write("changed/alpha.tflite", tiny_network(1))
    arguments = ("compare", "models/alpha.tflite", "changed/alpha.tflite", "--inputs", "alpha.npz")
    ended = compiled.run(*arguments, "--format", "json", status=1)
    assert ended.json["operator"]["operator"] == "FULLY_CONNECTED"
    same = compiled.run("compare", "models/alpha.tflite", "alpha.tar", "--inputs", "alpha.npz", "--format", "json")
    assert (same.status, same.json["equal"]) == (0, True)
