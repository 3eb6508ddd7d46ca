"""The option ``io: arena``: inputs and outputs are in the workspace, which firmware passes as a memory pool of TVM."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive import pack_archive, read_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UsageError
from mlfbuild.executor import executable
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate, evaluate_in_turn
from mlfbuild.targets import CPUS, board_called, cpu_called, toolchain_file
from mlfbuild.usecases.validate import validate_archive
from mlfbuild.verify.host.model import load_library
from mlfbuild.verify.module import VerifyReport, verify_module
from support.errors import raises
from support.host_c import WARNINGS, build, run, run_on_host, write_tree
from support.native import compile_network, generated
from support.sketch import Sketch, face_detector, values_of

M4 = board_called("mps2-an386")
ARENA = {"io": "arena"}


def odd_ports() -> Graph:
    """An output that is an input, one that is a constant, one that is there twice, and an input that is not read."""
    s = Sketch("net")
    s.tensor("x", 2, 16), s.tensor("y", 5), s.tensor("unread", 3), s.tensor("fixed", 4, constant=True)
    s.node(ops.Reshape(), "x", s.tensor("flat", 32))
    s.node(ops.Add(), "y", "y", s.tensor("sum", 5))
    s.node(ops.Add(), "sum", "y", s.tensor("more", 5))
    return s.graph(["x", "y", "unread"], ["flat", "y", "fixed", "more", "more"])


def counter() -> Graph:
    """A network with a state, which is also its output."""
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "y")]
    nodes = [Node("add", ops.Add(), ("x", "kept"), ("y",))]
    return Graph("net", tensors, nodes, ["x"], ["y"], [State("kept", "y", np.ones((1, 4), np.float32))])


FACES = face_detector()


@pytest.mark.parametrize("graph", [FACES, odd_ports()], ids=["faces", "ports"])
@pytest.mark.parametrize("memory", ["fastest", "balanced", "smallest"])
def test_numbers_equal_those_of_the_graph(graph: Graph, memory: str) -> None:
    inputs = values_of(graph)
    expected = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))
    got = run_on_host(compile_network(graph, options={**ARENA, "memory": memory}), inputs)
    for value, name in zip(got, graph.outputs, strict=True):
        np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize("memory", ["fastest", "balanced", "smallest"])
def test_arena_takes_less_than_workspace_and_buffers_of_the_caller(memory: str) -> None:
    caller, arena = (
        compile_network(FACES, options={"io": io, "memory": memory}).modules[0].main[0] for io in ("caller", "arena")
    )
    assert arena.io_size == caller.io_size == 32 * 32 * 3 + 128 + 8 * 8 * 16
    assert arena.workspace_size < caller.workspace_size + caller.io_size - 2048


OVERWRITES = r"""
#include <stdlib.h>
#include <string.h>
#include "tvmgen_net.h"

int main(void) {
  static unsigned char image[TVMGEN_NET_IMAGE_SIZE];
  struct tvmgen_net_workspace_pools pools = mlf_net_static_pools();
  struct tvmgen_net_workspace_pools none = {0};
  struct tvmgen_net_inputs inputs = tvmgen_net_map_inputs(&pools);
  for (unsigned i = 0; i < sizeof image; i++) image[i] = (unsigned char)(i * 7);
  memcpy(inputs.image, image, sizeof image);
  if (tvmgen_net_run(&pools) != 0) return 2;
  if (tvmgen_net_run(NULL) != -1 || tvmgen_net_run(&none) != -1) return 3;
  return memcmp(inputs.image, image, sizeof image) == 0;
}
"""


def test_run_overwrites_an_input_in_the_arena(tmp_path: Path) -> None:
    """With ``io: caller``, the harness of every test checks that inputs do not change."""
    run([build(write_tree(compile_network(FACES, options=ARENA), tmp_path), OVERWRITES, ["-O1"])])


OF_TVM = r"""
#include "tvmgen_net.h"

static unsigned char sram[TVMGEN_NET_SRAM_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));

