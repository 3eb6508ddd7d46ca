"""A committed tree builds and runs without mlfbuild and Python packages: with CMake, Make, SCons and RT-Thread."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run as mlfbuild
from mlfbuild.jobs.tree import tree_damage
from support.errors import assert_printed
from support.firmware_repo import tiny_network
from support.oracle import tflite_micro_run
from support.tree_firmware import CLEAN, MODELS, assert_right, files, make_repo, run, scons


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """The project with its committed tree, without networks, project file and build folder."""
    tool("arm-none-eabi-gcc", "qemu-system-arm")
    return make_repo(tmp_path_factory.mktemp("tree") / "repo", "--with-verify")


@pytest.fixture(autouse=True)
def _back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


@pytest.fixture
def work(repo: Path, tmp_path: Path) -> Path:
    """A copy of the repository in another folder."""
    return Path(shutil.copytree(repo, tmp_path / "moved"))


def test_scons_of_these_tests_cannot_import_mlfbuild(work: Path) -> None:
    (work / "SConstruct").write_text("import importlib.util as u; print('found', u.find_spec('mlfbuild'))\n")
    assert "found None" in scons(work, "-Q")


def test_cmake(work: Path, tool: Callable[..., str]) -> None:
    tool("ninja")
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=arm-none-eabi.cmake"
    run(work, tool("cmake"), "-B", "build", "-G", "Ninja", toolchain)
    run(work, tool("cmake"), "--build", "build")
    assert_right(work / "build/app.elf")


@pytest.fixture(scope="module")
def elsewhere(repo: Path, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """A folder with only the test firmware of ``alpha``, built without Python, and its vectors."""
    second = Path(shutil.copytree(repo, tmp_path_factory.mktemp("second") / "repo"))
    run(second, tool("cmake"), "-B", "build", "-G", "Ninja", "-DCMAKE_TOOLCHAIN_FILE=arm-none-eabi.cmake")
    run(second, tool("cmake"), "--build", "build", "--target", "mlf_alpha_verify", "--target", "app")
    third = tmp_path_factory.mktemp("third")
    shutil.copy(second / "build/alpha_verify.elf", third)
    shutil.copy(second / "build/app.elf", third)
    inputs = np.random.default_rng(3).integers(-128, 128, (4, 1, 8), np.int8)
    outputs = np.stack([tflite_micro_run(tiny_network(0), [case])[0] for case in inputs])
    np.savez(third / "alpha.npz", in0=inputs, out0=outputs)
    outputs[2].flat[1] ^= 1
    np.savez(third / "wrong.npz", in0=inputs, out0=outputs)
    return third


def test_image_is_verified_without_project_or_tree(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = files(elsewhere)
    command = ["-C", str(elsewhere), "verify", "--elf", "alpha_verify.elf"]
    assert mlfbuild([*command, "--vectors", "alpha.npz", "--board", "mps3-an547"]) == 0
    assert capfd.readouterr().out.startswith("alpha: 4 cases right on mps3-an547, ")
    assert mlfbuild([*command, "--vectors", "alpha.npz", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["passed"], report["module"], report["cases"]) == (True, "alpha", 4) and report["stack_used"] > 0
    assert mlfbuild([*command, "--vectors", "wrong.npz"]) == 1
    captured = capfd.readouterr()
    assert captured.out.startswith("alpha: case 2, output 0 (t3), element 1: expected ")
    assert_printed(captured.err, "verify-failed", "mlfbuild: verify: alpha_verify.elf")
    assert files(elsewhere) == before


@pytest.mark.parametrize(
    ("arguments", "status", "code", "place"),
    [
        ("--elf app.elf", 2, "vectors-missing", "--elf app.elf"),
        ("--elf app.elf --vectors alpha.npz", 5, "not-test-firmware", "app.elf"),
        ("--elf alpha.npz --vectors alpha.npz", 5, "not-an-elf-image", "alpha.npz"),
        ("--elf none.elf --vectors alpha.npz", 5, "no-such-input", "none.elf"),
        ("--elf alpha_verify.elf --vectors alpha.npz --board mps2-an386", 2, "image-for-another-board",
         "alpha_verify.elf"),
        ("--elf alpha_verify.elf --vectors alpha.npz --board mps3-an574", 2, "unknown-board", "mps3-an574"),
        ("--elf alpha_verify.elf --vectors alpha.npz --model alpha", 2, "option-not-applicable", "--model"),
        ("--vectors alpha.npz", 2, "option-needs-another", "--vectors"),
    ],
)  # fmt: skip
def test_files_that_are_not_test_firmware_are_rejected(
    elsewhere: Path, capfd: pytest.CaptureFixture[str], arguments: str, status: int, code: str, place: str
) -> None:
    assert mlfbuild(["-C", str(elsewhere), "verify", *arguments.split(), "--format", "json"]) == status
    captured = capfd.readouterr()
    error = json.loads(captured.err)
    assert (captured.out, error["code"], error["place"]) == ("", code, place)


def test_make(work: Path, tool: Callable[..., str]) -> None:
    make, before = tool("make"), files(work / "models")
    run(work, make, "-j2")
    assert_right(work / "build/make/app.elf")
    assert files(work / "models") == before, "objects go outside the tree"
    assert "up to date" in run(work, make), "the first rule is still the makefile's own"
    header = work / "models/alpha/codegen/host/include/tvmgen_alpha.h"
    os.utime(header)
    again = run(work, make)
    assert "alpha_lib0.c.o" in again and "libmlf_alpha.a" in again and "main.o" in again
    assert "-o build/make/mlf/beta" not in again and "-o build/make/mlf/board" not in again


def test_make_with_flags_in_another_variable(work: Path, tool: Callable[..., str]) -> None:
    makefile = (
        "CC := arm-none-eabi-gcc\n"
        "TGT_CFLAGS := -mcpu=cortex-m55 -mthumb -mfloat-abi=hard\n"
        "include models/mlf.mk\n"
        "all: $(MLF_LIBRARIES)\n"
    )
    (work / "own.mk").write_text(makefile)
    command = [tool("make"), "-f", "own.mk", "all"]
    refused = subprocess.run(command, cwd=work, env=CLEAN, text=True, capture_output=True)
    assert refused.returncode == 2 and "#error" in refused.stderr and "-mcpu=cortex-m55 -mthumb" in refused.stderr
    (work / "own.mk").write_text(makefile.replace("include", "MLF_CFLAGS = $(TGT_CFLAGS)\ninclude"))
    run(work, *command)


@pytest.mark.parametrize(
    ("flags", "compiles"),
    [
        ("-mcpu=cortex-m0 -mthumb", True),  # the portable C of the kernels
        ("-mcpu=cortex-m4 -mthumb", True),
        ("-mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-d16", True),
        ("-mcpu=cortex-a9", False),
        ("-mcpu=cortex-r5 -mthumb", False),
        ("", False),
    ],
)
def test_other_arm_profiles_are_rejected(repo: Path, flags: str, compiles: bool) -> None:
    folder = repo / "models/alpha/codegen/host"
    source = folder / "src/alpha_lib0.c"
    command = ["arm-none-eabi-gcc", *flags.split(), "-I", folder / "include", "-fsyntax-only", source]
    assert (subprocess.run(command, capture_output=True).returncode == 0) is compiles


def test_make_removes_a_deleted_object_from_its_library(work: Path, tool: Callable[..., str]) -> None:
    make, fragment = tool("make"), work / "models/alpha/mlf.mk"
    library = work / "build/make/mlf/libmlf_alpha.a"
    source = "$(MLF_DIR_alpha)/codegen/host/src/alpha_lib0.c"
    (work / "models/alpha/codegen/host/src/more.c").write_text("int mlf_more;\n")
    text = fragment.read_text()
    fragment.write_text(text.replace(source, f"{source} $(MLF_DIR_alpha)/codegen/host/src/more.c"))
    run(work, make)
    assert "more.c.o" in run(work, "ar", "t", library)
    fragment.write_text(text)
    os.utime(fragment, (library.stat().st_mtime + 1,) * 2)
    again = run(work, make)
    assert run(work, "ar", "t", library).split() == ["alpha_lib0.c.o"]
    assert " -c " not in again and "app.elf" in again, "nothing is compiled"


def test_make_uses_no_undefined_variables(work: Path, tool: Callable[..., str]) -> None:
    text = run(work, tool("make"), "-n", "-rR", "--warn-undefined-variables")
    assert "warning" not in text and "beta_lib0.c" in text


def test_make_with_user_defined_rules(work: Path, tool: Callable[..., str]) -> None:
    makefile = (
        "include models/mlf.mk\n"
        "OBJECTS := $(addprefix out/,$(notdir $(MLF_SOURCES:.c=.o)))\n"
        "vpath %.c $(sort $(dir $(MLF_SOURCES)))\n"
        "all: $(OBJECTS)\n"
        "out/%.o: %.c ; @mkdir -p out; arm-none-eabi-gcc -mcpu=cortex-m55 $(MLF_INCLUDES_alpha) $(MLF_INCLUDES_beta) "
        "-c $< -o $@\n"
    )
    (work / "own.mk").write_text(makefile)
    run(work, tool("make"), "-f", "own.mk", "all")
    assert files(work / "out") == {"alpha_lib0.o", "beta_lib0.o"}


def test_scons(work: Path) -> None:
    before = files(work / "models")
    scons(work, "-Q", "-j2")
    assert_right(work / "build/scons/app.elf")
    assert files(work / "models") == before, "objects go to the variant folder"
    assert "is up to date" in scons(work, "-Q")
    script = work / "models/board/mlf_board.ld"
    script.write_text(script.read_text() + "/* changed */\n")
    assert "app.elf" in scons(work, "-Q")


def test_scons_does_not_change_the_environment(work: Path) -> None:
    text = (work / "SConstruct").read_text()
    at = text.index("models = ")
    watched = "before = env.Dump()\n" + text[at:].replace(
        "env.VariantDir", "assert env.Dump() == before\nenv.VariantDir"
    )
    (work / "SConstruct").write_text(text[:at] + watched)
    scons(work, "-Q", "-n")


def test_rt_thread(work: Path) -> None:
    bsp = work / "rt-thread"
    (bsp / "applications").mkdir()
    shutil.copy(work / "src/main.c", bsp / "applications")
    shutil.copytree(work / "models", bsp / "packages/models")
    before = files(bsp / "packages/models")
    scons(bsp, "-Q")
    assert_right(bsp / "build/app.elf")
    assert files(bsp / "packages/models") == before


def test_builds_do_not_change_the_tree(repo: Path) -> None:
    damage = [line for folder in ("", *MODELS) for line in tree_damage(repo / "models" / folder)]
    assert damage == []
    text = "".join(path.read_text(errors="replace") for path in (repo / "models").rglob("*") if path.is_file())
    assert str(repo) not in text and sys.prefix not in text


def test_make_rejects_paths_with_spaces(work: Path, tool: Callable[..., str]) -> None:
    (work / "models").rename(work / "my models")
    (work / "own.mk").write_text("include my\\ models/mlf.mk\nall: ;\n")
    done = subprocess.run([tool("make"), "-f", "own.mk"], cwd=work, text=True, capture_output=True)
    assert done.returncode == 2
    assert "the path of its folder has spaces, which make does not support" in done.stderr
