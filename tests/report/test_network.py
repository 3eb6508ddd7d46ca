"""Flash of each operator of a model; every byte is counted once."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.library import Network, NetworkOperator, NetworkScratch, NetworkTensor
from mlfbuild.report.document.read import report_schema
from mlfbuild.report.html import page
from mlfbuild.report.operators.network_sizes import network_sizes
from mlfbuild.report.sizes.owners import Owner, SizedSymbol
from mlfbuild.report.text.operators import operators_text
from support import warm
from support.schemas import validator

MODULES = ("kws", "calls", "tvm", "mod1", "mod2", "packed")
PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models:
  kws: {source: kws_int8.tflite}
  calls: {source: kws_int8.tflite, executor: graph}
  tvm: {source: kws_int8-graph.tar, options: {module-name: tvm}}
  mixed: {source: multi-mixed.tar}
  aot: {source: kws_int8-aotc.tar, options: {module-name: packed}}
  spare: {source: kws_int8.tflite}
firmware:
  app: {sources: [main.c], models: [kws, calls, tvm, mixed, aot]}
"""
KINDS = ("code", "weights", "tables")

Json = dict[str, Any]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str], shared: Path) -> Json:
    """Return the report of an image with models from every compiler."""
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    folder = tmp_path_factory.mktemp("operators")
    for source in ("models/kws_int8.tflite", *(f"archives/{name}.tar" for name in
                   ("kws_int8-graph", "multi-mixed", "kws_int8-aotc"))):  # fmt: skip
        shutil.copy(shared / source, folder)
    (folder / "mlfbuild.yml").write_text(PROJECT)
    headers = [f'#include "tvmgen_{name}.h"' for name in MODULES]
    calls = [f"r += tvmgen_{name}_run((struct tvmgen_{name}_inputs *)b, (struct tvmgen_{name}_outputs *)b);"
             for name in MODULES]  # fmt: skip
    body = ["static void *b[16];", "int main(void)", "{", "int r = 0;", *calls, "return r;", "}"]
    (folder / "main.c").write_text("\n".join([*headers, *body, ""]))
    ran = warm.run("mlfbuild", "report", "--format", "json", cwd=folder, status=0)
    found: Json = json.loads(ran.stdout)
    validator(report_schema()).validate(found)
    return found


def models(facts: Json) -> dict[str, Json]:
    return {model["name"]: model for model in facts["images"][0]["models"]}


def taken(network: Json) -> int:
    parts = [*network["operators"], network["rest"]]
    return sum(part[kind] for part in parts for kind in KINDS)


@pytest.mark.parametrize("name", ["kws", "calls", "tvm"])
def test_operators_and_rest_add_up_to_the_flash_of_the_model(facts: Json, name: str) -> None:
    model = models(facts)[name]
    (network,) = model["networks"]
    assert taken(network) == model["flash"]
    sizes: dict[str, int] = {}
    for piece in model["pieces"]:
        if piece["flash"]:
            sizes[piece["name"]] = sizes.get(piece["name"], 0) + piece["size"]
    for operator in network["operators"]:
        assert sum(operator[kind] for kind in KINDS) == sum(sizes.pop(piece) for piece in operator["pieces"])
    assert sum(sizes.values()) == sum(network["rest"].values()), "each piece is one operator's, or the rest's"


def test_a_model_of_the_native_compiler(facts: Json) -> None:
    model = models(facts)["kws"]
    (network,) = model["networks"]
    assert (network["module"], network["executor"]) == ("kws", "aot")
    assert network["arena"] == model["kinds"]["ram"]["arena"]
    assert sum(operator["macs"] for operator in network["operators"]) == 2_656_768
    assert network["rest"]["weights"] == 0
    first, second, third, fourth, *_ = network["operators"]
    assert [first["operator"], second["operator"]] == ["CONV_2D", "DEPTHWISE_CONV_2D"]
    assert first["pieces"][:2] == ["tvmgen_kws_conv2d_10x4_s2_49x10x1_to_25x5x64", "tvmgen_kws_conv2d_0_packed"]
    assert "mlf_dot_3x2_dsp" in first["pieces"], "a part of the kernel that is a function of its own"
    assert "mlf_depthwise_line1_dsp" in second["pieces"]
    assert network["rest"]["code"] < 300, "little more than the run function"
    assert fourth["function"] == second["function"] and second["code"] > 0
    assert fourth["code"] == 0 and fourth["weights"] == second["weights"], "a shared function counts for the first"
    assert third["inputs"] == second["outputs"]
    tensor = network["tensors"][first["outputs"][0]]
    assert (tensor["memory"], tensor["shape"], tensor["first"], tensor["last"]) == ("arena", [1, 25, 5, 64], 0, 1)


