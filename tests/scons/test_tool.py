"""The SCons tool as users see it: builders, runs, verification, and error messages."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import SCons
from SCons.Errors import BuildError

import mlfbuild
from mlfbuild.archive import pack_archive
from mlfbuild.core import ProcessFailedError, TimedOutError
from mlfbuild.jobs import TargetJob
from mlfbuild.scons.actions import action
from mlfbuild.targets import CPUS
from mlfbuild.verify import run_image
from support import warm
from support.errors import assert_printed
from support.examples import first_on_push
from support.firmware_repo import FirmwareRepo, tiny_network
from support.libraries import native_library
from support.oracle import tflite_micro_cases
from support.processes import wait_for


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> FirmwareRepo:
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    return FirmwareRepo(tmp_path)


def write_vectors(repo: FirmwareRepo, *, seed: int = 1, wrong: bool = False) -> None:
    """Write vectors of TensorFlow Lite Micro for the model alpha; ``wrong`` changes one element of case 1."""
    inputs = np.random.default_rng(0).integers(-128, 128, (3, 1, 8), np.int8)
    cases = tflite_micro_cases(tiny_network(seed), [[case] for case in inputs])
    outputs = np.stack([case[0] for case in cases])
    if wrong:
        outputs[1, 0, 2] ^= 1
    np.savez(repo.root / "alpha.npz", in0=inputs, out0=outputs)
    if b"vectors" not in repo.read("mlfbuild.yml"):
        repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, vectors: alpha.npz}")
        repo.write("SConstruct", repo.read("SConstruct").decode() + "env.MlfVerify(models)\n")


def test_run_prints_and_keeps_the_output(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    tool("qemu-system-arm")
    repo.write("SConstruct", repo.read("SConstruct").decode() + "env.MlfRun(app, models=models)\n")
    ran = repo.build()
    assert "hello" in ran.output
    assert repo.read("build/m4/app/app.elf.log").strip() == b"hello"
    assert "hello" not in repo.build().output, "an image that did not change is not run again"


def test_failing_firmware_fails_the_build(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    tool("qemu-system-arm")
    repo.write("SConstruct", repo.read("SConstruct").decode() + "env.MlfRun(app, models=models)\n")
    repo.replace("src/main.c", "return 0", "return 7")
    ran = repo.scons(status=2)
    assert "exit status 7 on mps2-an386" in ran.output
    assert "hello" in ran.output
    assert "Traceback" not in ran.output


def test_firmware_that_never_ends_is_stopped(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    tool("qemu-system-arm")
    repo.write("SConstruct", repo.read("SConstruct").decode() + "env.MlfRun(app, models=models)\n")
    repo.replace("src/main.c", "return 0;", 'for (;;) {\n    __asm__ volatile("wfi");\n  }')
    ran = repo.scons("-Q", "MLFTIMEOUT=2", status=2)
    assert ran.output.endswith(
        "scons: *** [build/m4/app/app.elf.log] build/m4/app/app.elf: the run on mps2-an386 did not end within 2 s and "
        "was stopped; let main() return, or set MLFTIMEOUT to more seconds\nhello\n"
    )
    for limit in ("0", "soon", "nan"):
        ran = repo.scons("-Q", "-n", f"MLFTIMEOUT={limit}", status=2)
        assert_printed(ran.output, "invalid-timeout", "MLFTIMEOUT", f"'{limit}'")


def test_the_end_of_endless_output_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "app"
    program.write_text("#!/bin/sh\nseq 20000\nexec sleep 60\n")
    program.chmod(0o755)
    here = TargetJob("pc", CPUS["host"], None, None, tmp_path, ())
    with pytest.raises(TimedOutError) as stopped:
        run_image(program, here, tmp_path / "log", timeout=1)
    lines = stopped.value.output.splitlines()
    assert lines[0] == "(the end of its output, after 108,654 characters)"
    assert lines[1:] == [str(number) for number in range(19961, 20001)]
    assert not (tmp_path / "log").exists()


@pytest.mark.sweep
def test_verify_runs_once_for_the_same_content(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    tool("qemu-system-arm")
    write_vectors(repo)
    assert "alpha: 3 cases right on mps2-an386" in repo.build().output
    assert "cases right" not in repo.build().output
    repo.write_model("beta", seed=8)
    assert "cases right" not in repo.build().output, "alpha and its vectors are as before"
    repo.write_model("alpha", seed=8)
    write_vectors(repo, seed=8)
    assert "alpha: 3 cases right on mps2-an386" in repo.build().output


@pytest.mark.sweep
def test_verify_names_the_element_that_differs_and_fails_every_time(
    repo: FirmwareRepo, tool: Callable[..., str]
) -> None:
    tool("qemu-system-arm")
    write_vectors(repo, wrong=True)
    for _ in range(2):
        ran = repo.scons(status=2)
        assert "alpha: case 1, output 0" in ran.output
        assert "element 2: expected" in ran.output
        assert "Traceback" not in ran.output


def test_verify_without_vectors_stops_scons(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", repo.read("SConstruct").decode() + "env.MlfVerify(models)\n")
    ran = repo.scons(status=2)
    assert_printed(ran.output, "nothing-to-verify", "mlfbuild.yml", "model alpha")


def test_all_mistakes_of_the_project_file_are_reported(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "cortex-m4", "cortex-m5")
    repo.replace("mlfbuild.yml", "beta.tflite}", "beta.tflite, optoins: {}}")
    ran = repo.scons(status=2)
    assert "\nscons: *** mlfbuild.yml:3:13: targets.m4.cpu: " in f"\n{ran.output}" and '"cortex-m5"' in ran.output
    assert "\nmlfbuild.yml:6:" in ran.output
    assert_printed(ran.output, "unknown-key", "models.beta.optoins", '"options"')
    assert f'File "{repo.root}/SConstruct", line 2, in <module>' in ran.output
    assert "Traceback" not in ran.output


def test_missing_target_is_reported(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "\nmodels:", "\n  m7: {cpu: cortex-m7, board: mps2-an500}\nmodels:")
    repo.replace("SConstruct", ', target="m4"', "")
    ran = repo.scons(status=2)
    assert_printed(ran.output, "target-not-chosen", "mlfbuild.yml", "m4, m7;")


def test_the_command_line_selects_a_target(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "\nmodels:", "\n  m7: {cpu: cortex-m7, board: mps2-an500}\nmodels:")
    repo.replace("mlfbuild.yml", "targets: [m4]", "targets: [m4, m7]")
    repo.replace("SConstruct", 'target="m4"', 'target=env.MlfTarget("m4", known=["debug"])')
    assert repo.scons("build/mlf/m7", "target=m7", "debug=1", "MLFNOWAIT=1").status == 0
    assert (repo.root / "build/mlf/m7/mlf.cmake").is_file()
    ran = repo.scons("target=m8")
    assert (ran.status, ran.written) == (2, set())
    assert_printed(ran.output, "unknown-target", "target 'm8'", "m7")
    ran = repo.scons("taget=m7")
    assert (ran.status, ran.written) == (2, set())
    assert_printed(ran.output, "unknown-argument", "scons taget=m7", '"target"')


def test_broken_model_leaves_no_archive(repo: FirmwareRepo) -> None:
    repo.write("models/alpha.tflite", tiny_network(1)[:200])
    ran = repo.scons("-k", status=2)
    assert "[build/mlf/m4/alpha.tar] models/alpha.tflite: tensor 0: an offset" in ran.output
    assert "Traceback" not in ran.output
    assert not (repo.root / "build/mlf/m4/alpha.tar").exists()
    assert (repo.root / "build/mlf/m4/beta/mlf.cmake").is_file(), "-k goes on with the other model"


@pytest.mark.usefixtures("without_ccache")
def test_c_error_in_the_firmware_shows_the_compilers_output(repo: FirmwareRepo) -> None:
    repo.replace("src/main.c", "return 0;", "return nothing;")
    ran = repo.scons(status=2)
    assert "'nothing' undeclared" in ran.output
    assert "Traceback" not in ran.output
    (place,) = set(re.findall(r"^(\S+main\.c):\d+:\d+: error:", ran.output, re.MULTILINE))
    assert (repo.root / place).samefile(repo.root / "src/main.c")


def test_python_without_mlfbuild_gets_two_lines(repo: FirmwareRepo, tmp_path_factory: pytest.TempPathFactory) -> None:
    only_scons = tmp_path_factory.mktemp("packages")
    (only_scons / "SCons").symlink_to(Path(SCons.__file__).parent)
    repo.write("site_scons/site_tools/mlf.py", (files(mlfbuild) / "templates/scons/mlf.py.in").read_bytes())
    repo.build("-n")  # with mlfbuild, the file is the tool
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "SCons", "-Q"],
        cwd=repo.root, env=os.environ | {"PYTHONPATH": str(only_scons)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    reason, place = (ran.stdout + ran.stderr).strip().splitlines()
    assert reason == (
        f"scons: *** mlfbuild is not installed in {sys.executable}; "
        "activate the environment that has mlfbuild, and run scons there"
    )
    assert place.startswith(f'File "{repo.root}/site_scons/site_tools/mlf.py", line ')


def test_only_the_beginning_of_a_path_is_made_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = f"/mnt{tmp_path}/a.c -I{tmp_path}/inc /x{tmp_path}"

    def fail(*_: object) -> None:
        raise ProcessFailedError("test-error", f'"{tmp_path}/b.c": {whole}', place=tmp_path / "c.c", reason="no")

    with pytest.raises(BuildError) as failed:
        action(fail, None).execfunction(target=["app"], source=[], env=None)
    assert failed.value.errstr == f'c.c: no\n"b.c": {whole}'


@pytest.mark.parametrize("missing", first_on_push(["cmake", "ninja", "arm-none-eabi-gcc"]))
def test_missing_tool_is_reported(repo: FirmwareRepo, tmp_path_factory: pytest.TempPathFactory, missing: str) -> None:
    programs = tmp_path_factory.mktemp("bin")
    folders = reversed(os.environ["PATH"].split(os.pathsep))
    for name, program in {path.name: path for folder in folders for path in Path(folder).glob("*")}.items():
        if not name.startswith(missing):
            (programs / name).symlink_to(program)
    ran = repo.scons(env={"PATH": str(programs)}, status=2)
    assert_printed(ran.output, "program-not-found", missing, "apt-get install")
    assert "Traceback" not in ran.output


def test_archive_is_recognised_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "site_scons/site_tools").mkdir(parents=True)
    (tmp_path / "site_scons/site_tools/mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
    (tmp_path / "old.model-lib").write_bytes(pack_archive(native_library("tiny")))
    (tmp_path / "other").write_bytes(pack_archive(native_library("other")))
    (tmp_path / "SConstruct").write_text(
        'env = Environment(tools=["mlf"])\n'
        'env.MlfUnpack("firmware/tiny", env.MlfArchive("out/tiny", "old.model-lib"))\n'
        'env.MlfUnpack("firmware/other", env.MlfArchive("out/other", "other"))\n'
    )
    warm.run("SCons", "-Q", cwd=tmp_path, status=0)
    assert (tmp_path / "out/tiny.tar").read_bytes() == (tmp_path / "old.model-lib").read_bytes()
    assert (tmp_path / "firmware/other/codegen/host/src/other_lib0.c").is_file()


def test_single_steps_without_a_project_file(tmp_path: Path) -> None:
    (tmp_path / "site_scons/site_tools").mkdir(parents=True)
    (tmp_path / "site_scons/site_tools/mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "SConstruct").write_text(
        'env = Environment(tools=["mlf"])\n'
        'archive = env.MlfArchive("out/net", "net.tflite", MLFCPU="cortex-m33")\n'
        'env.MlfUnpack("firmware/net", archive)\n'
    )
    first = warm.run("SCons", "-Q", cwd=tmp_path, status=0)
    assert first.stdout.splitlines() == [
        "Compiling model net.tflite -> out/net.tar",
        "Unpacking out/net.tar -> firmware/net",
    ]
    assert (tmp_path / "firmware/net/codegen/host/src/net_lib0.c").is_file()
    again = warm.run("SCons", "-Q", cwd=tmp_path)
    assert again.stdout == "scons: `.' is up to date.\n"
    (tmp_path / "firmware/net/mine.c").write_text("mine")
    warm.run("SCons", "-Q", "-c", cwd=tmp_path, check=True)
    left = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "firmware").rglob("*")}
    assert left == {"firmware/net", "firmware/net/mine.c"}
    (tmp_path / "net.tflite").write_bytes(tiny_network(2))
    warm.run("SCons", "-Q", cwd=tmp_path, status=0)


@pytest.mark.sweep
def test_interrupted_build_is_completed(repo: FirmwareRepo) -> None:
    for index in range(12):
        repo.write_model(f"more{index}", seed=index)
    models = "".join(f"  more{index}: {{source: models/more{index}.tflite}}\n" for index in range(12))
    repo.replace("mlfbuild.yml", "firmware:", f"{models}firmware:")
    process = subprocess.Popen(
        [sys.executable, "-m", "SCons", "-j", "2"],
        cwd=repo.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    build = repo.root / "build/mlf/m4"
    wait_for(lambda: any(build.glob("*.tar")))
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in output
    assert not list(build.rglob("*.tmp"))
    ran = repo.build()
    assert (repo.root / "build/m4/app/app.elf").is_file(), ran.output
    assert "Compiling" not in repo.build().output


def test_folder_that_scons_would_take_for_a_variable_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "a$b"
    folder.mkdir()
    ran = FirmwareRepo(folder).scons("-Q")
    assert ran.status == 2
    assert_printed(ran.output, "path-unsuited", "scons: *** mlfbuild.yml")
