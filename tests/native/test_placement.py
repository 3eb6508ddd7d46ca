"""The compiler puts constants and static memory in sections by class; a placed state is not zeroed by start-up code."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.core.files import sha256
from mlfbuild.library import Library
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, evaluate, ops
from mlfbuild.native.lowering import dispatch as native_ops
from mlfbuild.native.lowering.call import Constant
from mlfbuild.native.passes import fusion
from mlfbuild.native.printing.constant_sections import BIASES, TABLES, WEIGHTS, class_of
from mlfbuild.report.sizes.image import read_image
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator.board_image import board_image
from mlfbuild.verify.emulator.run import run_on_board
from support.chain_networks import chain_case
from support.host_c import build, run, run_cases_on_host, write_tree
from support.native import generated, request
from support.tflite_builder import Network

CPU = "cortex-m3"
"""A core whose kernels read biases and weights as one array, unless a weight is -128."""
BY_CLASS = Placement(weights=".w", biases=".b", tables=".t", workspace=".bss.ws")


def small_network() -> bytes:
    """Return a network with constants of every class: filters, channels and rescalings, and a table."""
    random = np.random.default_rng(3)
    network = Network()
    x = network.input((1, 6, 6, 3), scale=0.05, zero_point=4)
    filters = random.integers(-127, 128, (5, 3, 3, 3), dtype=np.int8)
    filters[0, 0, 0, 0] = -128
    y = network.conv2d(x, filters, weight_scales=[0.02], scale=0.5, zero_point=4, padding="SAME")
    matrix = random.integers(-127, 128, (6, 180), dtype=np.int8)
    matrix[0, 0] = -128
    y = network.fully_connected(network.reshape(y, (1, 180)), matrix, weight_scales=[0.02], scale=0.3, zero_point=4)
    y = network.softmax(network.unary("TANH", y, scale=1 / 128, zero_point=0))
    y = network.quantize(y, 0.01)
    return network.build([y])


def placed(placement: Placement, graph: Graph | None = None) -> Library:
    graph = graph or parse_tflite(small_network(), "net", "net")
    return compile_graph(graph, request("net", placement, cpu=CPU), sha256(b"net"))


def sections_of_symbols(library: Library, folder: Path, compiler: list[str | Path]) -> dict[str, str]:
    """Return the section of every variable of the file in the object of the only source, including small ones."""
    write_tree(library, folder)
    command = [*compiler, "-O0", "-Wall", "-Wextra", "-Werror", "-std=gnu99", "-I", folder / "host/include"]
    run([*command, "-c", folder / "host/src/net_lib0.c", "-o", folder / "net.o"])
    with (folder / "net.o").open("rb") as file:
        elf = ELFFile(file)
        objects = [s for s in elf.get_section_by_name(".symtab").iter_symbols() if s["st_info"]["type"] == "STT_OBJECT"]
        outside = [symbol for symbol in objects if "." not in symbol.name]  # those in functions are not data at -O1
        return {symbol.name: elf.get_section(symbol["st_shndx"]).name for symbol in outside}


@pytest.fixture(params=["gcc for the device", "clang for this machine"])
def compiler(
    request: pytest.FixtureRequest, tool: Callable[[str], str], newest_clang: dict[str, str]
) -> list[str | Path]:
    if request.param == "clang for this machine":
        return [newest_clang["MLFBUILD_CLANG"]]
    return [tool("arm-none-eabi-gcc"), *CPUS[CPU].flags]


def test_each_class_is_in_its_section(tmp_path: Path, compiler: list[str | Path]) -> None:
    found = sections_of_symbols(placed(BY_CLASS), tmp_path, compiler)
    words = {name.rpartition("_")[2]: section for name, section in found.items()}
    assert words["filter"] == ".w"
    assert words["channels"] == words["quantization"] == ".b"
    assert words["table"] == ".t"
    assert found["mlf_net_model_id"] == ".rodata.tvm", "it has no class"
    assert found["tvmgen_net_workspace"] == ".bss.ws"
    assert set(found.values()) == {".w", ".b", ".t", ".bss.ws", ".rodata.tvm"}


@pytest.mark.parametrize(("cpu", "filters"), [("cortex-m4", {"packed0", "packed2"}), ("cortex-m3", {"packed0"})])
def test_constants_of_a_chain_are_in_the_sections_of_their_classes(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, cpu: str, filters: set[str]
) -> None:
    monkeypatch.setitem(fusion.MOST_EXTRA, "smallest", 1e9)  # whatever the chain costs
    graph = parse_tflite(chain_case(3).model, "net", "net")
    library = compile_graph(graph, request("net", BY_CLASS, cpu=cpu, memory="smallest"), sha256(b"net"))
    found = sections_of_symbols(library, tmp_path, [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags])
    words = {name.rpartition("_")[2]: section for name, section in found.items()}
    assert filters <= words.keys()
    roles = {".w": WEIGHTS, ".b": {*BIASES, "quantization"}, ".t": TABLES}
    wrong = {word: at for word, at in words.items() if word.rstrip("0123456789") not in roles.get(at, {word})}
    assert wrong == {}


def test_functions_are_in_the_section_of_code(tmp_path: Path, compiler: list[str | Path]) -> None:
    sections_of_symbols(placed(Placement(code=".ramfunc")), tmp_path, compiler)
    with (tmp_path / "net.o").open("rb") as file:
        elf = ELFFile(file)
        functions = [s for s in elf.get_section_by_name(".symtab").iter_symbols() if s["st_info"]["type"] == "STT_FUNC"]
        found = {symbol.name: elf.get_section(symbol["st_shndx"]).name for symbol in functions}
    entries = {name for name, section in found.items() if section != ".ramfunc"}
    assert {name for name in found if "conv2d" in name} and all("_run" in name for name in entries), found


def test_functions_run_from_ram(tool: Callable[[str], str]) -> None:
    tool("qemu-system-arm")
    graph, board = parse_tflite(small_network(), "net", "net"), BOARDS["mps2-an386"]
    (module,) = compile_graph(graph, request("net", Placement(code=".ramfunc"), cpu="cortex-m4"), sha256(b"n")).modules
    (name,) = graph.inputs
    values = np.random.default_rng(7).integers(-128, 128, (2, *graph.tensor(name).shape), dtype=np.int8)
    (found,) = run_on_board(module, board, [values.reshape(2, -1)], "net.tar", 30)
    for row, value in zip(found, values, strict=True):
        assert np.array_equal(row, evaluate(graph, {name: value})[graph.outputs[0]])
    symbols = read_image(board_image(module, board, "net.tar")).symbols
    operators = [symbol.address for symbol in symbols if symbol.function and symbol.name.startswith("tvmgen_net_conv")]
    assert operators and min(operators) >= board.ram.origin


def test_equal_constants_of_two_classes_are_in_two_sections(tmp_path: Path, tool: Callable[[str], str]) -> None:
    numbers = np.array([3, -1, 4, 1, -5], np.float32)
    network = Network()
    y = network.fully_connected(network.input((1, 4)), np.ones((5, 4), np.float32), bias=numbers)
    y = network.binary("MUL", network.unary("TANH", y), network.constant(numbers.reshape(1, 5)))
    graph = parse_tflite(network.build([y]), "net", "net")
    found = sections_of_symbols(placed(BY_CLASS, graph), tmp_path, [tool("arm-none-eabi-gcc"), *CPUS[CPU].flags])
    assert sorted(found.values()) == [".b", ".bss.ws", ".rodata.tvm", ".w", ".w"]


def test_class_without_a_section_is_in_the_default_section(tmp_path: Path, tool: Callable[[str], str]) -> None:
    command = [tool("arm-none-eabi-gcc"), *CPUS[CPU].flags]
    library = placed(Placement(params=".all", tables=".t"))
    found = sections_of_symbols(library, tmp_path, command)
    tables = {name for name, section in found.items() if section == ".t"}
    assert tables
    assert {name.rpartition("_")[2] for name in tables} <= TABLES
    assert set(found.values()) == {".all", ".t", ".bss.noinit.tvm"}


def test_sections_change_nothing_else() -> None:
    plain, by_class = generated(placed(Placement())), generated(placed(BY_CLASS))
    different = [line for line in by_class.splitlines() if line not in set(plain.splitlines())]
    assert different
    macros = ("TVMGEN_NET_WEIGHTS ", "TVMGEN_NET_BIASES ", "TVMGEN_NET_TABLES ")
    assert all(line.startswith(("#define TVMGEN_NET_", *macros)) for line in different)


_MAKERS = {"Constant.array", "Constant.records", "array"}


def words_of_constants() -> Iterator[tuple[Path, str]]:
    """Return the word of every array in the code of operators that is written as a literal."""
    for path in sorted(Path(native_ops.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            named = isinstance(call, ast.Call) and ast.unparse(call.func) in _MAKERS
            if named and isinstance(call.args[0], ast.Constant):
                yield path, call.args[0].value


def test_every_array_has_an_explicit_class() -> None:
    known = WEIGHTS | BIASES | TABLES
    found = list(words_of_constants())
    assert len(found) > 30
    assert [(path.name, word) for path, word in found if word not in known | {"rescales"}] == []


def test_structs_are_rescalings_unless_they_are_elements_of_a_table() -> None:
    assert class_of(Constant("quantization", "struct mlf_rescale", "{}", 12)) == "biases"
    assert class_of(Constant("rows", "struct mlf_line_int8", "{}", 12, 1)) == "tables"
    assert class_of(Constant("filter", "int8_t", "{}", 12, 12)) == "weights"
    assert class_of(Constant("recurrent_packed", "uint32_t", "{}", 12, 12)) == "weights"


def counter() -> Graph:
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "y")]
    add = Node("add", ops.Add(), ("x", "kept"), ("y",))
    return Graph("net", tensors, [add], ["x"], ["y"], [State("kept", "y", np.zeros((1, 4), np.float32))])


_DIRTY = r"""
#include <stdio.h>
#include <string.h>
#include "tvmgen_net.h"
extern uint8_t __start_kept[], __stop_kept[];
int main(void) {
  static float x[4] = {1, 2, 3, 4}, y[4];
  struct tvmgen_net_inputs inputs = {x};
  struct tvmgen_net_outputs outputs = {y};
  memset(__start_kept, 0x7f, (size_t)(__stop_kept - __start_kept));
  for (int i = 0; i < 2; i++) {
    tvmgen_net_run(&inputs, &outputs);
    printf("%g ", (double)y[3]);
  }
  tvmgen_net_reset();
  tvmgen_net_run(&inputs, &outputs);
  printf("%g %d\n", (double)y[3], (int)(__stop_kept - __start_kept));
  return 0;
}
"""


def test_placed_state_is_initialised_by_the_first_run(tmp_path: Path) -> None:
    library = placed(Placement(state="kept"), counter())
    program = build(write_tree(library, tmp_path), _DIRTY, ["-O1"])
    assert run([program]) == "4 8 4 16\n"


def test_results_do_not_depend_on_sections() -> None:
    values = np.random.default_rng(1).normal(size=(3, 1, 4)).astype(np.float32)
    plain, elsewhere = (
        run_cases_on_host(placed(placement, counter()), [[value] for value in values])
        for placement in (Placement(), Placement(params="constants", state="kept"))
    )
    for one, other in zip(plain, elsewhere, strict=True):
        np.testing.assert_array_equal(one, other)
