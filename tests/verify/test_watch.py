"""The time limit of a program starts again whenever its output file grows."""

import subprocess
import sys
from pathlib import Path

import pytest

from mlfbuild.core.errors import ProcessFailedError
from mlfbuild.verify.emulator.watch import run_while_it_writes
from support.errors import raises

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
