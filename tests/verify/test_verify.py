"""Verification finds faults of a module and reports their position."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core.errors import CheckFailedError, ProcessFailedError, UnsupportedModelError, UsageError
from mlfbuild.jobs.tree.verification import module_header
from mlfbuild.library import MainMemory, Network, NetworkOperator, Pool, TensorInfo
from mlfbuild.targets import BOARDS, RUNTIME, Board, board_called, cpu_called, toolchain_file
from mlfbuild.verify.module import VerifyReport, verify_image, verify_module
from support.errors import raises
from support.examples import first_on_push
from support.hand_written_library import OUTPUTS, write_library

A = np.array([[1, 2, 3, 4], [-5, 6, 100, 8], [9, -10, 11, 12]], np.int8)
B = np.array([[1, 1, 1, 1], [2, 2, 2, 2], [-100, 3, 3, 3]], np.int8)
SUM = A + B
MEAN = (SUM[:, [0, 3]] / 2).astype(np.float32)

M4 = board_called("mps2-an386")


@pytest.fixture(scope="module", autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests of the module, so that only changed files of the test firmware are built again."""
    return tmp_path_factory.mktemp("verify")


def vectors(folder: Path, **changes: np.ndarray) -> Path:
    path = folder / "vectors.npz"
    np.savez(path, **{"in0": A, "in1": B, "out0": SUM, "out1": MEAN, **changes})
    return path


def verify(workdir: Path, board: Board | None, wrong: str = "", **options: object) -> VerifyReport:
    module = write_library(workdir / "tree", wrong, reentrant=bool(options.pop("reentrant", True)))
    toolchain = toolchain_file(cpu_called(board.cpu)) if board else None
    folder = workdir / (board.name if board else "host")
    path = options.pop("vectors", None) or vectors(workdir)
    return verify_module(workdir / "tree", module, board, path, folder, toolchain=toolchain, **options)


@pytest.mark.parametrize(
    "board", first_on_push([*BOARDS.values(), None], 1), ids=lambda board: board.name if board else "host"
)
def test_correct_model_passes_and_its_memory_is_measured(workdir: Path, board: Board | None) -> None:
    report = verify(workdir, board)
    assert report.passed, report.text()
    assert (report.cases, report.workspace_size, report.workspace_used) == (3, 64, 48)
    name = board.name if board else "host"
    stack = rf", stack {report.stack_used} bytes" if board else ""
    assert report.text() == f"net: 3 cases right on {name}, arena 48 of 64 bytes used{stack}"
    if board:
        assert report.stack_used is not None and 8 <= report.stack_used <= 200


WRONG = {
    "an output is off by one": ("if (a[0] < 0) sum[2]++;",
     r"net: case 1, output 0 \(sum\), element 2: expected 102, got 103 \(1 of 4 elements differ\)"),
    "a float is off by a little": ("mean[1] *= 1.0001f;",
     r"net: case 0, output 1 \(mean\), element 1: expected 2.5, got 2.50025 \(1 of 2 .* differ\)(\nnet: .*){2}"),
    "it writes past an output": ("sum[4] = 0;", r"(net: case \d: wrote outside output 0\n?){3}"),
    "it writes before an output": ("sum[-1] = 0;", r"(net: case \d: wrote outside output 0\n?){3}"),
    "it writes past the last output": ("mean[2] = 0;", r"(net: case \d: wrote outside output 1\n?){3}"),
    "it writes past an input": ("a[4] = 0;", r"(net: case \d: wrote outside input 0\n?){3}"),
    "it changes an input": ("if (a[2] == 100) a[1]++;", r"net: case 1: changed input 0"),
    "it changes the other input": ("((signed char *)b)[3] = 7;", r"(net: case \d: changed input 1\n?){3}"),
    "it leaves the arena": ("workspace[64] = 0;", r"(net: case \d: wrote outside the workspace of 64 bytes\n?){3}"),
    "it begins before the arena": ("workspace[-1] = 0;",
     r"(net: case \d: wrote outside the workspace of 64 bytes\n?){3}"),
    "it remembers the run before": ("if (runs == 4) sum[1] = 0;",
     r"net: case 1, output 0 \(sum\), element 1: the second run differs from the first \(0 after 8\)"),
    "it returns an error": ("if (a[0] == 9) return -1;", r"net: case 2: the run function returned -1, not 0"),
}  # fmt: skip


@pytest.mark.parametrize("board", first_on_push([M4, None]), ids=["m4", "host"])
@pytest.mark.parametrize(("wrong", "found"), WRONG.values(), ids=WRONG)
def test_faults_are_reported(workdir: Path, board: Board | None, wrong: str, found: str) -> None:
    report = verify(workdir, board, wrong)
    assert not report.passed
    assert re.fullmatch(found, report.text()), report.text()


