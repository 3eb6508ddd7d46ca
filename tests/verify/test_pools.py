"""Modules whose caller provides memory: workspaces, constants, and pools with inputs and outputs."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.archive import read_archive
from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree import TreeSettings, unpack
from mlfbuild.jobs.tree.verification import module_header
from mlfbuild.library.keys import Placement
from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from mlfbuild.targets import RUNTIME, Board, board_called, cpu_called, toolchain_file
from mlfbuild.verify.image import read_subject
from mlfbuild.verify.module import VerifyReport, verify_image, verify_module
from support import aot_archives
from support.aot_archives import MEMORIES, POOLS, WORKSPACE_IO, A, B, Y, aot_archive
from support.errors import raises
from support.examples import first_on_push
from support.host_c import WARNINGS, run, write_tree
from support.native import compile_network

M4 = board_called("mps2-an386")
UNPLACED = Placement()
ARENA = {POOLS: (32, 32), WORKSPACE_IO: (80, 80)}
"""Bytes that are brought, and up to the last one that is written."""


@pytest.fixture(scope="module", autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    np.savez(tmp_path / "net.npz", in0=A, in1=B, out0=Y)
    return tmp_path / "net.npz"


def verify(
    folder: Path,
    vectors: Path,
    memory: str,
    board: Board | None,
    statement: str = "",
    placement: Placement = UNPLACED,
) -> VerifyReport:
    library = read_archive(aot_archive(memory, statement), "net.tar")
    unpack(library, folder / "tree", archive_id="", settings=TreeSettings(placement=placement))
    toolchain = toolchain_file(cpu_called(board.cpu)) if board else None
    return verify_module(folder / "tree", library.modules[0], board, vectors, folder / "work", toolchain=toolchain)


@pytest.mark.parametrize("board", [None, M4], ids=["host", "m4"])
@pytest.mark.parametrize("memory", [POOLS, WORKSPACE_IO])
def test_pools_are_provided_and_measured(tmp_path: Path, vectors: Path, memory: str, board: Board | None) -> None:
    report = verify(tmp_path, vectors, memory, board)
    assert report.passed, report.text()
    assert (report.cases, report.workspace_size, report.workspace_used) == (3, *ARENA[memory])


@pytest.mark.parametrize("board", [None, M4], ids=["host", "m4"])
def test_first_run_uses_the_pools_of_the_module_if_they_are_placed(
    tmp_path: Path, vectors: Path, board: Board | None
) -> None:
    placement = Placement(workspace=".bss.far")
    report = verify(tmp_path, vectors, POOLS, board, placement=placement)
    assert report.passed, report.text()
    (image,) = (tmp_path / "work").rglob("verify.elf")
    with image.open("rb") as file:
        symbols = {each.name: each["st_size"] for each in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
    assert (symbols["tvmgen_net_workspace"], symbols["tvmgen_net_flash"]) == (32, 32)
    # A fault of this run alone is found: the other one gets pools with a guard behind them.
    again = "static int runs; if (runs++ % 2 == 0) sum[2] = 0;"
    report = verify(tmp_path / "again", vectors, POOLS, board, again, placement)
    assert report.text().startswith("net: case 0, output 0 (output), element 2"), report.text()


@pytest.mark.parametrize(
    ("statement", "problem"),
    first_on_push(
        [
            ("sram[96] = 1;", "net: case 0: wrote outside the pool sram of 80 bytes"),
            ("if (b[3] == 4.0f) return 3;", "net: case 2: the run function returned -1, not 0"),
            (
                "static int runs; if (runs++ % 2) sum[2] = 0;",
                "net: case 0, output 0 (output), element 2: the second run",
            ),
        ]
    ),
)
def test_faults_in_pools_are_found(tmp_path: Path, vectors: Path, statement: str, problem: str) -> None:
    report = verify(tmp_path, vectors, WORKSPACE_IO, M4, statement)
    assert report.text().startswith(problem), report.text()


def test_pools_larger_than_the_memory_of_a_board_are_verified_elsewhere(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(aot_archives._POOL_SIZES, POOLS, M4.ram.size)
    with raises(UnsupportedModelError, "board-too-small", place="net") as caught:
        verify(tmp_path / "board", vectors, POOLS, M4, placement=Placement(workspace=".bss.far"))
    assert "pools" in caught.value.reason and "cpu: host" in caught.value.hint
    assert verify(tmp_path / "host", vectors, POOLS, None).passed, "what the hint advises"


def test_kernels_that_allocate_memory_in_addition_to_pools(tmp_path: Path, vectors: Path) -> None:
    more = "void* more = TVMBackendAllocWorkspace(1, 0, (uint64_t)16, 2, 32);"
    statement = f"{more} if (more == NULL) return -1; TVMBackendFreeWorkspace(1, 0, more);"
    report = verify(tmp_path, vectors, WORKSPACE_IO, M4, statement)
    assert report.passed, report.text()


def test_constants_of_a_pool_stay_in_flash() -> None:
    library = read_archive(aot_archive(POOLS), "net.tar")
    text = module_header(library.modules[0], "mps2-an386")
    assert "static const uint8_t constants_flash[TVMGEN_NET_FLASH_CONSTANT_POOL_SIZE] __attribute__((section(" in text
    assert "{.flash = (void *)(uintptr_t)constants_flash, .sram = (workspaces)[0].bytes}" in text


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("compiler", [["gcc"], ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-DMEASURE_STACK=1"]])
@pytest.mark.parametrize("twice", [True, False])
def test_test_firmware_compiles_without_a_warning(
    tmp_path: Path, compiler: list[str], memory: str, twice: bool
) -> None:
    library = read_archive(aot_archive(memory), "net.tar")
    (tmp_path / "verify_module.h").write_text(module_header(library.modules[0], "mps2-an386", twice=twice))
    for file in library.modules[0].codegen:
        if file.path.suffix == ".h":
            (tmp_path / file.path.name).write_bytes(file.data)
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wpedantic", "-std=c99", "-D_GNU_SOURCE"]
    command = [*compiler, *warnings, "-O2", "-I", str(tmp_path), "-c", str(RUNTIME / "verify/verify.c")]
    done = subprocess.run([*command, "-o", str(tmp_path / "verify.o")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_timed_runs_in_pools_compile_with_a_hook(tmp_path: Path) -> None:
    graph = Graph("net", [Tensor(name, (1, 4), DType.FLOAT32) for name in "xy"],
                  [Node("s", ops.Softmax(), ("x",), ("y",))], ["x"], ["y"])  # fmt: skip
    library = compile_network(graph, options={"io": "arena", "hook": True})
    text = module_header(library.modules[0], "mps2-an386", twice=False, timed=True)
    (tmp_path / "verify_module.h").write_text(text)
    write_tree(library, tmp_path)
    folders = [tmp_path, tmp_path / "host/include", RUNTIME / "profile"]
    includes = [word for folder in folders for word in ("-I", folder)]
    flags = [
        "-mcpu=cortex-m4", *WARNINGS, "-D_GNU_SOURCE", "-DMLF_COUNTER_DWT=1", *includes, "-c",
        RUNTIME / "verify/verify.c",
    ]  # fmt: skip
    run(["arm-none-eabi-gcc", *flags, "-o", tmp_path / "verify.o"])


@pytest.mark.parametrize("memory", [POOLS, WORKSPACE_IO])
def test_tree_builds_its_own_test_firmware(tmp_path: Path, vectors: Path, memory: str) -> None:
    unpack(
        read_archive(aot_archive(memory), "net.tar"),
        tmp_path / "tree",
        archive_id="",
        settings=TreeSettings(verified_on="host"),
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES C)\ninclude(tree/mlf.cmake)\n"
    )
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build, "-G", "Ninja"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build, "--target", "mlf_net_verify"], check=True, capture_output=True)
    image = build / "net_verify.elf"
    assert read_subject(image).pools == (("sram", ARENA[memory][0]),)
    report = verify_image(image, vectors, tmp_path)
    assert report.passed, report.text()


def test_archive_of_tvm_with_a_pool_of_the_caller(shared: Path, tmp_path: Path) -> None:
    library = read_archive((shared / "archives/conv-usmp_external.tar").read_bytes(), "conv-usmp_external.tar")
    unpack(library, tmp_path / "tree", archive_id="")
    report = verify_module(
        tmp_path / "tree", library.modules[0], M4, shared / "archives/conv-usmp_external.npz", tmp_path / "work",
        toolchain=toolchain_file(cpu_called(M4.cpu)),
    )  # fmt: skip
    assert report.passed, report.text()
    assert report.workspace_size == report.workspace_used == 47408
