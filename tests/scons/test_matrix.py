"""Many models and targets in one SConstruct: each model is compiled once, and parallel builds give the same bytes."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.firmware_repo import FirmwareRepo, Ran

PROJECT = """\
mlfbuild: 1
targets:
  kit: {cpu: cortex-m4, board: mps2-an386}
  product: {cpu: cortex-m4}
  small: {cpu: cortex-m0plus}
models:
  alpha: {source: models/alpha.tflite}
  beta: {source: models/beta.tflite, targets: [kit, product]}
"""
SCONSTRUCT = """\
env = Environment(tools=["mlf"])
for target in ("kit", "product", "small"):
    env.Alias(target, env.MlfModels("mlfbuild.yml", target=target))
"""

LINKED = """\
for target in ("kit", "product", "small"):
    core = ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
    core = ["-mcpu=cortex-m0plus"] if target == "small" else core
    env = Environment(tools=["default", "mlf"], CC="arm-none-eabi-gcc", AR="arm-none-eabi-ar")
    env.Append(CCFLAGS=[*core, "-mthumb"], LINKFLAGS=[*core, "-mthumb", "--specs=nosys.specs"])
    env.MlfModels("mlfbuild.yml", target=target).apply(env)
    env.Program(f"build/{target}/app", env.Object(f"build/{target}/main.o", "src/main.c"))
"""
MAIN = """\
#include "tvmgen_alpha.h"

int main(void) { return tvmgen_alpha_run(0, 0) == 99; }
"""


@pytest.fixture
def repo(tmp_path: Path) -> FirmwareRepo:
    """A repository that has not been built yet."""
    repo = FirmwareRepo(tmp_path)
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("SConstruct", SCONSTRUCT)
    return repo


def made(ran: Ran, what: str) -> list[str]:
    return sorted(re.findall(rf"^{what} \S+ -> (\S+)$", ran.output, re.MULTILINE))


def contents(repo: FirmwareRepo) -> dict[str, str]:
    """Return the hash of every file in the build folder, without the keys of archives, which say how long it took."""
    files = [path for path in (repo.root / "build").rglob("*") if path.is_file() and path.suffix != ".key"]
    return {path.relative_to(repo.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_each_model_is_compiled_once_for_a_cpu(repo: FirmwareRepo) -> None:
    ran = repo.build("-j4")
    mlf = "build/mlf"
    assert made(ran, "Compiling model") == [f"{mlf}/kit/alpha.tar", f"{mlf}/kit/beta.tar", f"{mlf}/small/alpha.tar"]
    assert made(ran, "Copying") == [f"{mlf}/product/alpha.tar", f"{mlf}/product/beta.tar"]
    assert len(made(ran, "Unpacking")) == 5
    for name in ("alpha", "beta"):
        assert repo.read(f"{mlf}/kit/{name}.tar") == repo.read(f"{mlf}/product/{name}.tar")
    assert "building" not in repo.build("--debug=explain", "-Q").output


def test_changed_model_is_built_for_every_target(repo: FirmwareRepo) -> None:
    repo.build()
    repo.write_model("alpha", seed=7)
    ran = repo.build("--debug=explain")
    assert made(ran, "Compiling model") == ["build/mlf/kit/alpha.tar", "build/mlf/small/alpha.tar"]
    assert made(ran, "Copying") == ["build/mlf/product/alpha.tar"]
    reasons = re.findall(r"rebuilding `([^']*)' because (.*)", ran.output)
    assert sorted(reasons) == [
        ("build/mlf/kit/alpha.tar", "`models/alpha.tflite' changed"),
        ("build/mlf/kit/alpha/RECORD.json", "`build/mlf/kit/alpha.tar' changed"),
        ("build/mlf/product/alpha.tar", "`build/mlf/kit/alpha.tar' changed"),
        ("build/mlf/product/alpha/RECORD.json", "`build/mlf/product/alpha.tar' changed"),
        ("build/mlf/small/alpha.tar", "`models/alpha.tflite' changed"),
        ("build/mlf/small/alpha/RECORD.json", "`build/mlf/small/alpha.tar' changed"),
    ]


def test_single_target_needs_only_shared_archives(repo: FirmwareRepo) -> None:
    ran = repo.build("product")
    assert made(ran, "Compiling model") == ["build/mlf/kit/alpha.tar", "build/mlf/kit/beta.tar"]
    assert {Path(tree).parts[2] for tree in made(ran, "Unpacking")} == {"product"}


def build_again(repo: FirmwareRepo, times: int) -> None:
    """Build archives, trees, objects, libraries and images from scratch in parallel, and compare their bytes."""
    repo.write("SConstruct", LINKED)
    repo.write("src/main.c", MAIN)
    repo.build("-j8")
    first = contents(repo)
    kinds = {Path(name).suffix or Path(name).name for name in first}
    assert {".tar", ".json", ".c", ".h", ".o", ".a", "app"} <= kinds
    for _ in range(times):
        shutil.rmtree(repo.root / "build")
        (repo.root / ".sconsign.dblite").unlink()
        repo.build("-j8")
        assert contents(repo) == first


@pytest.mark.sweep
def test_eight_jobs_give_the_same_bytes(repo: FirmwareRepo, tool: Callable[[str], str]) -> None:
    tool("arm-none-eabi-gcc")
    build_again(repo, 2)


@pytest.mark.sweep
def test_eight_jobs_give_the_same_bytes_fifty_times(repo: FirmwareRepo, tool: Callable[[str], str]) -> None:
    tool("arm-none-eabi-gcc")
    build_again(repo, 49)
