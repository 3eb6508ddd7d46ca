"""The rebuild matrix of ``models.apply(env)`` and ``Program``: changes rebuild exactly what depends on them.

``test_rebuild.py`` has the same rows for firmware that CMake builds.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.examples import first_on_push
from support.firmware_repo import TWO_MODELS, FirmwareRepo, Ran, assert_nothing_ran
from support.snapshot import keep

SCONSTRUCT = """\
flags = {}
exec(open("toolchain.py").read(), flags)
env = Environment(tools=["default", "mlf"], CCFLAGS=flags["CCFLAGS"], LINKFLAGS=["extra.ld"])
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
app = env.Program("build/app", env.Object("build/main.o", "src/main.c"))
env.Depends(app, "extra.ld")
"""
MAIN = """\
#include "app.h"

int main(void) { return tvmgen_alpha_run(0, 0) == STATUS; }
"""
APP_H = """\
#include "tvmgen_alpha.h"
#define STATUS -1
"""
APP = "build/app"
LINKED = f"gcc {APP}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> FirmwareRepo:
    tool("gcc")
    repo = FirmwareRepo(tmp_path_factory.mktemp("built"))
    (repo.root / "CMakeLists.txt").unlink()
    repo.write("mlfbuild.yml", TWO_MODELS)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("toolchain.py", 'CCFLAGS = ["-O1"]\n')
    repo.write("extra.ld", "/* nothing to add */\n")
    repo.write("src/main.c", MAIN)
    repo.write("src/app.h", APP_H)
    ran = repo.build("-Q")
    assert len(ran.steps) == 13, (
        "2 archives, 2 trees, their fragment, 3 objects, 2 libraries, each with index, a program"
    )
    keep(repo.root)
    return repo


def made_of(model: str, *, compiled: bool = True) -> list[str]:
    """Return the steps that make a model's library, in the order of SCons."""
    folder, library = "build/mlf.lib/pc", f"build/mlf.lib/pc/libmlf_{model}.a"
    archive = [f"Compiling model models/{model}.tflite -> build/mlf/pc/{model}.tar"] if compiled else []
    return [
        *archive,
        f"Unpacking build/mlf/pc/{model}.tar -> build/mlf/pc/{model}",
        f"gcc {folder}/{model}/{model}_lib0.o",
        f"ar {library}",
        f"ranlib {library}",
    ]


def rebuild(repo: FirmwareRepo, env: dict[str, str] | None = None) -> Ran:
    """Build, and compare the written files with the output of SCons."""
    ran = repo.scons("-Q", "--debug=explain", env=env, status=0)
    made = {path for path in ran.written if path.endswith((".tar", ".o", ".a", "/app"))}
    trees = {f"build/mlf/pc/{path.split('/')[0]}" for path in ran.written_below("build/mlf/pc/") if "/" in path}
    said = {path.removesuffix("/RECORD.json") for path in ran.reasons} - {"build/mlf/pc/mlf.cmake"}
    assert made | trees == said
    return ran


# Nothing -------------------------------------------------------------------------------------------------------------


def test_nothing_changed(repo: FirmwareRepo) -> None:
    assert_nothing_ran(rebuild(repo))


def test_touch(repo: FirmwareRepo) -> None:
    later = time.time() + 60
    for name in ("models/alpha.tflite", "mlfbuild.yml", "SConstruct", "src/main.c", "extra.ld", "toolchain.py"):
        os.utime(repo.root / name, (later, later))
    assert_nothing_ran(rebuild(repo))


