"""Long work shows itself on a terminal, and only there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from mlfbuild.cli.options import Settings
from mlfbuild.cli.watch import watching
from support.command import Folder


def on_a_terminal(folder: Folder, *arguments: str, term: str = "xterm") -> tuple[int, str, str]:
    """Run the command with stderr on a terminal; return exit status, stdout, and what the terminal got."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "mlfbuild", *arguments], cwd=folder.root, text=True, stdout=subprocess.PIPE,
        stderr=slave, env={**os.environ, "TERM": term},
    ) as process:  # fmt: skip
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # how Linux says that the last writer has closed the terminal
                break
            if not part:
                break
            seen += part
        out = process.communicate(timeout=60)[0]
    os.close(master)
    return process.returncode, out, seen.decode()


def test_a_terminal_gets_a_moving_bar(folder: Folder) -> None:
    status, out, seen = on_a_terminal(folder, "build", "--model", "alpha")
    assert (status, out) == (0, "alpha for pc: build/mlf/pc/alpha\n")
    assert "\x1b[" in seen
    assert "compile alpha for pc: compiled, " in seen
    assert "0/1" in seen


@pytest.mark.parametrize(("arguments", "term"), [((), "dumb"), (("-q",), "xterm")])
def test_no_bar_where_it_is_not_wanted(folder: Folder, arguments: tuple[str, ...], term: str) -> None:
    status, _, seen = on_a_terminal(folder, "build", "--model", "alpha", *arguments, term=term)
    assert status == 0
    assert "\x1b[" not in seen
    assert ("compiled" in seen) == (not arguments)


def test_lines_go_to_stderr_and_leave_out_what_was_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    for settings in (Settings(), Settings(verbose=True), Settings(quiet=True)):
        with watching(settings) as watch:
            watch.start("compile a")
            watch.finish("compile a", "up to date")
            watch.start("compile b")
            watch.finish("compile b", "compiled")
    assert capsys.readouterr() == ("", "compile b: compiled\n" + "compile a: up to date\ncompile b: compiled\n")


def test_an_error_ends_the_bar_and_stands_alone(folder: Folder) -> None:
    folder.write("models/alpha.tflite", b"no model")
    status, _, seen = on_a_terminal(folder, "build", "--model", "alpha")
    assert status == 5
    assert "mlfbuild: models/alpha.tflite: not a valid TFLite model" in seen.splitlines()[-1]
    assert "\x1b[?25h" in seen, "the cursor is back"
