"""Programs that a process started end with it, even if it is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.processes import is_running, session, wait_for

STARTS = """
import threading
from pathlib import Path
from mlfbuild.compilers.external.run import run_program
from mlfbuild.core import keeper, run, run_ninja

def tell(line, tell=keeper._tell):
    tell(line)
    print(line, end="", flush=True)

keeper._tell = tell

def begin(name):
    return ["sh", "-c", f"sleep 600 & echo $! $$ > {name}.new && mv {name}.new {name}.pids; wait"]

calls = [
    lambda: run(begin("run")),
    lambda: run_ninja(begin("ninja")),
    lambda: run_program(begin("program"), "a compiler", folder=Path()),
    lambda: run(["true"]),
]
for call in calls:
    threading.Thread(target=call).start()
"""
SLEEPS = """
#include <unistd.h>
__attribute__((constructor)) static void hang(void) { for (;;) pause(); }
"""
ISOLATED = """
from pathlib import Path
from support.libraries import native_library
from mlfbuild.verify.host.isolated import Child
child = Child(Path("hang.so").resolve(), native_library("net").modules[0], 600)
child._process = child._start()
print("begun", flush=True)
child.run([])
"""


def test_programs_and_their_children_end_with_a_killed_process(tmp_path: Path) -> None:
    process = started(STARTS, tmp_path)
    assert process.stdout is not None
    signs = [process.stdout.readline()[:1] for _ in range(5)]
    assert sorted(signs) == [b"+", b"+", b"+", b"+", b"-"]
    wait_for(lambda: len(list(tmp_path.glob("*.pids"))) == 3)
    pids = [int(word) for path in tmp_path.glob("*.pids") for word in path.read_text().split()]
    assert len(pids) == 6 and all(map(is_running, pids))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)  # ends when no process has the pipe open
    wait_for(lambda: not any(map(is_running, pids)))
    assert session(process.pid) == []


def test_the_process_of_a_model_that_hangs_ends_with_a_killed_process(
    tmp_path: Path, tool: Callable[[str], str]
) -> None:
    (tmp_path / "hang.c").write_text(SLEEPS)
    subprocess.run([tool("gcc"), "-shared", "-fPIC", "-o", "hang.so", "hang.c"], cwd=tmp_path, check=True)
    process = started(ISOLATED, tmp_path)
    assert process.stdout is not None and process.stdout.readline() == b"begun\n"
    wait_for(lambda: len(session(process.pid)) == 2)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    wait_for(lambda: not session(process.pid))


def test_a_process_without_its_keeper_goes_on(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "from mlfbuild.core import keeper, run\n"
        "run(['true'])\n"
        "os.kill(keeper._keeper().pid, signal.SIGKILL)\n"
        "os.waitid(os.P_PID, keeper._keeper().pid, os.WEXITED | os.WNOWAIT)\n"
        "print(run(['echo', 'here']), end='')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")


def started(script: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, start_new_session=True)
