"""Programs that mlfbuild starts: their output, and their end after an interrupt at any time."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mlfbuild.core.errors import ProcessFailedError, TimedOutError
from mlfbuild.core.processes import run, running
from support.errors import raises
from support.processes import is_running, wait_for

LINKS = 38
"""Symbolic links in one name; Linux follows at most 40."""
ENTRIES = 20_000
"""Folders in PATH."""

_RUNNER = """
import os
from pathlib import Path
from mlfbuild.verify.emulator.watch import run_while_it_writes
from mlfbuild.core import run, run_ninja
from mlfbuild.core.keeper import start_keeper
start_keeper()  # a shell, which is recognised from here on
os.environ["PATH"] = {entries} * "l:" + os.environ["PATH"]
os.write(1, b"ready")
{call}
"""
_CALLS = {
    "run": "run(['sleep', '600'])",
    "run with a timeout": "run(['sleep', '600'], timeout=600)",
    "ninja": "run_ninja(['sleep', '600'])",
    "watch": "run_while_it_writes(['sleep', '600'], cwd=None, timeout=600, written=Path('none'))",
}


@pytest.mark.parametrize("call", _CALLS)
def test_an_interrupt_while_a_program_is_started_ends_it(tmp_path: Path, call: str) -> None:
    """The program is looked up in so many folders that its process exists long before Popen returns."""
    (tmp_path / "d").mkdir()
    for at in range(LINKS):
        (tmp_path / (f"l{at}" if at < LINKS - 1 else "l")).symlink_to(f"l{at - 1}" if at else "d")
    script = _RUNNER.format(entries=ENTRIES, call=_CALLS[call])
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.read(5) == b"ready"
        child = wait_for(lambda: child_to_be(runner.pid))
        assert child is not None and b"sleep" not in program(child), "it is still being looked up"
        runner.send_signal(signal.SIGINT)
        errors = runner.communicate(timeout=60)[1]
    assert b"KeyboardInterrupt" in errors
    left = is_running(child)
    if left:
        os.kill(child, signal.SIGKILL)
    assert not left


def child_to_be(pid: int) -> int | None:
    """Return the program that ``pid`` starts; the shell is the keeper."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return next((child for child in children if b"/bin/sh" not in program(child)), None)


def program(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def test_a_delayed_interrupt_reaches_the_previous_handler() -> None:
    answered: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: answered.append(number))
    try:
        with running(["sh", "-c", "kill -INT $PPID; echo sent"]) as process:
            assert process.communicate(timeout=60)[0] == b"sent\n"
        assert answered == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_the_handler_of_interrupts_is_restored(handler: object, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
    try:
        run(["true"])
        assert signal.getsignal(signal.SIGINT) is handler
        with raises(ProcessFailedError, "program-not-started", at=str(tmp_path / "none")):
            run([tmp_path / "none"])
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_does_not_inherit_the_delay_of_interrupts() -> None:
    with running(["sh", "-c", "kill -INT $$; echo survived"]) as process:
        output = process.communicate(timeout=60)[0]
    assert (process.returncode, output) == (-signal.SIGINT, b"")


def test_other_threads_start_programs_too() -> None:
    printed: list[str] = []
    thread = threading.Thread(target=lambda: printed.append(run(["echo", "here"])))
    thread.start()
    thread.join(60)
    assert printed == ["here\n"]


def test_an_error_in_the_block_kills_the_program() -> None:
    with pytest.raises(KeyError), running(["sleep", "600"]) as process:
        raise KeyError
    assert process.returncode == -signal.SIGKILL


def test_output_and_status() -> None:
    assert run(["printf", "a\\r\\nb\\377"]) == "a\nb\N{REPLACEMENT CHARACTER}"
    with pytest.raises(ProcessFailedError) as failed:
        run(["sh", "-c", "echo why >&2; exit 3"])
    assert (failed.value.code, failed.value.place, failed.value.output) == ("program-failed", "sh", "why\n")
    assert "exit status 3" in failed.value.reason and str(failed.value).endswith("\nwhy")
    with pytest.raises(TimedOutError) as late:
        run(["sh", "-c", "echo begun; exec sleep 600"], timeout=1)
    assert (late.value.code, late.value.place, late.value.output) == ("program-timed-out", "sh", "begun\n")