def test_the_same_model_as_a_graph(facts: Json) -> None:
    model = models(facts)["calls"]
    (network,), (static,) = model["networks"], models(facts)["kws"]["networks"]
    assert (network["module"], network["executor"]) == ("calls", "graph")
    assert network["arena"] == model["kinds"]["ram"]["arena"]
    told = [operator for operator in static["operators"] if operator["function"]]
    for key in ("name", "operator", "macs", "weights"):
        assert [operator[key] for operator in network["operators"]] == [operator[key] for operator in told]
    pairs = [(own["scratch"], other["scratch"]) for own, other in zip(network["operators"], told, strict=True)]
    assert all((own is None) == (other is None) for own, other in pairs)
    assert all(own["size"] <= other["size"] for own, other in pairs if own), "aot fills what the arena has free"
    names = [tensor["name"] for tensor in network["tensors"]]
    assert names == [tensor["name"] for tensor in static["tensors"] if not tensor["name"].endswith("Reshape")]
    assert any(name.startswith("mlf_parameter_") for name in network["operators"][0]["pieces"])


def test_a_graph_of_tvm(facts: Json) -> None:
    model = models(facts)["tvm"]
    (network,) = model["networks"]
    assert network["arena"] == model["kinds"]["ram"]["arena"]
    operators = network["operators"]
    assert operators[0]["operator"] == "fused_cast_subtract"
    assert {operator["macs"] for operator in operators} == {None}
    assert network["rest"]["weights"] == 0 and operators[1]["weights"] > 5000
    assert operators[2]["code"] > 0 and operators[4]["function"] == operators[2]["function"]
    assert (operators[4]["code"], operators[4]["weights"]) == (0, operators[2]["weights"])
    for at, operator in enumerate(operators[1:], 1):
        assert operator["inputs"] == operators[at - 1]["outputs"]
        (tensor,) = (network["tensors"][number] for number in operator["inputs"])
        assert (tensor["first"], tensor["last"]) == (at - 1, at)
    assert network["tensors"][operators[-1]["outputs"][0]]["memory"] == "output"


def test_models_with_unknown_operators(facts: Json) -> None:
    assert models(facts)["aot"]["flash"] > 0
    assert models(facts)["aot"]["networks"] == []
    assert [network["module"] for network in models(facts)["mixed"]["networks"]] == ["mod2"], "the other one is AOT"
    assert 0 < taken(models(facts)["mixed"]["networks"][0]) < models(facts)["mixed"]["flash"]
    assert "spare" not in models(facts), "the image does not have it"


def test_symbols_of_another_module_are_not_assigned() -> None:
    network = Network(0, (), (NetworkOperator("a", "CONV_2D", "f", ("c",)), NetworkOperator("b", "ADD", "f", ("d",))))
    pieces = [
        SizedSymbol("f", "code", 100, flash=True, ram=False, module="one"),
        SizedSymbol("f", "code", 8, flash=True, ram=False, module="one"),
        SizedSymbol("f", "code", 1000, flash=True, ram=False, module="two"),
        SizedSymbol("d", "data", 16, flash=True, ram=True, module="one"),
        SizedSymbol("c", "arena", 64, flash=False, ram=True, module="one"),
        SizedSymbol("run", "code", 4, flash=True, ram=False, module="one"),
    ]
    found = network_sizes("one", "aot", network, Owner("model", tuple(pieces)), {})
    assert [part.kinds for part in found.parts] == [
        {"code": 108, "weights": 0, "tables": 0},
        {"code": 0, "weights": 0, "tables": 16},
    ]
    assert found.rest.kinds == {"code": 4, "weights": 0, "tables": 0}


