"""The CPU of a board for which firmware is built around a module with objects."""

import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.core.errors import UsageError
from mlfbuild.library import CodegenFile, Library, Module, ModuleTarget
from mlfbuild.targets import BOARDS, Board, board_called
from mlfbuild.verify.emulator.board_image import fitting_cpu

Compiled = Callable[..., Library]


@pytest.fixture
def compiled(tmp_path: Path, tool: Callable[[str], str]) -> Compiled:
    """Return a function that returns a library with an object, compiled with given flags."""
    gcc = tool("arm-none-eabi-gcc")

    def make(*flags: str) -> Library:
        (tmp_path / "f.c").write_text("float f(float x) { return x + 1; }\n")
        subprocess.run([gcc, "-mthumb", *flags, "-c", tmp_path / "f.c", "-o", tmp_path / "f.o"], check=True)
        file = CodegenFile(PurePosixPath("host/lib/net_lib0.o"), (tmp_path / "f.o").read_bytes())
        return Library((Module("net", "graph", (ModuleTarget("llvm"),), (), (), (file,)),))

    return make


HARD = ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
SOFT = ("-mcpu=cortex-m4", "-mfloat-abi=soft")
M23 = ("-mcpu=cortex-m23", "-mfloat-abi=soft")


@pytest.mark.parametrize(
    ("flags", "board", "cpu"),
    [
        (HARD, "mps2-an386", "cortex-m4"),
        (SOFT, "mps2-an386", "cortex-m4+nofp"),
        (M23, "mps2-an505", "cortex-m23"),
        (("-mcpu=cortex-m0", "-mfloat-abi=soft"), "mps2-an385", "cortex-m3"),
    ],
)
def test_float_abi_of_objects_selects_the_cpu(compiled: Compiled, flags: tuple[str, ...], board: str, cpu: str) -> None:
    assert fitting_cpu(compiled(*flags), board_called(board), "net.tar").name == cpu


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_without_objects_the_cpu_is_that_of_the_board(board: Board) -> None:
    assert fitting_cpu(Library(()), board, "net.tar").name == board.cpu


@pytest.mark.parametrize(
    ("flags", "board", "reason"),
    [
        (HARD, "mps2-an385", "holds code for Armv7E-M, which cortex-m3 does not run"),
        (SOFT, "mps3-an547", "is soft-float, and code for cortex-m55 is hard-float"),
    ],
)
def test_objects_that_no_cpu_of_the_board_runs_are_rejected(
    compiled: Compiled, flags: tuple[str, ...], board: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=rf"net.tar: codegen/host/lib/net_lib0\.o: {reason}"):
        fitting_cpu(compiled(*flags), board_called(board), "net.tar")