def test_floats_of_many_layers_have_a_larger_tolerance(workdir: Path) -> None:
    """An error of 3e-5 is too large for one layer and not for 16, unless the vectors set another tolerance."""
    module = write_library(workdir / "tree", "mean[0] *= 1.00003f; mean[1] *= 1.00003f;")
    layer = NetworkOperator("dense", "FULLY_CONNECTED", "tvmgen_net_run", macs=4)
    deep = replace(module, network=Network(48, (), (layer,) * 16))
    found = {}
    for name, each in {"one layer": module, "16 layers": deep}.items():
        for tolerance in (None, 2e-5, 5e-5):
            path = vectors(workdir, **({} if tolerance is None else {"tolerance": np.array(tolerance)}))
            found[name, tolerance] = verify_module(workdir / "tree", each, None, path, workdir / "host").passed
    assert found == {
        ("one layer", None): False, ("one layer", 2e-5): False, ("one layer", 5e-5): True, ("16 layers", None): True,
        ("16 layers", 2e-5): False, ("16 layers", 5e-5): True,
    }  # fmt: skip
    image = workdir / "host/build/verify.elf"
    assert verify_image(image, vectors(workdir), workdir / "alone").passed
    assert not verify_image(image, vectors(workdir, tolerance=np.array(2e-5)), workdir / "alone").passed


def test_element_that_is_never_written_is_found(workdir: Path) -> None:
    longer = [OUTPUTS[0], TensorInfo("mean", "float32", 12, (1, 3))]
    module = write_library(workdir / "tree", outputs=longer)
    path = vectors(workdir, out1=np.concatenate([MEAN, MEAN[:, :1]], axis=1))
    report = verify_module(workdir / "tree", module, None, path, workdir / "longer")
    assert "net: case 0, output 1 (mean), element 2: expected 1.0, got " in report.text()


def test_deepest_stack_is_measured(workdir: Path) -> None:
    used = verify(workdir, M4).stack_used
    deep = "if (a[0] == 9) { volatile char deep[5000]; for (int i = 0; i < 5000; i++) deep[i] = 1; }"
    report = verify(workdir, M4, deep)
    assert report.passed and used is not None and report.stack_used is not None
    assert 5000 <= report.stack_used - used < 5100


def test_fault_is_a_failure_with_the_registers(workdir: Path) -> None:
    report = verify(workdir, M4, 'if (a[0] == 9) __asm__ volatile(".inst.n 0xde00");')
    assert re.match(r"net: case 2: the firmware faulted\n.*mlf_board: stopped by HardFault\n  pc  0x", report.text())


def test_crash_on_this_machine_is_a_failure(workdir: Path) -> None:
    report = verify(workdir, None, "if (a[0] == 9) __builtin_trap();")
    assert re.fullmatch(r"net: case 2: the program was ended by signal \d+", report.text())


@pytest.mark.parametrize(
    ("board", "wait"),
    [(M4, '__asm__ volatile("wfi");'), (None, "extern int pause(void); pause();")],
    ids=["m4", "host"],
)
def test_hanging_run_is_a_failure(workdir: Path, board: Board | None, wait: str) -> None:
    report = verify(workdir, board, f"while (a[0] == -5 && runs) {{ {wait} }}", timeout=2)
    assert report.text() == "net: case 1: no result after 2 s, so it was stopped"


def test_many_problems_are_counted(workdir: Path, tmp_path: Path) -> None:
    path = vectors(
        tmp_path, in0=np.tile(A, (4, 1)), in1=np.tile(B, (4, 1)), out0=np.tile(SUM, (4, 1)), out1=np.tile(MEAN, (4, 1))
    )
    report = verify(workdir, None, "sum[0]++;", vectors=path)
    assert len(report.problems) == 12
    assert report.text().splitlines()[-1] == "net: and 2 more problems"


def test_module_with_its_own_workspace(workdir: Path) -> None:
    report = verify(workdir, M4, reentrant=False)
    assert report.passed and report.workspace_used is None
    assert "arena" not in report.text()
    report = verify(workdir, M4, "if (runs == 2) sum[0] = 9;", reentrant=False)
    assert "case 0, output 0 (sum), element 0: the second run differs from the first (9 after 2)" in report.text()