int main(void) {
  struct tvmgen_net_workspace_pools workspaces = {.sram = sram};
  struct tvmgen_net_inputs inputs = tvmgen_net_map_inputs(&workspaces);
  struct tvmgen_net_outputs outputs = tvmgen_net_map_outputs(&workspaces);
  ((signed char *)inputs.image)[0] = 1;
  return tvmgen_net_run(&workspaces) != 0 || outputs.scores == outputs.boxes;
}
"""


@pytest.mark.parametrize("layout", ["standard", "single-file"])
def test_firmware_for_workspace_io_of_tvm(tmp_path: Path, layout: str) -> None:
    """It has its own pool, so the static workspace is not in the image."""
    folder = write_tree(compile_network(FACES, options={**ARENA, "layout": layout}), tmp_path)
    (folder / "main.c").write_text(OF_TVM)
    sources = ["main.c", "host/src/net_lib0.c"]
    run(["gcc", *WARNINGS, "-O2", "-I", "host/include", *sources, "-Wl,--gc-sections", "-o", "program"], folder)
    run([folder / "program"])
    symbols = run(["nm", folder / "program"])
    assert "tvmgen_net_run" in symbols and "tvmgen_net_workspace" not in symbols


def test_static_workspace_is_placed() -> None:
    wanted = replace(request_of(ARENA), placement=Placement(workspace=".bss.fast"))
    text = generated(compile_graph(FACES, wanted, "0" * 64))
    assert '#define TVMGEN_NET_WORKSPACE __attribute__((section(".bss.fast")))' in text


def request_of(options: dict[str, Any], **more: Any) -> CompileRequest:
    return CompileRequest("net", Path("net.tflite"), CPUS["cortex-m4"], options=options, **more)


# Archives ------------------------------------------------------------------------------------------------------------


def test_archive_describes_pools_and_ports(tmp_path: Path) -> None:
    library = compile_network(FACES, options=ARENA)
    module = library.modules[0]
    assert module.workspace_io
    assert [(pool.name, pool.size, pool.external) for pool in module.pools] == [
        ("sram", module.main[0].workspace_size, True)
    ]
    path = tmp_path / "net.tar"
    path.write_bytes(pack_archive(library))
    assert read_archive(path.read_bytes(), "net.tar").modules == library.modules
    assert not validate_archive(path).findings
    assert module.network is not None
    assert {tensor.memory for tensor in module.network.tensors} == {"arena"}


def test_magnitude_of_an_output_in_the_arena_is_known() -> None:
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "y")]
    graph = Graph("net", tensors, [Node("s", ops.Softmax(), ("x",), ("y",))], ["x"], ["y"])
    for io in ("caller", "arena"):
        assert compile_network(graph, options={"io": io}).modules[0].bound(0) == 1


@pytest.mark.parametrize("graph", [FACES, counter()], ids=["faces", "counter"])
def test_trace_and_hook(graph: Graph) -> None:
    inputs = dict(zip(graph.inputs, values_of(graph), strict=True))
    models = [
        load_library(compile_network(graph, options={"io": io, "trace": True, "hook": True}), "net")
        for io in ("caller", "arena")
    ]
    for _ in range(2):
        for ours, theirs in zip(*(model.run_traced(inputs) for model in models), strict=True):
            assert {name: value.tobytes() for name, value in ours.items()} == {
                name: value.tobytes() for name, value in theirs.items()
            }


# Verification --------------------------------------------------------------------------------------------------------


def verified(folder: Path, graph: Graph, board: Any) -> VerifyReport:
    runs = [dict(zip(graph.inputs, values_of(graph, seed), strict=True)) for seed in range(3)]
    expected = list(evaluate_in_turn(graph, runs))
    arrays = {f"in{at}": np.stack([each[name] for each in runs]) for at, name in enumerate(graph.inputs)}
    arrays |= {f"out{at}": np.stack([each[name] for each in expected]) for at, name in enumerate(graph.outputs)}
    np.savez(folder / "net.npz", **arrays)
    library = compile_network(graph, options={**ARENA, "hook": True})
    unpack(library, folder / "tree", archive_id="")
    toolchain = toolchain_file(cpu_called(board.cpu)) if board else None
    module = library.modules[0]
    return verify_module(folder / "tree", module, board, folder / "net.npz", folder / "work", toolchain=toolchain)


@pytest.mark.parametrize("board", [None, M4], ids=["host", "m4"])
@pytest.mark.parametrize("graph", [FACES, counter()], ids=["faces", "counter"])
def test_verified_on_host_and_board(tmp_path: Path, tool: Callable[..., str], graph: Graph, board: Any) -> None:
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    report = verified(tmp_path, graph, board)
    assert report.passed, report.text()
    size = compile_network(graph, options=ARENA).modules[0].main[0].workspace_size
    assert report.cases == 3 and report.workspace_size == size >= report.workspace_used > 0


# Refused -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "more", "code", "place"),
    [
        ({"io": "static"}, {}, "invalid-option", "net: options.io"),
        (ARENA, {"executor": "graph"}, "io-of-graph", "net: options.io"),
        ({**ARENA, "interface-api": "packed"}, {}, "packed-without-c-interface", "net: options.io"),
        (ARENA, {"placement": Placement(shares_workspace=1)}, "workspace-cannot-be-shared", "net: share-workspace"),
    ],
)
def test_combinations_that_are_refused(options: dict[str, Any], more: dict[str, Any], code: str, place: str) -> None:
    with raises(UsageError, code, place):
        compiler_called("native").outline(request_of(options, **more))


def test_default_is_allowed_everywhere() -> None:
    compiler_called("native").outline(request_of({"io": "caller", "interface-api": "packed"}))
    compiler_called("native").outline(request_of({"io": "caller"}, executor="graph"))
    assert compile_network(FACES, options={"io": "caller"}) == compile_network(FACES)


def test_archive_cannot_share_its_workspace() -> None:
    (module,) = compile_network(FACES, options=ARENA).modules
    with raises(UsageError, "workspace-cannot-be-shared", "net: share-workspace"):
        executable(module, Placement(shares_workspace=1))
