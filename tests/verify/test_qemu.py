"""Errors of a run: a missing emulator, a missing or invalid image, an interrupt."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError, ProcessFailedError, ToolNotFoundError, UsageError
from mlfbuild.targets import Board, MemoryRegion, board_called
from mlfbuild.verify.emulator import run_elf
from mlfbuild.verify.emulator.watch import run_while_it_writes
from support.errors import raises
from support.processes import is_running, wait_for

M4 = board_called("mps2-an386")
HANG = "int main(void) { for (volatile int forever = 1; forever;) { } return 0; }\n"
LOCKUP = 'int main(void) { __asm__ volatile("cpsid f\\n\\tudf #0"); return 0; }\n'


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "app.elf"
    path.write_bytes(b"not an image")
    return path


@pytest.fixture
def qemu(tool: Callable[[str], str]) -> str:
    return tool("qemu-system-arm")


def test_missing_emulator_is_reported_with_a_hint(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_QEMU_SYSTEM_ARM", "/nowhere/qemu")
    with raises(ToolNotFoundError, "program-not-found", "/nowhere/qemu"):
        run_elf(image, M4)


def test_missing_image_is_reported(tmp_path: Path) -> None:
    with raises(InputFileError, "image-missing", "app.elf"):
        run_elf(tmp_path / "app.elf", M4)


@pytest.mark.parametrize("argument", ["", "two words"])
def test_invalid_argument_is_rejected(image: Path, argument: str) -> None:
    with raises(UsageError, "invalid-firmware-argument"):
        run_elf(image, M4, arguments=[argument])


@pytest.mark.usefixtures("qemu")
def test_board_that_the_emulator_lacks_is_reported(image: Path) -> None:
    board = Board("mps9", "cortex-m4", MemoryRegion("FLASH", 0, 1), MemoryRegion("RAM", 0, 1))
    with raises(ProcessFailedError, "emulator-failed", "app.elf") as caught:
        run_elf(image, board, timeout=60)
    assert "unsupported machine" in str(caught.value)


@pytest.mark.usefixtures("qemu")
def test_lockup_of_the_core_is_reported(build_firmware: Callable[..., Path], tmp_path: Path) -> None:
    path = build_firmware(tmp_path, M4, {"main.c": LOCKUP})
    with raises(ProcessFailedError, "emulator-failed", "app.elf") as caught:
        run_elf(path, M4, timeout=60)
    assert "Lockup" in str(caught.value)


@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_mlfbuild_stops_the_emulator(
    build_firmware: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    path = build_firmware(tmp_path, M4, {"main.c": HANG})
    script = "import sys; from pathlib import Path; from mlfbuild.verify.emulator import run_elf\n"
    script += "from mlfbuild.targets import board_called\n"
    script += "run_elf(Path(sys.argv[1]), board_called('mps2-an386'), timeout=60)\n"
    runner = subprocess.Popen([sys.executable, "-c", script, str(path)], stderr=subprocess.DEVNULL)
    emulator = wait_for(lambda: child_of(runner.pid))
    assert emulator is not None
    wait_for(lambda: ticks(emulator) > 20)  # by then, mlfbuild has noticed that it was started
    runner.send_signal(number)
    assert runner.wait(timeout=30) != 0
    wait_for(lambda: not is_running(emulator))


def child_of(pid: int) -> int | None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    running = [int(child) for child in children if b"-kernel" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return running[0] if running else None


def ticks(pid: int) -> int:
    """Return the processor time of a process, in 1/100 s."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


# The time limit of a program starts again whenever its output file grows.

SLOW = 'for count in 1 2 3 4; do sleep 1; printf x >> "$0"; done; echo done'


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_status_and_output(tmp_path: Path) -> None:
    command = python("import os, sys; print(os.getcwd(), flush=True); print('late', file=sys.stderr); sys.exit(3)")
    status, output = run_while_it_writes(command, cwd=tmp_path, timeout=None, written=None)
    assert (status, output.split()) == (3, [str(tmp_path).encode(), b"late"])


def test_each_result_restarts_the_time_limit(tmp_path: Path) -> None:
    file = tmp_path / "results"
    status, output = run_while_it_writes(["sh", "-c", SLOW, str(file)], cwd=None, timeout=3, written=file)
    assert (status, output, file.read_text()) == (0, b"done\n", "xxxx")


def test_program_without_results_is_stopped(tmp_path: Path) -> None:
    script = "import time; print('begun', flush=True); time.sleep(60); print('ended')"
    with pytest.raises(subprocess.TimeoutExpired) as stopped:
        run_while_it_writes(python(script), cwd=None, timeout=3.0, written=tmp_path / "results")
    assert stopped.value.output == b"begun\n"
    assert stopped.value.timeout == 3.0


def test_signal_that_ended_a_program() -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert run_while_it_writes(python(script), cwd=None, timeout=30, written=None) == (-15, b"")


def test_missing_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    with raises(ProcessFailedError, "program-not-started", "text"):
        run_while_it_writes([str(tmp_path / "text")], cwd=None, timeout=1, written=None)