def test_arena_that_fits_the_board_only_once(workdir: Path) -> None:
    module = write_library(workdir / "tree")
    large = replace(module, main=(MainMemory(M4.ram.size // 2 + 1, 0, 20),))
    assert "MODULE_RUN_IN(" in module_header(large, "host")
    text = module_header(large, M4.name)
    assert "MODULE_RUN_IN(" not in text and "MODULE_WORKSPACE_SIZES 0\n" in text
    assert '\\"takes_workspace\\":false' in text
    stream = replace(large, state_size=16)
    assert "MODULE_RUN_IN(" in module_header(stream, M4.name), "its second stream needs a state of the caller's"


def test_one_case_is_measured_with_two_paints(workdir: Path, tmp_path: Path) -> None:
    path = vectors(tmp_path, in0=A[:1], in1=B[:1], out0=SUM[:1], out1=MEAN[:1])
    for paint in (0x5A, 0xA5):
        report = verify(workdir, None, f"memset(workspace + 40, {paint}, 8);", vectors=path)
        assert (report.cases, report.workspace_used) == (1, 48)


def test_compiler_errors_are_shown_unchanged(workdir: Path) -> None:
    with pytest.raises(ProcessFailedError, match=r"net_lib0\.c:\d+:\d+: error: .*nonsense"):
        verify(workdir, M4, "nonsense;")


def test_struct_of_another_shape_does_not_compile(workdir: Path) -> None:
    module = write_library(workdir / "tree", outputs=[TensorInfo("sum", "int8", 4, (1, 4))])
    path = workdir / "one.npz"
    np.savez(path, in0=A, in1=B, out0=SUM)
    with pytest.raises(ProcessFailedError, match="outputs_are_pointers"):
        verify_module(workdir / "tree", module, None, path, workdir / "host")


def test_module_without_c_interface_is_rejected(workdir: Path) -> None:
    module = write_library(workdir / "tree")
    headless = type(module)(**{**vars(module), "codegen": module.codegen[1:]})
    with raises(UnsupportedModelError, "module-without-interface", "net"):
        verify_module(workdir / "tree", headless, M4, vectors(workdir), workdir / "headless")


def test_module_that_needs_a_driver_is_rejected(workdir: Path) -> None:
    module = write_library(workdir / "tree")
    npu = replace(module, devices=("ethos_u",))
    with raises(UnsupportedModelError, "module-needs-driver", "net") as driver:
        verify_module(workdir / "tree", npu, M4, vectors(workdir), workdir / "npu")
    assert "ethos_u" in driver.value.reason
    unknown = replace(module, pools=(Pool("sram", "workspace", None, external=True),))
    with raises(UnsupportedModelError, "pool-size-unknown", "net") as pool:
        verify_module(workdir / "tree", unknown, M4, vectors(workdir), workdir / "npu")
    assert "sram" in pool.value.reason
    own = replace(module, pools=(Pool("global_workspace", "workspace", 64, external=False),))
    assert "MODULE_POOLS" not in module_header(own, "host"), "memory of its own is not the caller's"


def test_file_without_cases_fails(workdir: Path, tmp_path: Path) -> None:
    path = vectors(tmp_path, in0=A[:0], in1=B[:0], out0=SUM[:0], out1=MEAN[:0])
    with raises(CheckFailedError, "vectors-without-cases", ".npz"):
        verify(workdir, M4, vectors=path)


def test_cross_target_without_board_is_rejected(workdir: Path) -> None:
    module = write_library(workdir / "tree")
    toolchain = toolchain_file(cpu_called("cortex-m0plus"))
    with raises(UsageError, "target-without-board", "net"):
        verify_module(workdir / "tree", module, None, vectors(workdir), workdir / "m0", toolchain=toolchain)


@pytest.mark.sweep
def test_build_folder_of_another_board_is_emptied(workdir: Path, tmp_path: Path) -> None:
    module = write_library(tmp_path / "tree")
    for board in (M4, board_called("mps3-an547"), None):
        toolchain = toolchain_file(cpu_called(board.cpu)) if board else None
        report = verify_module(tmp_path / "tree", module, board, vectors(workdir), tmp_path / "w", toolchain=toolchain)
        assert report.passed and report.board == (board.name if board else "host")


def test_image_does_not_depend_on_the_vectors(workdir: Path, tmp_path: Path) -> None:
    verify(workdir, M4)
    image = workdir / M4.name / "build" / "verify.elf"
    before = image.stat().st_mtime_ns
    verify(workdir, M4, vectors=vectors(tmp_path, in0=A[:1], in1=B[:1], out0=SUM[:1], out1=MEAN[:1]))
    assert image.stat().st_mtime_ns == before


WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wpedantic", "-O2"]


@pytest.mark.parametrize("reentrant", [True, False], ids=["callers-workspace", "own-workspace"])
@pytest.mark.parametrize("compiler", [["gcc"], ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-DMEASURE_STACK=1"]])
def test_test_firmware_compiles_without_a_warning(tmp_path: Path, compiler: list[str], reentrant: bool) -> None:
    module = write_library(tmp_path, reentrant=reentrant)
    (tmp_path / "verify_module.h").write_text(module_header(module, "mps2-an386"))
    source = RUNTIME / "verify" / "verify.c"
    command = [*compiler, *WARNINGS, "-I", str(tmp_path), "-c", str(source), "-o", str(tmp_path / "verify.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_header_of_a_module(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    golden(module_header(write_library(tmp_path), "mps2-an386"), "verify_module.h")
