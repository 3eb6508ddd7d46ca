"""Worker processes end with the process that started them, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes import session, wait_for

COMPUTES = """
import os, time
from pathlib import Path

def compute(argument, send):
    Path(f"begun{argument}").touch()
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pass
    finally:
        Path(f"cleaned{argument}").touch()
"""
STARTS = """
import signal, sys
from mlfbuild.jobs.workers import map_in_workers
from job import compute

for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler)
if __name__ == "__main__":
    try:
        list(map_in_workers(compute, [1, 2], 2, lambda *_: None))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGKILL, False), (signal.SIGTERM, False), (signal.SIGINT, True)],
    ids=["kill-9", "kill-term", "ctrl-c"],
)
def test_no_worker_outlives_a_build(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    (tmp_path / "job.py").write_text(COMPUTES)
    (tmp_path / "start.py").write_text(STARTS)
    process = subprocess.Popen(
        [sys.executable, "start.py"], cwd=tmp_path, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_for(lambda: len(list(tmp_path.glob("begun*"))) == 2)
    assert len(session(process.pid)) >= 3, "the build and two workers"
    if whole_group:  # on a busy machine, workers get this signal and that of the build at once
        for other in set(session(process.pid)) - {process.pid}:
            os.kill(other, signal.SIGSTOP)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    if whole_group:
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=60)  # ends when no process has the pipes open
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert "Traceback" not in err
    wait_for(lambda: not session(process.pid))
    assert len(list(tmp_path.glob("cleaned*"))) == 2


def test_an_idle_worker_ends_with_a_killed_build(tmp_path: Path) -> None:
    script = (
        "from mlfbuild.jobs.workers import in_worker, map_in_workers; import os, signal\n"
        "if __name__ == '__main__':\n"
        "    in_worker(abs, -1, 2); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "start.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, "start.py"], cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE
    )
    assert process.communicate(timeout=20)[0] == b""
    wait_for(lambda: not session(process.pid))
