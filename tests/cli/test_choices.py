"""Free dimensions and state, as options of the command and as keys of a project file."""

import pytest
from onnx import helper

from support.command import Folder
from support.onnx_models import model
from support.tflite_builder import Network

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  cell: {source: cell.onnx, dims: {batch: 1, width: 5}, state: {h_in: h_out}}
"""

SIGNATURES = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  encoder: {source: two.tflite, signature: encode}
  decoder: {source: two.tflite, signature: decode}
"""


@pytest.fixture
def cell(folder: Folder) -> Folder:
    """A folder with a recurrent cell, all of whose dimensions are free."""
    row = ("batch", "width")
    nodes = [helper.make_node("Add", ["x", "h_in"], ["s"]), helper.make_node("Tanh", ["s"], ["h_out"]),
             helper.make_node("Neg", ["h_out"], ["y"])]  # fmt: skip
    folder.write("cell.onnx", model(nodes, [("x", row), ("h_in", row)], [("y", row), ("h_out", row)]))
    return folder


def test_dimensions_and_state_are_options_of_compile(cell: Folder) -> None:
    compiling = ("compile", "cell.onnx", "--cpu", "host", "-o", "a.tar")
    missing = cell.run(*compiling)
    assert missing.status == 4
    assert "-O dim.width=..." in missing.err
    ended = cell.run(*compiling, "-O", "dim.width=5", "-O", "state.h_in=h_out")
    assert ended.status == 0
    assert "note: cell.onnx: input 'x': the free dimension 'batch' is fixed at 1" in ended.err
    (module,) = cell.run("inspect", "a.tar", "--format", "json").json["modules"]
    assert [(port["name"], port["shape"]) for port in module["inputs"]] == [("x", [1, 5])]
    assert [port["name"] for port in module["outputs"]] == ["y"]
    quiet = cell.run(*compiling, "-O", "dim.width=5", "-O", "dim.batch=1", "-q")
    assert quiet.err == ""


@pytest.mark.parametrize(
    ("option", "fact"),
    [
        ("dim.width=0", "above 0"), ("dim.width=wide", "above 0"), ("dim.width=true", "above 0"),
        ("state.h_in=", "name"), ("signature=", "name"), ("signature=encode", "no signatures"),
    ],
)  # fmt: skip
def test_wrong_values_of_choices_are_refused(option: str, fact: str, cell: Folder) -> None:
    ended = cell.run("compile", "cell.onnx", "--cpu", "host", "-o", "a.tar", "-O", option)
    assert (ended.status, fact in ended.err) == (2, True)


def test_dimensions_and_state_are_keys_of_a_model(cell: Folder) -> None:
    cell.write("mlfbuild.yml", PROJECT)
    assert cell.run("build", "--format", "json").json["models"][0]["notes"] == []
    (module,) = cell.run("inspect", "build/mlf/pc/cell.tar", "--format", "json").json["modules"]
    assert [(port["name"], port["shape"]) for port in module["inputs"]] == [("x", [1, 5])]
    cell.write("mlfbuild.yml", PROJECT.replace("batch: 1, ", ""))
    ended = cell.run("build")
    assert "note: cell for pc: input 'x': the free dimension 'batch' is fixed at 1" in ended.err
    assert "note" not in cell.run("build").err


def test_a_signature_is_an_option_and_a_key(folder: Folder) -> None:
    net, other = Network(), Network()
    net.softmax(net.input((1, 4)))
    other.softmax(other.input((2, 3)))
    other.outputs = [1]
    net.others, net.signatures = [other], {"encode": 0, "decode": 1}
    folder.write("two.tflite", net.build())
    compiling = ("compile", "two.tflite", "--cpu", "host", "-o", "a.tar")
    ended = folder.run(*compiling)
    assert "note: two.tflite: only the first subgraph of the file is compiled" in ended.err
    wrong = folder.run(*compiling, "-O", "signature=decod")
    assert (wrong.status, "encode, decode" in wrong.err) == (2, True)
    folder.write("mlfbuild.yml", SIGNATURES)
    assert folder.run("build", "-q").err == ""
    for name, shape in (("encoder", [1, 4]), ("decoder", [2, 3])):
        (module,) = folder.run("inspect", f"build/mlf/pc/{name}.tar", "--format", "json").json["modules"]
        assert [port["shape"] for port in module["inputs"]] == [shape]
