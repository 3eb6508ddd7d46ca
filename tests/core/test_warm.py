"""Commands that are forked from a process with their imports behave as those that are started."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import warm
from support.processes import wait_for

MODULE = """\
import os, signal, sys, time

print("args", sys.argv[1:], "name", __name__, "path", sys.path[0] == os.getcwd())
print("value", os.environ.get("VALUE"), file=sys.stderr)
if "sleep" in sys.argv:
    open("started", "w").write(str(os.getpid()))
    time.sleep(60)
if "signal" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
if "error" in sys.argv:
    raise ValueError("wrong")
sys.exit("a reason" if "text" in sys.argv else int(sys.argv[1]) if sys.argv[1:] else None)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "probe.py").write_text(MODULE)
    monkeypatch.setenv("VALUE", "seven")
    return tmp_path


@pytest.mark.parametrize("arguments", [(), ("3",), ("text", "a b"), ("error",), ("signal",)])
def test_commands_end_as_if_they_had_been_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    forked = warm.run("probe", *arguments, cwd=folder)
    program = subprocess.run([warm.command("probe"), *arguments], cwd=folder, capture_output=True, text=True)
    monkeypatch.setenv("MLFBUILD_COLD", "1")
    started = warm.run("probe", *arguments, cwd=folder)
    results = [(done.returncode, done.stdout, done.stderr.splitlines()[-1:]) for done in (forked, program, started)]
    assert results[0] == results[1] == results[2]
    assert started.returncode == {(): 0, ("3",): 3, ("signal",): -signal.SIGKILL}.get(arguments, 1)


def test_a_process_ends_with_its_client(folder: Path) -> None:
    client = subprocess.Popen([warm.command("probe"), "sleep"], cwd=folder)
    while not (folder / "started").is_file() or not (text := (folder / "started").read_text()):
        time.sleep(0.01)
    client.kill()
    client.wait()
    wait_for(lambda: not Path(f"/proc/{text}").exists())


def test_another_start_of_python_is_a_process_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folder / "other"
    other.mkdir()
    (other / "mlfbuild.py").write_text("print('another')\n")
    monkeypatch.setenv("PYTHONPATH", str(other))
    done = subprocess.run([warm.command("mlfbuild")], cwd=folder, capture_output=True, text=True)
    assert done.stdout == warm.run("mlfbuild", cwd=folder).stdout == "another\n"
