"""`mlfbuild run --board`: a network of an archive as firmware, with data through semihosting."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import pack_archive, tar
from mlfbuild.library import Library
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from mlfbuild.targets import BOARDS
from support.aot_archives import MEMORIES, OWN, WORKSPACE_IO, A, B, Y, aot_archive, aot_files
from support.command import Ended, Folder
from support.errors import assert_printed
from support.examples import first_on_push
from support.libraries import graph_library
from support.native import compile_network

M4 = "mps2-an386"


@pytest.fixture
def project(
    folder: Folder, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Folder:
    """Return a folder with ``net.tar`` and its inputs ``x.npz``; images are cached for all tests."""
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    folder.write("net.tar", aot_archive())
    np.savez(folder.root / "x.npz", in_a=A, in1=B, out0=Y)
    return folder


def run(project: Folder, *arguments: str, archive: str = "net.tar", board: str = M4) -> Ended:
    words = [archive, "--inputs", "x.npz", "-o", "y.npz", "--board", board, *arguments]
    return project.run("run", *words)


def refusal(project: Folder, *arguments: str) -> tuple[int, str, str]:
    return project.refused("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz", "--board", M4, *arguments)


@pytest.mark.parametrize("memory", MEMORIES)
def test_board_and_host_compute_the_same(project: Folder, memory: str) -> None:
    project.write("net.tar", aot_archive(memory))
    ended = run(project)
    done, unknown = ended.out.splitlines()
    assert (ended.status, done, ended.err) == (0, f"y.npz: 3 cases of net on {M4}", "")
    assert unknown.startswith("output: the shape is unknown")
    assert project.run("run", "net.tar", "--inputs", "x.npz", "-o", "here.npz").status == 0
    assert (project.root / "y.npz").read_bytes() == (project.root / "here.npz").read_bytes()
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["output"], Y.reshape(3, 4))


@pytest.mark.parametrize("board", first_on_push(name for name in BOARDS if name != M4))
def test_every_board(project: Folder, board: str) -> None:
    ended = run(project, "--format", "json", board=board)
    expected = {"model": "net", "board": board, "cases": 3, "outputs": ["output"], "shapes": [None], "notes": []}
    expected["file"] = "y.npz"
    assert ended.json == expected
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["output"], Y.reshape(3, 4))


def test_state_is_kept_between_cases(project: Folder) -> None:
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "y")]
    kept = [State("kept", "y", np.zeros((1, 4), np.float32))]
    graph = Graph("sum", tensors, [Node("sum", ops.Add(), ("x", "kept"), ("y",))], ["x"], ["y"], kept)
    project.write("sum.tar", pack_archive(compile_network(graph)))
    np.savez(project.root / "x.npz", x=A)
    assert run(project, archive="sum.tar").status == 0
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["y"], np.cumsum(A, axis=0))


def test_the_second_run_builds_nothing(project: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert run(project).status == 0
    (image,) = (tmp_path / "own/mlfbuild/board").iterdir()
    before = image.stat().st_mtime_ns
    assert run(project).status == 0
    assert [file.stat().st_mtime_ns for file in image.parent.iterdir()] == [before]
    project.write("net.tar", aot_archive(OWN, "sum[0]++;"))
    assert run(project).status == 0
    assert len(list(image.parent.iterdir())) == 2, "other code is another image"
    assert float(np.load(project.root / "y.npz")["output"][0, 0]) == float(Y[0, 0, 0] + B[0, 0, 0])


FAILS_TO_TAKE = """for (int i = 0; b[3] == 4.0f && i < 2; i++) {
    if (TVMBackendAllocWorkspace(1, 0, (uint64_t)16, 2, 32) == NULL) return -1;
  }"""


@pytest.mark.parametrize(
    ("memory", "statement", "place", "fact"),
    first_on_push(
        [
            (OWN, "if (b[3] == 3.0f) return 5;", "net: case 1", " -1,"),
            (OWN, FAILS_TO_TAKE, "net: case 2", " -1,"),
            (OWN, "while (b[3] == 3.0f) {}", "net: case 1", " 2 s,"),
            (OWN, "output[4] = 1;", "net: case 0", "output 0"),
            (WORKSPACE_IO, "sram[-3] = 1;", "net: case 0", "the pool sram of 80 bytes"),
            (OWN, "extern void exit(int); exit(0);", "net: case 0", "ended before"),
            (OWN, "extern void exit(int); exit(9);", "net: case 0", "exit status 9"),
        ],
        2,
    ),
)
def test_fault_is_one_line_without_output_file(
    project: Folder, memory: str, statement: str, place: str, fact: str
) -> None:
    project.write("net.tar", aot_archive(memory, statement))
    ended = run(project, "--timeout", "2", "--format", "json")
    assert (ended.status, ended.out, ended.err.count("\n")) == (7, "", 1)
    assert (ended.error["code"], ended.error["place"]) == ("run-failed", place) and fact in ended.error["reason"]
    assert not (project.root / "y.npz").exists()


@pytest.mark.parametrize("statement", ["if (b[3] == 3.0f) return 5;", FAILS_TO_TAKE], ids=["kernel", "workspace"])
def test_error_code_of_the_network_is_reported_on_the_host(project: Folder, statement: str) -> None:
    project.write("net.tar", aot_archive(OWN, statement))
    case = 1 if "5" in statement else 2
    arguments = ("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz")
    assert project.refused(*arguments) == (7, "run-failed", f"net: case {case}")


def test_the_error_code_of_a_kernel_is_reported(project: Folder) -> None:
    (module,) = graph_library().modules
    kernels = [replace(file, content=file.data.replace(b"return 0", b"return 5")) for file in module.codegen]
    library = Library((replace(module, codegen=tuple(kernels)),))
    project.write("graph.tar", pack_archive(library))
    np.savez(project.root / "x.npz", x=np.zeros((2, 1, 2), np.float32))
    ended = run(project, archive="graph.tar")
    assert ended.status == 7
    assert_printed(ended.err, "run-failed", "mlfbuild: net: case 0", " 5,")


FAULT = '__asm__ volatile(".inst.n 0xde00");'


@pytest.mark.parametrize(
    ("statement", "code", "place", "facts"),
    [
        (FAULT, "run-failed", "net: case 0", ["mlf_board: stopped by HardFault pc 0x"]),
        ("nonsense;", "module-not-built", "net", [M4, "net_lib1.c:", "'nonsense' undeclared"]),
    ],
    ids=["registers of a fault", "compile error"],
)
def test_what_went_wrong_is_shown(project: Folder, statement: str, code: str, place: str, facts: list[str]) -> None:
    project.write("net.tar", aot_archive(OWN, statement))
    ended = run(project)
    assert ended.status == 7
    assert_printed(ended.err, code, f"mlfbuild: {place}", *facts)


@pytest.mark.parametrize("board", [["--board", M4], []], ids=["board", "here"])
@pytest.mark.parametrize(
    ("header", "code", "place"),
    [("arm_nnfunctions.h", "library-not-bundled", "net.tar: module 'net'"), ("npu.h", "header-not-in-archive", "net")],
)
def test_headers_of_another_library(project: Folder, board: list[str], header: str, code: str, place: str) -> None:
    files = aot_files()
    kernels = "codegen/host/src/net_lib1.c"
    files[kernels] = f"#include <{header}>\n".encode() + files[kernels]
    project.write("net.tar", b"".join(tar.pack(files, 0)))
    arguments = ("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz", *board)
    assert project.refused(*arguments) == (4, code, place)


def test_too_large_memory_is_refused(project: Folder) -> None:
    project.write("net.tar", aot_archive(OWN, "static volatile char more[4200000]; more[0] = 1;"))
    assert refusal(project) == (4, "board-too-small", "net")


@pytest.mark.parametrize(
    ("variable", "program"),
    [("MLFBUILD_QEMU_SYSTEM_ARM", "qemu-system-arm"), ("MLFBUILD_ARM_NONE_EABI_GCC", "gcc-arm-none-eabi")],
)
def test_missing_tools(project: Folder, monkeypatch: pytest.MonkeyPatch, variable: str, program: str) -> None:
    monkeypatch.setenv(variable, "/nowhere/tool")
    ended = run(project)
    assert ended.status == 3
    assert_printed(ended.err, "program-not-found", "mlfbuild: /nowhere/tool", f"apt-get install {program}")


def test_full_disk_is_reported(project: Folder, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    limited = project.root / "qemu"
    limited.write_text(f"#!/bin/sh\ntrap '' XFSZ\nulimit -f 0\nexec {tool('qemu-system-arm')} \"$@\"\n")
    limited.chmod(0o755)
    monkeypatch.setenv("MLFBUILD_QEMU_SYSTEM_ARM", str(limited))
    assert refusal(project)[:2] == (8, "results-not-written")
    assert not (project.root / "y.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["--board", "mps2-an38"], (2, "unknown-board", "mps2-an38")),
        (["--board", M4, "--model", "kws"], (2, "unknown-module", "net.tar")),
        (["--board", M4, "--inputs", "net.tar"], (5, "not-a-vectors-file", "net.tar")),
    ],
)
def test_mistakes(project: Folder, arguments: list[str], refused: tuple[int, str, str]) -> None:
    assert project.refused("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz", *arguments) == refused
    assert not (project.root / "y.npz").exists()


def test_objects_for_another_cpu_are_refused(project: Folder, shared: Path) -> None:
    archive = shared / "archives/conv-llvm_graph_m4.tar"
    np.savez(project.root / "x.npz", in0=np.zeros((1, 1, 3, 32, 32), np.float32))
    ended = run(project, archive=str(archive), board="mps2-an385")
    assert ended.status == 2
    assert "conv_lib0.o: holds code for Armv7E-M, which cortex-m3 does not run" in ended.err
