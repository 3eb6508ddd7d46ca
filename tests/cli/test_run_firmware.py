"""Verbs for a device on the desk: QEMU behind its GDB stub, without semihosting, is the board of examples/boards."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support import warm
from support.desk import PROJECT

SCONSTRUCT = """
env = Environment(tools=["default", "mlf"])
models = env.MlfModels("mlfbuild.yml", target="nucleo")
app = env.MlfFirmware("nucleo", models=models, source="nucleo-f446re")
env.Alias("flash", env.MlfFlash(app, models=models))
env.Alias("run", env.MlfRun(app, models=models))
"""


def mlfbuild(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run("mlfbuild", *words, cwd=folder)


def test_firmware_is_built_written_and_run_on_the_device(desk: Path) -> None:
    done = mlfbuild(desk, "run-firmware", "nucleo", "--target", "nucleo")
    assert (done.returncode, done.stdout) == (0, "answers 0123456789\nall right\n"), done.stderr


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("file", "old", "new", "result", "error"),
    [
        ("src/samples.c", "{0, {", "{1, {", "wrong", "exit status 1 on gdb localhost:"),
        ("src/main.c", "return (int)wrong;", "for (;;) {\n    }", "all right", ""),
    ],
    ids=["its status is found without semihosting", "it never ends and is stopped"],
)
def test_firmware_that_fails(
    desk: Path, tmp_path: Path, file: str, old: str, new: str, result: str, error: str
) -> None:
    folder = tmp_path / "wrong"
    shutil.copytree(desk, folder, ignore=shutil.ignore_patterns("build"))
    (folder / file).write_text((folder / file).read_text().replace(old, new, 1))
    done = mlfbuild(folder, "run-firmware", "--timeout", "2" if not error else "120")
    assert (done.returncode, done.stdout) == (7, f"answers 0123456789\n{result}\n")
    assert error in done.stderr and "Traceback" not in done.stderr


@pytest.mark.sweep
def test_scons_flashes_and_runs(desk: Path) -> None:
    (desk / "SConstruct").write_text(SCONSTRUCT)
    (desk / "site_scons/site_tools").mkdir(parents=True, exist_ok=True)
    (desk / "site_scons/site_tools/mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
    for alias in ("flash", "run", "run"):
        done = warm.run("SCons", "-Q", alias, cwd=desk, status=0)
        assert ("Flashing" if alias == "flash" else "Running") in done.stdout
        assert ("all right" in done.stdout) == (alias == "run")


@pytest.mark.sweep
def test_cmake_flashes_and_runs(desk: Path, tmp_path: Path) -> None:
    lists = desk / "nucleo-f446re/CMakeLists.txt"
    package = warm.run("mlfbuild", "cmake-dir", cwd=desk).stdout.strip()
    text = lists.read_text().replace(
        "include(${MLF_TREE}/mlf.cmake)",
        f"find_package(mlfbuild CONFIG REQUIRED PATHS {package})\nmlfbuild_models(../mlfbuild.yml TARGET nucleo)",
    )
    other = desk / "cmake-nucleo"
    shutil.copytree(lists.parent, other)
    (other / "CMakeLists.txt").write_text(f"{text}mlfbuild_device(nucleo)\n")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={package}/toolchains/cortex-m4.cmake"
    command = f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}"
    subprocess.run(["cmake", "-G", "Ninja", "-S", other, "-B", tmp_path, toolchain, command], check=True)
    for target in ("flash", "run"):
        done = subprocess.run(
            ["cmake", "--build", tmp_path, "--target", target], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("all right" in done.stdout) == (target == "run")


def test_a_command_of_the_user_runs_the_firmware(desk: Path, tmp_path: Path) -> None:
    """Its exit status is that of the firmware."""
    text = PROJECT.partition("    runner:")[0] + '    runner: {{run: [sh, -c, "echo ran; exit $0", "{status}"]}}\n'
    shutil.copy(desk / "models/digits.tflite", tmp_path)
    models = "models:\n  digits: {source: digits.tflite}\n"
    for status in (0, 3):
        (tmp_path / "mlfbuild.yml").write_text(text.format(status=status) + models)
        done = mlfbuild(tmp_path, "run-firmware", "--elf", str(Path(desk, "mlfbuild.yml")))
        assert (done.returncode, done.stdout) == (7 if status else 0, "ran\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (("run-firmware", "--target", "bare"), "firmware-not-chosen", 2),
        (("run-firmware", "--target", "bare", "--elf", "none.elf"), "board-missing", 2),
        (("run-firmware", "--target", "nucleo", "--elf", "none.elf", "--emulator"), "board-missing", 2),
    ],
)
def test_mistakes(desk: Path, words: tuple[str, ...], code: str, status: int) -> None:
    done = mlfbuild(desk, *words, "--format", "json")
    assert done.returncode == status
    assert json.loads(done.stderr.splitlines()[-1])["code"] == code
