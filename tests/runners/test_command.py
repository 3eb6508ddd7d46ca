"""Devices that commands of the user reach."""

import importlib
import sys
from pathlib import Path

import pytest

from mlfbuild.core import (
    ConflictError,
    InputFileError,
    ProcessFailedError,
    TimedOutError,
    ToolNotFoundError,
    UsageError,
)
from mlfbuild.project import TRANSPORTS, RunnerKeys
from mlfbuild.runners import HostRun, open_runner, run_to_end
from mlfbuild.runners.command import CommandRun, flash_image, run_image
from mlfbuild.runners.open import _MODULES
from support.errors import raises
from support.processes import is_running, wait_for

PLACE = "mlfbuild.yml: targets.desk.runner"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "an image; $(touch x) {probe}.elf"
    path.write_bytes(b"content")
    return path


def shell(script: str, *words: str) -> tuple[str, ...]:
    return ("sh", "-c", script, *words)


def run(image: Path, script: str, *words: str, timeout: float = 20, **keys: str) -> CommandRun:
    return run_image(RunnerKeys(run=shell(script, *words), **keys), image, PLACE, timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if name != "labgrid"])  # which becomes another one
def test_every_transport_has_a_module(transport: str) -> None:
    module = importlib.import_module(f"mlfbuild.runners.{_MODULES.get(transport, transport)}")
    assert callable(module.connect), f"{module.__file__}: open_runner calls `connect`"


def test_the_exit_status_and_the_output_are_those_of_the_command(image: Path) -> None:
    lines: list[str] = []
    keys = RunnerKeys(run=shell('cat "$0"; echo; echo; echo wrong >&2; printf end; exit 42', "{elf}"))
    assert run_image(keys, image, PLACE, 20, lines.append) == CommandRun("content\n\nwrong\nend\n", 42)
    assert lines == ["content\n", "\nwrong\n", "end\n"]


def test_output_comes_while_the_command_runs(image: Path, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    keys = RunnerKeys(run=shell('echo ready; while ! [ -e "$0" ]; do sleep 0.05; done; echo done', str(go_on)))
    result = run_image(keys, image, PLACE, 20, lambda text: go_on.touch() if text == "ready\n" else None)
    assert result == CommandRun("ready\ndone\n", 0)


def test_words_are_filled_in_and_not_interpreted(image: Path) -> None:
    result = run(image, 'printf "<%s>" "$0" "$@"', "load={elf}={elf}", "{probe}", "{other} $HOME *", probe="{elf}")
    assert result.output == f"<load={image}={image}><{{elf}}><{{other}} $HOME *>\n"
    assert not (image.parent / "x").exists()


def test_the_signal_that_ended_a_command_is_its_status(image: Path) -> None:
    assert run(image, "kill -9 $$").exit_status == -9


def test_a_command_that_takes_too_long_is_ended_with_its_children(image: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with raises(TimedOutError, "command-timed-out", f"{PLACE}.run") as error:
        run(image, f"echo started; sleep 60 & echo $! >'{pid}'; wait; echo ended", timeout=0.5)
    assert error.value.output == "started\n"
    wait_for(lambda: not is_running(int(pid.read_text())))


def test_children_that_outlive_a_command_are_ended(image: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert run(image, f"sleep 60 & echo $! >'{pid}'; echo done").output == "done\n"
    wait_for(lambda: not is_running(int(pid.read_text())))


def test_a_command_reads_nothing(image: Path) -> None:
    assert run(image, "cat").exit_status == 0


def test_a_missing_program_is_named(image: Path) -> None:
    with raises(ToolNotFoundError, "program-not-found", "no-such-loader"):
        run_image(RunnerKeys(run=("no-such-loader", "{elf}")), image, PLACE, 20)
    with raises(ToolNotFoundError, "program-not-found", "no-such-loader"):
        flash_image(RunnerKeys(run=("true",), flash=("no-such-loader",)), image, PLACE)


def test_a_missing_image_is_named(tmp_path: Path) -> None:
    with raises(InputFileError, "image-missing", "app.elf"):
        run(tmp_path / "app.elf", "exit 0")


def test_a_command_that_needs_a_probe_is_not_run_without_one(image: Path) -> None:
    with raises(UsageError, "probe-not-chosen", f"{PLACE}.run"):
        run(image, 'touch "$0"', str(image.parent / "ran"), "--probe={probe}")
    assert not (image.parent / "ran").exists()


@pytest.mark.parametrize(
    ("script", "reason"), [("echo no probe; exit 3", "exit status 3"), ("kill -15 $$", "signal 15")]
)
def test_a_flash_command_that_fails_is_named_with_its_output(image: Path, script: str, reason: str) -> None:
    with raises(ProcessFailedError, "flash-command-failed", f"{PLACE}.flash") as error:
        flash_image(RunnerKeys(run=("true",), flash=shell(script)), image, PLACE)
    assert reason in error.value.reason
    assert ("no probe" in error.value.output) == ("no probe" in script)


def test_an_image_is_flashed_before_it_runs(image: Path, tmp_path: Path) -> None:
    flash = tmp_path / "flash"
    keys = RunnerKeys(run=("cat", str(flash)), flash=("cp", "{elf}", str(flash)))
    with open_runner(keys, PLACE) as runner:
        runner.load(image)
        assert runner.console() == ""
        assert run_to_end(runner, image, 20, str) == HostRun("content\n", 0)


def test_what_a_command_cannot_do_is_refused(image: Path) -> None:
    with open_runner(RunnerKeys(run=(sys.executable, "-V")), PLACE) as runner:
        runner.load(image)
        for request in (
            runner.reset, lambda: runner.go([0], 1), lambda: runner.read(0, 4), lambda: runner.write(0, b""),
            runner.registers, lambda: runner.set_registers({}),
        ):  # fmt: skip
            with raises(UsageError, "runner-cannot", PLACE):
                request()  # type: ignore[operator]


def test_two_users_of_a_probe_are_kept_apart() -> None:
    keys = RunnerKeys(run=("true",), probe="0001")
    with open_runner(keys, PLACE), raises(ConflictError, "device-in-use", PLACE), open_runner(keys, PLACE):
        pass
    with open_runner(keys, PLACE), open_runner(RunnerKeys(run=("true",), probe="0002"), PLACE):
        pass
