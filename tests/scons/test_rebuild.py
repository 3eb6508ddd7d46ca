"""The rebuild matrix of ``MlfFirmware``: changes rebuild only what depends on them, by the output of SCons and Ninja.

``test_rebuild_program.py`` has the same rows for programs that SCons links itself.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import warm
from support.examples import first_on_push
from support.firmware_repo import SCONSTRUCT, FirmwareRepo
from support.snapshot import keep

ELF = "build/m4/app/app.elf"
TREES = "build/mlf/m4/"
LINKED = "Linking C executable app.elf"
CONFIGURED = "Re-running CMake..."


@dataclass(frozen=True)
class Rebuilt:
    """The results of one build, as SCons and Ninja print them; they are compared with the written files."""

    reasons: dict[str, str]
    """Of SCons, by the place below the folder of the trees; the image is left out, as Ninja is always asked."""
    ninja: list[str]
    """What Ninja did; without libraries, which follow from objects."""
    written: set[str]

    @property
    def objects(self) -> set[str]:
        """The objects that were compiled."""
        return {step.rpartition(" ")[2] for step in self.ninja if step.startswith("Building")}

    @property
    def linked(self) -> bool:
        """Whether the image was linked."""
        return LINKED in self.ninja


def rebuild(repo: FirmwareRepo, env: dict[str, str] | None = None) -> Rebuilt:
    """Build, and compare the written files with the output of SCons and Ninja."""
    ran = repo.scons("-Q", "--debug=explain", env=env, status=0)
    reasons = {path.removeprefix(TREES): why for path, why in ran.reasons.items() if path != ELF}
    ninja = [step for step in ran.steps if step.startswith(("Building", "Linking C executable", "Re-running"))]
    rebuilt = Rebuilt(reasons, ninja, ran.written)
    below = ran.written_below(TREES)
    assert {path for path in below if path.endswith(".tar")} == {name for name in reasons if name.endswith(".tar")}
    folders = {path.split("/")[0] for path in below if "/" in path}
    assert folders - {"board"} == {name.split("/")[0] for name in reasons if name.endswith("/RECORD.json")}
    assert {Path(path).name for path in ran.written if path.endswith(".obj")} == rebuilt.objects
    assert (ELF in ran.written) == rebuilt.linked
    return rebuilt


def assert_nothing_ran(ran: Rebuilt) -> None:
    assert (ran.reasons, ran.ninja, ran.written) == ({}, [], set())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> FirmwareRepo:
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    repo = FirmwareRepo(tmp_path_factory.mktemp("built"))
    repo.write("SConstruct", SCONSTRUCT.replace('"mlf"])', '"mlf"], MLFVERBOSE=True)'))
    repo.build()
    assert (repo.root / ELF).is_file()
    keep(repo.root)
    return repo


# Nothing -------------------------------------------------------------------------------------------------------------


def test_nothing_changed(repo: FirmwareRepo) -> None:
    ran = repo.build("-Q", "--debug=explain")
    assert ran.reasons == {ELF: "AlwaysBuild() is specified"}
    assert ran.output.splitlines()[1:] == ["ninja: no work to do.", "scons: `.' is up to date."]
    assert not ran.written
    named = repo.build("-Q", ELF)
    assert named.output.splitlines() == ["ninja: no work to do.", f"scons: `{ELF}' is up to date."]


def test_alternating_with_the_command_rebuilds_nothing(repo: FirmwareRepo) -> None:
    done = ["ninja: no work to do.", "scons: `.' is up to date."]
    (repo.root / "src/deep").mkdir()
    for folder in (".", "src/deep"):
        assert command_build(repo, folder) == set(), "the project file is found above, and its paths are the same"
    ran = repo.build("-Q")
    assert (ran.output.splitlines(), ran.written) == (done, set())
    repo.write_model("alpha", seed=7)
    written = command_build(repo)
    made = {Path(path).name for path in written if path.endswith((".tar", ".obj", ".elf"))}
    assert made == {"alpha.tar", "alpha_lib0.c.obj", "app.elf"}
    ran = repo.build("-Q")
    assert (ran.output.splitlines(), ran.written) == (done, set())
    repo.write_model("alpha", seed=8)
    assert f"{TREES}alpha.tar" in repo.build("-Q").written
    assert command_build(repo) == set()


@pytest.mark.sweep
def test_scons_adopts_a_build_of_the_command(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc")
    repo = FirmwareRepo(tmp_path)
    assert {f"{TREES}alpha.tar", ELF} < command_build(repo)
    ran = repo.build("-Q")
    assert (ran.output.splitlines(), ran.written) == (["scons: `.' is up to date."], set())
    (tmp_path / ".sconsign.dblite").unlink()
    repo.write_model("alpha", seed=7)
    ran = repo.build("-Q")
    assert [line for line in ran.output.splitlines() if not line.startswith("mlfbuild: ")] == [
        f"Compiling model models/alpha.tflite -> {TREES}alpha.tar",
        f"Unpacking {TREES}alpha.tar -> {TREES}alpha",
        f"Building firmware {ELF}",
    ]


def command_build(repo: FirmwareRepo, folder: str = ".") -> set[str]:
    """Run ``mlfbuild build`` in ``folder`` of the repository; return the files that it wrote."""
    before = repo.snapshot()
    warm.run("mlfbuild", "build", "-q", cwd=repo.root / folder, check=True)
    return {path for path, time in repo.snapshot().items() if before.get(path) != time}


def test_touch(repo: FirmwareRepo) -> None:
    later = time.time() + 60
    for name in ("models/alpha.tflite", "mlfbuild.yml", "SConstruct"):
        os.utime(repo.root / name, (later, later))
    assert_nothing_ran(rebuild(repo))


def test_a_comment_in_the_project_file(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", "# a comment\n" + repo.read("mlfbuild.yml").decode())
    assert_nothing_ran(rebuild(repo))


# Models --------------------------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_one_models_options(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, placement: {params: .rodata.elsewhere}}")
    ran = rebuild(repo)
    assert list(ran.reasons) == ["alpha.tar", "alpha/RECORD.json"]
    assert ".rodata.elsewhere" in str(ran.reasons), "SCons names the settings that are new"
    assert ran.ninja == ["Building C object alpha_lib0.c.obj", LINKED]


def test_weights_of_one_model(repo: FirmwareRepo) -> None:
    before = repo.snapshot()
    repo.write_model("alpha", seed=7)
    ran = rebuild(repo)
    assert ran.reasons == {
        "alpha.tar": "`models/alpha.tflite' changed",
        "alpha/RECORD.json": "`build/mlf/m4/alpha.tar' changed",
    }
    assert ran.ninja == ["Building C object alpha_lib0.c.obj", LINKED]
    changed = {path.removeprefix(f"{TREES}alpha/") for path in ran.written if f"{TREES}alpha/" in path}
    assert "codegen/host/src/alpha_lib0.c" in changed
    assert "mlf.cmake" not in changed and "mlf.mk" not in changed
    assert not [path for path in changed if path.endswith(".h")], "neither the interface nor kernels changed"
    assert {path for path in before if path.startswith(f"{TREES}beta")}.isdisjoint(ran.written)


@pytest.mark.sweep
def test_a_model_is_added(repo: FirmwareRepo) -> None:
    repo.write_model("gamma", seed=3)
    repo.replace("mlfbuild.yml", "firmware:", "  gamma: {source: models/gamma.tflite}\nfirmware:")
    ran = rebuild(repo)
    assert set(ran.reasons) == {"gamma.tar", "gamma/RECORD.json", "mlf.cmake"}
    assert ran.ninja[0] == CONFIGURED
    assert ran.objects - {"main.c.obj"} == {"gamma_lib0.c.obj"}, "main.c has one include folder more"
    assert ran.linked
    assert_nothing_ran(rebuild(repo))


def test_a_new_file_that_a_pattern_matches_is_a_model(repo: FirmwareRepo) -> None:
    models = "  alpha: {source: models/alpha.tflite}\n  beta: {source: models/beta.tflite}\n"
    repo.replace("mlfbuild.yml", f"models:\n{models}", "models: ['models/*.tflite']\n")
    repo.replace("mlfbuild.yml", "models: [alpha, beta], ", "")
    assert_nothing_ran(rebuild(repo))
    repo.write_model("gamma", seed=3)
    ran = rebuild(repo)
    assert set(ran.reasons) == {"gamma.tar", "gamma/RECORD.json", "mlf.cmake"}
    assert ran.objects - {"main.c.obj"} == {"gamma_lib0.c.obj"}
    assert ran.linked
    assert_nothing_ran(rebuild(repo))


@pytest.mark.sweep
def test_a_model_is_removed(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "  beta: {source: models/beta.tflite}\n", "")
    repo.replace("mlfbuild.yml", "[alpha, beta]", "[alpha]")
    ran = rebuild(repo)
    assert list(ran.reasons) == ["mlf.cmake"]
    assert not (repo.root / "build/mlf/m4/beta").exists()
    assert ran.objects <= {"main.c.obj"}, "main.c has one include folder less"
    assert ran.linked
    assert_nothing_ran(rebuild(repo))


# mlfbuild itself -----------------------------------------------------------------------------------------------------


def test_changed_generator_with_the_same_output(repo: FirmwareRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    assert repo.scons(env=path).status == 0
    source = package_copy / "mlfbuild/native/__init__.py"
    source.write_text(source.read_text() + "\n# a comment that changes no output\n")
    ran = repo.scons("-Q", "--debug=explain", env=path, status=0)
    archives = {f"{TREES}{model}.tar" for model in ("alpha", "beta")}
    steps = {*archives, f"{TREES}alpha/RECORD.json", f"{TREES}beta/RECORD.json", f"{TREES}mlf.cmake"}
    assert set(ran.reasons) == {*steps, ELF}, "every step depends on the hash of the package"
    keys = {f"{TREES}.{model}.tar.key" for model in ("alpha", "beta")}
    checked = {"build/m4/app/.mlfbuild-link.json"}  # another mlfbuild may find other faults
    assert ran.written == archives | keys | checked, (
        "trees keep files with the right content, and nothing is compiled or linked"
    )
    assert ran.output.splitlines()[-1] == "ninja: no work to do."
    assert_nothing_ran(rebuild(repo, path))


@pytest.mark.sweep
def test_a_kernel_header(repo: FirmwareRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    assert repo.scons(env=path).status == 0
    header = package_copy / "mlfbuild/native/kernels/portable/numbers/compiler.h"
    header.write_text(header.read_text() + "/* one line more */\n")
    ran = rebuild(repo, path)
    made = {f"{model}{what}" for model in ("alpha", "beta") for what in (".tar", "/RECORD.json")}
    assert set(ran.reasons) == {*made, "mlf.cmake"}, "every step depends on the hash of the package"
    assert ran.objects == {"alpha_lib0.c.obj", "beta_lib0.c.obj"}, "the sources have another hash of the kernels"
    assert (repo.root / TREES / "alpha/codegen/host/src/mlfbuild/compiler.h").read_bytes() == header.read_bytes()
    assert_nothing_ran(rebuild(repo, path))


# Firmware ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["src/main.c", "src/app.h"])
def test_a_firmware_source_or_header(repo: FirmwareRepo, name: str) -> None:
    repo.write(name, repo.read(name).decode().replace("hello", "good day").replace("return 0", "return 1"))
    ran = rebuild(repo)
    assert ran.reasons == {}
    assert ran.ninja == ["Building C object main.c.obj", LINKED]


def test_the_linker_script(repo: FirmwareRepo) -> None:
    repo.write("extra.ld", "/* nothing to add */\n")
    repo.write(
        "CMakeLists.txt",
        repo.read("CMakeLists.txt").decode()
        + "set_target_properties(app PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/extra.ld)\n"
        + "target_link_options(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/extra.ld)\n",
    )
    repo.build()
    repo.write("extra.ld", "PROVIDE(elsewhere = 4);\n")
    ran = rebuild(repo)
    assert ran.reasons == {}
    assert ran.ninja == [LINKED]


def test_board_linker_script_is_restored(repo: FirmwareRepo) -> None:
    script = repo.root / TREES / "board/mps2-an386.ld"
    good = script.read_bytes()
    script.write_bytes(good + b"/* by hand */\n")
    ran = rebuild(repo)
    assert ran.reasons == {"mlf.cmake": "AlwaysBuild() is specified"}
    assert script.read_bytes() == good
    assert ran.ninja == [LINKED], "Ninja goes by time"
    assert_nothing_ran(rebuild(repo))


@pytest.mark.sweep
def test_toolchain_file_of_the_user(repo: FirmwareRepo) -> None:
    from mlfbuild.targets import cmake_folder

    shipped = (cmake_folder() / "toolchains/cortex-m4.cmake").as_posix()
    repo.write("own.cmake", f'include("{shipped}")\n')
    repo.replace("mlfbuild.yml", "mps2-an386}", "mps2-an386, toolchain: own.cmake}")
    repo.build()
    repo.write("own.cmake", f'include("{shipped}")\nadd_compile_definitions(OWN=1)\n')
    ran = rebuild(repo)
    assert ran.reasons == {}
    assert ran.ninja[0] == CONFIGURED
    assert {"main.c.obj", "alpha_lib0.c.obj", "beta_lib0.c.obj"} <= ran.objects
    assert ran.linked
    assert_nothing_ran(rebuild(repo))


# Trees ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", first_on_push(["edited", "deleted", "record deleted"]))
def test_unpacked_file_is_restored(repo: FirmwareRepo, damage: str) -> None:
    tree = repo.root / "build/mlf/m4/alpha"
    victim = tree / ("RECORD.json" if damage == "record deleted" else "codegen/host/src/alpha_lib0.c")
    good = victim.read_bytes()
    if damage == "edited":
        victim.write_bytes(good + b"/* by hand */\n")
    else:
        victim.unlink()
    ran = rebuild(repo)
    reason = "it doesn't exist" if damage == "record deleted" else "AlwaysBuild() is specified"
    assert ran.reasons == {"alpha/RECORD.json": reason}
    assert victim.read_bytes() == good
    by_time = [] if damage == "record deleted" else ["Building C object alpha_lib0.c.obj", LINKED]
    assert ran.ninja == by_time, "Ninja looks at nothing else"
    assert_nothing_ran(rebuild(repo))


def test_board_file_is_restored(repo: FirmwareRepo) -> None:
    startup = repo.root / "build/mlf/m4/board/startup.c"
    good = startup.read_bytes()
    startup.write_bytes(b"")
    assert rebuild(repo).reasons == {"mlf.cmake": "AlwaysBuild() is specified"}
    assert startup.read_bytes() == good


# Options of SCons ----------------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_clean_keeps_files_of_the_user(repo: FirmwareRepo) -> None:
    mine = repo.write("build/mlf/m4/alpha/codegen/host/src/notes.txt", "mine")
    warm.run("mlfbuild", "-C", repo.root, "build", "-q", check=True)
    repo.scons("-c", status=0)
    assert mine.read_text() == "mine"
    left = {
        path.relative_to(repo.root / "build").as_posix() for path in (repo.root / "build").rglob("*") if path.is_file()
    }
    assert left == {"mlf/m4/alpha/codegen/host/src/notes.txt"}
    for name in ("src/main.c", "mlfbuild.yml", "models/alpha.tflite"):
        assert (repo.root / name).is_file()


def test_a_dry_run_and_a_dry_clean_change_nothing(repo: FirmwareRepo) -> None:
    repo.write_model("alpha", seed=9)
    for arguments in (["-n"], ["-c", "-n"]):
        ran = repo.scons(*arguments, status=0)
        assert not ran.written
        assert not ran.removed


@pytest.mark.sweep
def test_parallel_jobs_build_the_same(repo: FirmwareRepo, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = FirmwareRepo(tmp_path_factory.mktemp("a longer path than the first one has"))
    other.build("-j", "4")
    for name in ("build/mlf/m4/alpha.tar", "build/mlf/m4/beta.tar", ELF):
        assert repo.read(name) == other.read(name), name