def test_a_comment_in_the_project_file(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", "# a comment\n" + TWO_MODELS)
    assert_nothing_ran(rebuild(repo))


# Models --------------------------------------------------------------------------------------------------------------


def test_one_models_options(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, placement: {params: .rodata.elsewhere}}")
    ran = rebuild(repo)
    assert sorted(ran.steps) == sorted([*made_of("alpha"), LINKED])
    assert ".rodata.elsewhere" in ran.reasons["build/mlf/pc/alpha.tar"], "SCons names the settings that are new"
    assert ran.reasons["build/mlf.lib/pc/alpha/alpha_lib0.o"].endswith("alpha_lib0.c' changed")
    assert ran.reasons[APP] == "`build/mlf.lib/pc/libmlf_alpha.a' changed"


def test_weights_of_one_model(repo: FirmwareRepo) -> None:
    repo.write_model("alpha", seed=7)
    ran = rebuild(repo)
    assert sorted(ran.steps) == sorted([*made_of("alpha"), LINKED]), "main.c is not compiled: the header is the same"
    assert ran.reasons["build/mlf/pc/alpha.tar"] == "`models/alpha.tflite' changed"
    assert ran.reasons["build/mlf/pc/alpha/RECORD.json"] == "`build/mlf/pc/alpha.tar' changed"
    changed = ran.written_below("build/mlf/pc/alpha/")
    assert "codegen/host/src/alpha_lib0.c" in changed and "mlf.cmake" not in changed
    assert not [path for path in changed if path.endswith(".h")], "neither the interface nor kernels changed"


@pytest.mark.sweep
def test_a_model_is_added_and_removed(repo: FirmwareRepo) -> None:
    repo.write_model("gamma", seed=3)
    repo.write("mlfbuild.yml", TWO_MODELS + "  gamma: {source: models/gamma.tflite}\n")
    ran = rebuild(repo)
    fragment = "Writing build/mlf/pc/mlf.cmake"
    assert set(ran.steps) - {"gcc build/main.o"} == {*made_of("gamma"), fragment, LINKED}
    assert "libmlf_gamma.a' is a new dependency" in ran.reasons[APP]
    assert_nothing_ran(rebuild(repo))
    repo.write("mlfbuild.yml", TWO_MODELS)
    ran = rebuild(repo)
    assert set(ran.steps) - {"gcc build/main.o"} == {fragment, LINKED}
    assert "libmlf_gamma.a' is no longer a dependency" in ran.reasons[APP]
    assert not (repo.root / "build/mlf/pc/gamma").exists()
    assert_nothing_ran(rebuild(repo))


# mlfbuild itself -----------------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_changed_generator_with_the_same_output(repo: FirmwareRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    source = package_copy / "mlfbuild/native/__init__.py"
    source.write_text(source.read_text() + "\n# a comment that changes no output\n")
    ran = repo.scons("-Q", "--debug=explain", env=path, status=0)
    archives = {f"build/mlf/pc/{model}.tar" for model in ("alpha", "beta")}
    steps = {*archives, *(f"build/mlf/pc/{name}" for name in ("alpha/RECORD.json", "beta/RECORD.json", "mlf.cmake"))}
    assert set(ran.reasons) == steps, "every step depends on the hash of the package"
    keys = {f"build/mlf/pc/.{model}.tar.key" for model in ("alpha", "beta")}
    assert ran.written == archives | keys, "trees keep files with the right content, and nothing is compiled or linked"
    assert_nothing_ran(rebuild(repo, path))


@pytest.mark.sweep
def test_a_kernel_header(repo: FirmwareRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    header = package_copy / "mlfbuild/native/kernels/portable/numbers/compiler.h"
    header.write_text(header.read_text() + "/* one line more */\n")
    ran = rebuild(repo, path)
    assert {"gcc build/mlf.lib/pc/alpha/alpha_lib0.o", "gcc build/mlf.lib/pc/beta/beta_lib0.o"} <= set(ran.steps)
    assert (repo.root / "build/mlf/pc/alpha/codegen/host/src/mlfbuild/compiler.h").read_bytes() == header.read_bytes()
    assert_nothing_ran(rebuild(repo, path))


# Firmware ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "linked"),
    [
        ("src/main.c", "== STATUS", "!= STATUS", True),
        ("src/main.c", "== STATUS", "/* still */ == STATUS", False),
        ("src/app.h", "-1", "2", True),
    ],
    ids=["source", "comment", "header"],
)
def test_a_firmware_source_or_header(repo: FirmwareRepo, name: str, old: str, new: str, linked: bool) -> None:
    repo.replace(name, old, new)
    ran = rebuild(repo)
    assert ran.reasons["build/main.o"] == f"`{name}' changed"
    assert ran.steps == ["gcc build/main.o", *([LINKED] if linked else [])]


def test_the_linker_script(repo: FirmwareRepo) -> None:
    repo.write("extra.ld", "PROVIDE(elsewhere = 4);\n")
    ran = rebuild(repo)
    assert ran.steps == [LINKED]
    assert ran.reasons == {APP: "`extra.ld' changed"}


def test_toolchain_flags(repo: FirmwareRepo) -> None:
    repo.write("toolchain.py", 'CCFLAGS = ["-O2", "-g"]\n')
    ran = rebuild(repo)
    compiled = {step for step in ran.steps if step.endswith(".o")}
    assert compiled == {f"gcc {path}" for path in ran.reasons if path.endswith(".o")}
    assert len(compiled) == 3 and LINKED in ran.steps
    assert "the contents of the build action changed" in ran.reasons["build/mlf.lib/pc/alpha/alpha_lib0.o"]
    assert not [step for step in ran.steps if step.startswith(("Compiling", "Unpacking", "Writing"))], "no model"


# Trees ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", first_on_push(["deleted", "edited", "record deleted"]))
def test_unpacked_file_is_restored_and_nothing_is_compiled(repo: FirmwareRepo, damage: str) -> None:
    tree = repo.root / "build/mlf/pc/alpha"
    victim = tree / ("RECORD.json" if damage == "record deleted" else "codegen/host/src/alpha_lib0.c")
    good = victim.read_bytes()
    if damage == "edited":
        victim.write_bytes(good + b"/* by hand */\n")
    else:
        victim.unlink()
    ran = rebuild(repo)
    reason = "it doesn't exist" if damage == "record deleted" else "AlwaysBuild() is specified"
    assert ran.reasons == {"build/mlf/pc/alpha/RECORD.json": reason}
    assert ran.steps == ["Unpacking build/mlf/pc/alpha.tar -> build/mlf/pc/alpha"]
    assert victim.read_bytes() == good
    assert_nothing_ran(rebuild(repo))


def test_clean_keeps_files_of_the_user(repo: FirmwareRepo) -> None:
    mine = repo.write("build/mlf/pc/alpha/codegen/host/src/notes.txt", "mine")
    assert repo.scons("-c").status == 0
    assert [path for path in (repo.root / "build").rglob("*") if path.is_file()] == [mine]
    for name in ("src/main.c", "mlfbuild.yml", "models/alpha.tflite", "extra.ld"):
        assert (repo.root / name).is_file()
