"""Moving progress on terminals, and plain lines elsewhere."""

import re
import time

import pytest
from rich.console import Console

from mlfbuild.cli.options import SharedOptions
from mlfbuild.cli.output.live import LiveProgress, Rows
from mlfbuild.cli.output.plain import PlainProgress, duration
from mlfbuild.cli.output.progress import showing_progress, working
from mlfbuild.jobs.progress import UP_TO_DATE, Task
from support.command import Folder
from support.terminal import Terminal

COMPILED = r"compile alpha for pc: compiled, \d+ files written \(\d+\.\d s\)"
PROGRAMS = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  alpha: {source: models/alpha.tflite, compiler: command, command: [sh, -c, "%s; exit 3", "{output}"]}
  beta: {source: models/beta.tflite, compiler: command, command: [sh, -c, "%s; exit 3", "{output}"]}
"""
ALPHA, BETA = Task("compile", "alpha for pc", "pc", model="alpha"), Task("compile", "beta for pc", "pc", model="beta")


def programs(folder: Folder, alpha: str, beta: str) -> None:
    """Use two shell scripts as compilers, which fail at their end."""
    folder.write("mlfbuild.yml", PROGRAMS % (alpha, beta))


def after(name: str) -> str:
    """Return shell commands that wait for the file of the other script."""
    return f"while [ ! -e {name} ]; do sleep 0.05; done"


def test_finished_job_is_a_plain_line(folder: Folder) -> None:
    seen = Terminal().run(folder.root, "build", "--model", "alpha")
    assert (seen.status, seen.cursor) == (0, True)
    done, result, note = seen.lines
    assert re.fullmatch(COMPILED, done)
    assert result == "alpha for pc: build/mlf/pc/alpha"
    assert note.startswith("not built: firmware app")


def test_two_jobs_have_rows_and_a_count(folder: Folder) -> None:
    programs(folder, f"touch a; {after('b')}; sleep 1", f"touch b; {after('a')}; sleep 1")
    seen = Terminal().run(folder.root, "build", "-j", "2")
    assert seen.status == 7
    both = [screen for screen in seen.screens if len(screen) == 3 and screen[2] == "0 of 2 done"]
    alpha, beta = sorted(both[-1][:2])
    assert re.fullmatch(r"compile alpha for pc: compiling \(\d\.\d s\)", alpha)
    assert re.fullmatch(r"compile beta for pc: compiling \(\d\.\d s\)", beta)
    failed = sorted(line.split(" (")[0] for line in seen.lines[:2])
    assert failed == ["compile alpha for pc: failed", "compile beta for pc: failed"]
    assert [line for line in seen.lines if "compiling" in line or "of 2 done" in line] == []
    assert "\n".join(seen.lines).count("exit status 3") == 2, "each program's failure is told"


def test_jobs_are_printed_as_they_end(folder: Folder) -> None:
    programs(folder, "touch a; sleep 1", after("a"))
    ended = folder.spawn("build", "-j", "2")
    assert re.findall(r"^compile (\w+) for pc: failed", ended.err, re.MULTILINE) == ["beta", "alpha"]
    assert "\x1b" not in ended.err


def test_narrow_terminal_cuts_only_moving_rows(folder: Folder) -> None:
    programs(folder, "sleep 0.6", "sleep 0.6")
    seen = Terminal((24, 30)).run(folder.root, "build", "-j", "1")
    live = [screen for screen in seen.screens if screen[-1:] == ["0 of 2 done"]]
    assert live[-1] == ["compile alpha for pc: co", "0 of 2 done"]
    assert seen.lines[0] == "compile alpha for pc:"
    assert re.fullmatch(r"  failed \(\d\.\d s\)", seen.lines[1]), "wrapped at words"


def test_resized_window(folder: Folder) -> None:
    programs(folder, "sleep 1.5", "sleep 1.5")
    terminal = Terminal((100, 30))
    shrunk: list[bool] = []

    def shrink(screen: list[str]) -> None:
        if not shrunk and any("compiling" in line for line in screen):
            terminal.resize((20, 30))
            shrunk.append(True)

    seen = terminal.run(folder.root, "build", "-j", "1", on_screen=shrink)
    assert shrunk
    assert ["compile alpha for pc", "0 of 2 done"] in seen.screens
    assert not any("of 2 done" in line for line in seen.lines)
    assert seen.cursor


def test_interrupt_restores_the_terminal(folder: Folder) -> None:
    programs(folder, "sleep 60", "sleep 60")
    terminal = Terminal()
    pressed: list[bool] = []

    def press(screen: list[str]) -> None:
        if not pressed and sum("compiling" in line for line in screen) == 2:
            terminal.interrupt()
            pressed.append(True)

    seen = terminal.run(folder.root, "build", "-j", "2", on_screen=press)
    assert seen.status == 130
    assert seen.lines == ["mlfbuild: interrupted; run the command again to continue"]
    assert seen.cursor


@pytest.mark.usefixtures("host_tools")
def test_program_output_is_printed_in_full_below_finished_jobs(folder: Folder) -> None:
    folder.write("main.c", "int main(void) { return missing; }\n")
    seen = Terminal((200, 60)).run(folder.root, "build", "-j", "1")
    assert seen.status == 7
    lines = [re.sub(r" \(\d+\.\d s\)", "", line) for line in seen.lines]
    at = lines.index("build app for pc: failed")
    assert lines[at + 1].startswith("mlfbuild: ")
    assert any(re.search("error: .missing. undeclared", line) for line in lines[at + 2 :])
    assert lines[-1] == "ninja: build stopped: subcommand failed."


@pytest.mark.usefixtures("host_tools")
def test_up_to_date_build_prints_one_line(folder: Folder) -> None:
    folder.write("main.c", '#warning "old"\nint main(void) { return 0; }\n')
    first = folder.run("build")
    assert re.search(r"^build app for pc:\n(.*\n)*.*warning: #warning \"old\"", first.err, re.MULTILINE)
    assert re.search(r"^build app for pc: built \(\d+\.\d s\)\n", first.err, re.MULTILINE)
    second = folder.run("build")
    assert (second.status, second.err) == (0, "nothing to build: 3 jobs up to date\n")
    assert second.out == first.out
    seen = Terminal().run(folder.root, "build")
    assert seen.lines[0] == "nothing to build: 3 jobs up to date"
    assert folder.run("build", "-q").err == ""


@pytest.mark.parametrize(("arguments", "environment"), [((), {"TERM": "dumb"}), ((), {"CI": "true"}), (("-q",), {})])
def test_no_moving_rows_without_a_terminal(
    folder: Folder, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    seen = Terminal().run(folder.root, "build", "--model", "alpha", *arguments, **environment)
    assert seen.status == 0
    assert "\x1b" not in seen.raw
    expected = [COMPILED, "alpha for pc: build/mlf/pc/alpha", "not built: .*"]
    assert arguments or re.fullmatch("\n".join(expected), "\n".join(seen.lines))
    assert bool(re.search(COMPILED, seen.raw)) == (not arguments)


GREEN, RED, RESET = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def test_passed_is_green_and_failed_is_red(folder: Folder) -> None:
    assert f"mlfbuild.yml: {GREEN}no mistakes{RESET} (" in Terminal().run(folder.root, "check").raw
    done = Terminal().run(folder.root, "build", "--model", "alpha").raw
    assert re.search(r"compile alpha for pc: \x1b\[32mcompiled, \d+ files written\x1b\[0m \(", done)
    folder.write("models/alpha.tflite", b"no model")
    failed = Terminal((60, 30)).run(folder.root, "build", "--model", "alpha")
    assert f"compile alpha for pc: {RED}failed{RESET} (" in failed.raw
    assert f"{RED}mlfbuild:{RESET} models/alpha.tflite: header: " in failed.raw
    words = " ".join(line.strip() for line in failed.lines)
    assert "as the file identifier TFL3 is missing; copy or export the model again" in words, "no word is cut"
    assert len(failed.lines) == 4


def test_only_results_for_people_are_wrapped(folder: Folder) -> None:
    compile_it = ["compile", "models/alpha.tflite", "--cpu", "host", "-o", "a.tar", "-v"]
    lines, words = Terminal((40, 30)).run(folder.root, *compile_it).lines, folder.run(*compile_it).out.split()
    assert lines[0].startswith("compile alpha for host: compiled (")
    assert " ".join(lines).split()[-len(words) :] == words
    assert any(line.startswith("  constants ") for line in lines)
    script = Terminal((40, 60)).run(folder.root, "completion", "bash").raw.replace("\r\n", "\n")
    assert script == folder.run("completion", "bash").out


def test_without_colours_progress_moves(folder: Folder) -> None:
    programs(folder, "sleep 0.6", "sleep 0.6")
    seen = Terminal().run(folder.root, "build", "-j", "2", NO_COLOR="1")
    assert any(screen[-1:] == ["0 of 2 done"] for screen in seen.screens)
    assert not re.search(r"\x1b\[[\d;]*[1-9][\d;]*m", seen.raw), "no colour, and nothing bold"


def test_verbs_without_jobs_show_what_takes_long(folder: Folder) -> None:
    folder.write("tvm", "#!/bin/sh\nsleep 2.5\nexit 1\n").chmod(0o755)
    words = "compile models/alpha.tflite --cpu host -o a.tar --compiler tvm --python ./tvm"
    seen = Terminal().run(folder.root, *words.split())
    rows = {line for screen in seen.screens for line in screen if line.startswith("compiling ")}
    assert any(re.fullmatch(r"compiling models/alpha.tflite \([1-9]\.\d s\)", row) for row in rows)
    assert not any(line.startswith("compiling ") for line in seen.lines)
    assert seen.cursor


def test_steps_on_devices_have_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((10.0, 10.0, 10.5, 12.0, 13.0, 14.5))
    monkeypatch.setattr("mlfbuild.cli.output.plain.time.monotonic", lambda: next(times))
    watch = PlainProgress(lambda *_: None, verbose=False, quiet=False)
    watch.start(ALPHA)
    shown = []
    for doing, done in (("loading", 0), ("loading", 9), ("loading", 4000), ("running", 0), ("running", 60)):
        watch.step(ALPHA, doing, done, 8000)
        shown.append(watch.steps[ALPHA])
    assert shown == [
        "loading 0/8000", "loading 9/8000", "loading 4000/8000, 2,000 bytes/s", "running 0/8000",
        "running 60/8000, 40 cases/s",
    ]  # fmt: skip


def test_long_jobs_are_mentioned_again(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.cli.output.plain.STILL_SECONDS", 0.2)
    monkeypatch.setattr("mlfbuild.cli.output.progress.STILL_SECONDS", 0.2)
    with showing_progress(SharedOptions()) as watch:
        watch.start(ALPHA)
        watch.step(ALPHA, "building", 3, 9)
        time.sleep(0.5)
        watch.finish(ALPHA, "compiled")
        time.sleep(0.3)
    with working(SharedOptions(), "running kws.tar"):
        time.sleep(0.3)
    *still, done, other = capsys.readouterr().err.splitlines()
    assert still and all(re.fullmatch(r"compile alpha for pc: still building 3/9 \(0\.\d s\)", line) for line in still)
    assert done.startswith("compile alpha for pc: compiled (")
    assert re.fullmatch(r"still running kws.tar \(0\.\d s\)", other)


@pytest.mark.sweep
def test_empty_or_false_ci_variable_is_ignored(folder: Folder) -> None:
    for value in ("", "false", "0"):
        assert "\x1b[" in Terminal().run(folder.root, "plan", "--model", "alpha", "--complete", CI=value).raw


def test_lines_go_to_stderr_without_up_to_date_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    for settings in (SharedOptions(), SharedOptions(verbose=True), SharedOptions(quiet=True)):
        with showing_progress(settings) as watch:
            watch.start(ALPHA)
            watch.finish(ALPHA, UP_TO_DATE)
            watch.start(BETA)
            watch.finish(BETA, "compiled")
    line = "compile beta for pc: compiled (0.0 s)\n"
    assert capsys.readouterr() == ("", f"{line}compile alpha for pc: up to date\n{line}")


def rows_of(lines: LiveProgress) -> list[str]:
    with lines.rows.console.capture() as drawn:
        lines.rows.console.print(lines.rows)
    return [row.rstrip() for row in drawn.get().splitlines()]


def test_rows_fit_the_terminal() -> None:
    console = Console(width=80, height=6)
    lines = LiveProgress(Rows(console), verbose=False)
    tasks = [Task("compile", f"[b]model{number}", "pc") for number in range(5)]
    lines.expect(7)
    for task in tasks:
        lines.start(task)
    lines.step(tasks[0], "building", 3, 9)
    assert rows_of(lines) == [
        "compile [b]model0: building 3/9 (0.0 s)", "compile [b]model1: waiting (0.0 s)", "... and 3 more",
        "0 of 7 done",
    ]  # fmt: skip
    with console.capture():
        lines.finish(tasks[0], "compiled")
        lines.fail(tasks[1])
    console.height = 12
    assert rows_of(lines)[-1] == "2 of 7 done"
    assert len(rows_of(lines)) == 4


def test_durations_as_text() -> None:
    assert [duration(0.04), duration(59.94), duration(65.7), duration(3600)] == [
        "0.0 s", "59.9 s", "1 min 05 s", "60 min 00 s",
    ]  # fmt: skip


def test_error_is_printed_last(folder: Folder) -> None:
    folder.write("models/alpha.tflite", b"no model")
    seen = Terminal((200, 30)).run(folder.root, "build", "--model", "alpha")
    assert seen.status == 5
    assert seen.lines[0].startswith("compile alpha for pc: failed (")
    assert seen.lines[1].startswith("mlfbuild: models/alpha.tflite: header: not a TFLite model")
    assert len(seen.lines) == 2
    assert seen.cursor
