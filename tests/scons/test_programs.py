"""Models of external compilers in SCons: archives that are out of date are made when SConscripts are read."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import warm
from support.program_repo import ProgramRepo

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
env.MlfModels("mlfbuild.yml", target="pc2")
models = env.MlfModels("mlfbuild.yml", target="pc")
models.apply(env)
env.Program("app", "main.c")
"""
MAIN = """\
#include "tvmgen_alpha.h"
#include "tvmgen_gamma.h"

int main(void)
{
    int8_t x[4] = {1, 2, 3, 4}, y[4];
    struct tvmgen_alpha_inputs inputs = {x};
    struct tvmgen_alpha_outputs outputs = {y};
    return tvmgen_alpha_run(&inputs, &outputs) != 0 || y[3] != 7 || tvmgen_gamma_run(0, 0) == 0;
}
"""


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> ProgramRepo:
    tool("gcc")
    repo = ProgramRepo(tmp_path)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("main.c", MAIN)
    return repo


def scons(repo: ProgramRepo, *arguments: str, status: int = 0) -> str:
    """Run SCons, assert its exit status, and return its output."""
    done = warm.run("SCons", "-Q", *arguments, cwd=repo.root, status=status)
    return done.stdout + done.stderr


@pytest.mark.sweep
def test_changes_run_only_affected_programs(repo: ProgramRepo) -> None:
    scons(repo, "-n")
    assert repo.ran() == [], "who only looks runs nothing"
    output = scons(repo, "-j", "2")
    assert repo.ran() == ["alpha host", "beta host", "tvm"]
    assert "mlfbuild: compile alpha for pc2\n" in output
    assert subprocess.run([repo.root / "app"], check=False).returncode == 0

    for path in ("models/alpha.bin", "tools/export.py", "mlfbuild.yml"):
        os.utime(repo.root / path, (time.time() + 60, time.time() + 60))
    assert scons(repo) == "scons: `.' is up to date.\n"
    assert repo.ran() == []

    repo.write("data/labels.txt", "maybe\n")
    output = scons(repo, "--debug=explain")
    assert repo.ran() == ["alpha host"]
    assert "rebuilding `build/mlf/pc2/alpha.tar' because `data/labels.txt' changed" in output
    assert "Unpacking" not in output, "the archive is the same"

    repo.write_model("alpha", "more")
    output = scons(repo)
    assert repo.ran() == ["alpha host"]
    assert (repo.root / "build/mlf/pc/alpha/codegen/host/src/more_lib0.c").is_file()
    assert "more_lib0" in output
    assert "gamma_lib0" not in output

    repo.use_tvm("0.9.0")
    scons(repo)
    assert repo.ran() == ["alpha host", "tvm"], "tools/python is an input of alpha, too"
    (repo.root / "build/mlf/pc/beta.tar").write_bytes(b"edited")
    scons(repo)
    assert repo.ran() == [], "the archive of the other target is as good"
    assert scons(repo) == "scons: `.' is up to date.\n"

    scons(repo, "-c")
    assert repo.ran() == []
    assert not list(repo.root.glob("build/mlf/*/*.tar"))
    assert not list(repo.root.glob("build/mlf/*/.*.key"))


def test_failing_program_is_reported_in_one_line_with_its_output(repo: ProgramRepo) -> None:
    repo.write("tools/export.py", "import sys\nprint('reading')\nsys.exit('no operator Foo')\n")
    output = scons(repo, status=2)
    assert f"scons: *** alpha: {sys.executable} tools/export.py" in output
    assert ": failed with exit status 1; see what it printed, below\nreading\nno operator Foo\n" in output
    assert "Traceback" not in output
    assert not list(repo.root.glob("build/mlf/*/alpha.tar"))


def test_one_archive_by_tvm_without_a_project_file(repo: ProgramRepo) -> None:
    repo.write(
        "SConstruct",
        'env = Environment(tools=["mlf"], MLFCOMPILER="tvm", MLFPYTHON="tools/python", MLFCPU="cortex-m4")\n'
        'env.MlfArchive("gamma.tar", "models/gamma.tflite", MLFOPTIONS={"opt-level": 1})\n',
    )
    scons(repo)
    assert repo.ran() == ["tvm"]
    assert scons(repo) == "scons: `.' is up to date.\n"
    assert repo.ran() == []