def test_called_functions_belong_to_the_operator() -> None:
    def code(name: str, address: int, module: str = "one") -> SizedSymbol:
        return SizedSymbol(name, "code", 10 + address, flash=True, ram=False, module=module, address=address)

    operators = (
        NetworkOperator("a", "CONV_2D", "f"), NetworkOperator("b", "ADD", "g"), NetworkOperator("c", "ADD", "g"),
    )  # fmt: skip
    pieces = [
        code("kernel", 3), code("run", 0), code("f", 1), code("g", 2), code("deeper", 4), code("only g", 5),
        code("other", 6, "two"), code("nobody", 7),
    ]  # fmt: skip
    calls = {0: [1, 2], 1: [3, 1, 6], 2: [3, 5, 99], 3: [4], 4: [3]}
    found = network_sizes("one", "aot", Network(0, (), operators), Owner("model", tuple(pieces)), calls)
    assert [[piece.name for piece in part.pieces] for part in found.parts] == [
        ["f", "kernel", "deeper"], ["g", "only g"], [],
    ]  # fmt: skip
    assert [piece.name for piece in found.rest.pieces] == ["run", "nobody"]


def sizes(network: Network, *pieces: SizedSymbol, model: str = "one") -> str:
    return operators_text(model, network_sizes("one", "aot", network, Owner(model, pieces), {}))


def test_text_for_a_terminal(golden: Callable[[str, str], None]) -> None:
    tensors = (
        NetworkTensor("image", "int8", (1, 8), 8, "input", 0, 0, 0),
        NetworkTensor("functional/block/relu;functional/block/bias", "int8", (1, 12345), 12345, "arena", 0, 0, 1),
        NetworkTensor("left", "int8", (1, 300), 300, "arena", 12352, 1, 2),
        NetworkTensor("y", "int8", (1, 4), 4, "output", 0, 2, 2),
    )
    operators = (
        NetworkOperator("functional/block/relu;functional/block/bias", "CONV_2D + DEPTHWISE_CONV_2D + ADD", "f",
                        ("c",), 123_456_789, (0,), (1,), NetworkScratch(12_352, 1000)),
        NetworkOperator("lstm\x1b[31m", "UNIDIRECTIONAL_SEQUENCE_LSTM", "g", (), 40, (1,), (2,)),
        NetworkOperator("tvmgen_one_fused_nn_dense_add_clip_cast", "fused_nn_dense_add_clip_cast_subtract_2",
                        "tvmgen_one_fused_nn_dense_add_clip_cast_subtract_2", (), None, (2,), (3,)),
    )  # fmt: skip
    pieces = [
        SizedSymbol("f", "code", 12_000, flash=True, ram=False, module="one"),
        SizedSymbol("c", "weights", 9_876_543, flash=True, ram=False, module="one"),
        SizedSymbol("run", "code", 120, flash=True, ram=False, module="one"),
        SizedSymbol("mlf_one_model_id", "tables", 79, flash=True, ram=False, module="one"),
    ]
    text = sizes(Network(13_352, tensors, operators), *pieces)
    assert max(len(line) for line in text.splitlines()) == 80
    golden(f"{text}\n", "operators.txt")


def test_text_of_a_module_without_arena() -> None:
    network = Network(0, (), (NetworkOperator("a", "RESHAPE", ""),))
    text = sizes(network, model="two")
    assert text.startswith("model two (module one), 1 operator\n")
    assert "arena" not in text


def test_the_page_draws_networks_of_every_origin(facts: Json) -> None:
    text = page(facts, facts)
    for model in facts["images"][0]["models"]:
        for network in model.get("networks", ()):
            assert f"module {network['module']} <small>" in text or len(model["networks"]) == 1
    networks = [network for model in facts["images"][0]["models"] for network in model.get("networks", ())]
    operators = [operator for network in networks for operator in network["operators"]]
    # A row of the table of operators, and one for each kernel that the compiler considered.
    rows = sum(1 + len(operator.get("kernels", ())) for operator in operators)
    assert text.count("<tr data-operator=") == rows > 2 * len(operators)
    assert text.count("<tr data-tensor=") == sum(len(network["tensors"]) for network in networks)
