"""The rebuild matrix: what each change rebuilds, and what it must not, by looking at the files that were written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.firmware_repo import FirmwareRepo, Ran

ELF = "build/m4/app/app.elf"


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> FirmwareRepo:
    """A repo that has just been built."""
    for name in ("arm-none-eabi-gcc", "cmake", "ninja"):
        tool(name)
    repo = FirmwareRepo(tmp_path)
    repo.build()
    assert (tmp_path / ELF).is_file()
    return repo


def archives(ran: Ran) -> set[str]:
    return {Path(path).stem for path in ran.written if path.endswith(".tar")}


def trees(ran: Ran) -> set[str]:
    """The models whose unpacked tree was written to."""
    return {
        Path(path).parts[3] for path in ran.written if path.startswith("build/mlf/m4/") and len(Path(path).parts) > 4
    }


def objects(ran: Ran) -> set[str]:
    return {Path(path).name for path in ran.written if path.endswith(".obj")}


def linked(ran: Ran) -> bool:
    return ELF in ran.written


def reasons(ran: Ran) -> dict[str, str]:
    """What of mlfbuild's SCons made below build/mlf, each with why, as ``--debug=explain`` says."""
    return dict(re.findall(r"scons: (?:re)?building `build/mlf/m4/([^']*)' because:?\s*(.*)", ran.output))


def assert_nothing_ran(ran: Ran) -> None:
    assert not archives(ran)
    assert not trees(ran)
    assert not objects(ran)
    assert not linked(ran)


def test_nothing_changed(repo: FirmwareRepo) -> None:
    ran = repo.build("--debug=explain")
    assert_nothing_ran(ran)
    assert not reasons(ran)
    assert "Compiling model" not in ran.output
    assert "Unpacking" not in ran.output


def test_touch(repo: FirmwareRepo) -> None:
    later = time.time() + 60
    for name in ("models/alpha.tflite", "mlfbuild.yml", "SConstruct"):
        os.utime(repo.root / name, (later, later))
    assert_nothing_ran(repo.build())


def test_a_comment_in_the_project_file(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", "# a comment\n" + repo.read("mlfbuild.yml").decode())
    assert_nothing_ran(repo.build())


def test_one_models_options(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, placement: {params: .rodata.elsewhere}}")
    ran = repo.build("--debug=explain")
    assert list(reasons(ran)) == ["alpha.tar", "alpha/RECORD.json"]
    assert ".rodata.elsewhere" in ran.output, "SCons names the settings that are new"
    assert archives(ran) == {"alpha"}
    assert trees(ran) == {"alpha"}
    assert objects(ran) == {"alpha_lib0.c.obj"}
    assert linked(ran)


def test_weights_of_one_model(repo: FirmwareRepo) -> None:
    header = repo.snapshot()["build/mlf/m4/alpha/codegen/host/src/alpha_lib0.c"]
    repo.write_model("alpha", seed=7)
    ran = repo.build("--debug=explain")
    assert reasons(ran) == {
        "alpha.tar": "`models/alpha.tflite' changed",
        "alpha/RECORD.json": "`build/mlf/m4/alpha.tar' changed",
    }
    assert archives(ran) == {"alpha"}
    assert trees(ran) == {"alpha"}
    assert "build/mlf/m4/alpha/codegen/host/src/alpha_lib0.c" in ran.written
    assert "build/mlf/m4/alpha/mlf.cmake" not in ran.written
    assert not list(ran.matching("/alpha/codegen/host/include/mlfbuild-")), "kernels did not change"
    assert objects(ran) == {"alpha_lib0.c.obj"}
    assert linked(ran)
    assert header != repo.snapshot()["build/mlf/m4/alpha/codegen/host/src/alpha_lib0.c"]


def test_a_model_is_added(repo: FirmwareRepo) -> None:
    repo.write_model("gamma", seed=3)
    repo.replace("mlfbuild.yml", "firmware:", "  gamma: {source: models/gamma.tflite}\nfirmware:")
    ran = repo.build("--debug=explain")
    assert set(reasons(ran)) == {"gamma.tar", "gamma/RECORD.json", "mlf.cmake"}
    assert archives(ran) == {"gamma"}
    assert trees(ran) == {"gamma"}
    assert objects(ran) - {"main.c.obj"} == {"gamma_lib0.c.obj"}, "main.c has one include folder more"
    assert linked(ran)


def test_a_model_is_removed(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "  beta: {source: models/beta.tflite}\n", "")
    repo.replace("mlfbuild.yml", "[alpha, beta]", "[alpha]")
    ran = repo.build()
    assert not archives(ran)
    assert not (repo.root / "build/mlf/m4/beta").exists()
    assert objects(ran) <= {"main.c.obj"}, "main.c has one include folder less"
    assert linked(ran)
    assert_nothing_ran(repo.build())


def test_the_generators_source_with_the_same_output(
    repo: FirmwareRepo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import shutil

    import mlfbuild

    copy = tmp_path_factory.mktemp("package")
    package = Path(mlfbuild.__file__).parent
    shutil.copytree(package, copy / "mlfbuild", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package.parent / "cmake", copy / "cmake")
    path = {"PYTHONPATH": str(copy)}
    settled = repo.scons(env=path)
    assert settled.status == 0, settled.output
    source = copy / "mlfbuild/compilers/native/__init__.py"
    source.write_text(source.read_text() + "\n# a comment that changes no output\n")
    ran = repo.scons("--debug=explain", env=path)
    assert ran.status == 0, ran.output
    assert set(reasons(ran)) == {"alpha.tar", "beta.tar"}
    assert archives(ran) == {"alpha", "beta"}
    assert "Unpacking" not in ran.output
    assert not trees(ran)
    assert not objects(ran)
    assert not linked(ran)


def test_a_firmware_header(repo: FirmwareRepo) -> None:
    repo.write("src/app.h", '#define GREETING "good day"\n')
    ran = repo.build()
    assert not archives(ran)
    assert not trees(ran)
    assert objects(ran) == {"main.c.obj"}
    assert linked(ran)


def test_the_linker_script(repo: FirmwareRepo) -> None:
    script = "#include linker"
    repo.write("extra.ld", "/* nothing to add */\n")
    repo.write(
        "CMakeLists.txt",
        repo.read("CMakeLists.txt").decode()
        + "set_target_properties(app PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/extra.ld)\n"
        + "target_link_options(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/extra.ld)\n",
    )
    repo.build()
    repo.write("extra.ld", f"/* {script} */\nPROVIDE(elsewhere = 4);\n")
    ran = repo.build()
    assert not archives(ran)
    assert not objects(ran)
    assert linked(ran)


def test_a_toolchain_file_of_the_users_own(repo: FirmwareRepo) -> None:
    from mlfbuild.targets import cmake_folder

    shipped = (cmake_folder() / "toolchains/cortex-m4.cmake").as_posix()
    repo.write("own.cmake", f'include("{shipped}")\n')
    repo.replace("mlfbuild.yml", "mps2-an386}", "mps2-an386, toolchain: own.cmake}")
    repo.build()
    repo.write(
        "own.cmake",
        f'include("{shipped}")\nstring(APPEND CMAKE_C_FLAGS_INIT " -DOWN=1")\nadd_compile_definitions(OWN=1)\n',
    )
    ran = repo.build()
    assert not archives(ran)
    assert not trees(ran)
    assert {"main.c.obj", "alpha_lib0.c.obj", "beta_lib0.c.obj"} <= objects(ran)


@pytest.mark.parametrize("damage", ["deleted", "edited", "record deleted"])
def test_an_unpacked_file_is_healed(repo: FirmwareRepo, damage: str) -> None:
    tree = repo.root / "build/mlf/m4/alpha"
    victim = tree / ("RECORD.json" if damage == "record deleted" else "codegen/host/src/alpha_lib0.c")
    good = victim.read_bytes()
    if damage == "edited":
        victim.write_bytes(good + b"/* by hand */\n")
    else:
        victim.unlink()
    ran = repo.build("--debug=explain")
    reason = "it doesn't exist" if damage == "record deleted" else "AlwaysBuild() is specified"
    assert reasons(ran) == {"alpha/RECORD.json": reason}
    assert victim.read_bytes() == good
    assert not archives(ran)
    assert trees(ran) == {"alpha"}
    assert_nothing_ran(repo.build())


def test_a_board_file_is_healed(repo: FirmwareRepo) -> None:
    startup = repo.root / "build/mlf/m4/board/startup.c"
    good = startup.read_bytes()
    startup.write_bytes(b"")
    repo.build()
    assert startup.read_bytes() == good


def test_clean_leaves_what_people_wrote(repo: FirmwareRepo) -> None:
    mine = repo.write("build/mlf/m4/alpha/codegen/host/src/notes.txt", "mine")
    subprocess.run([sys.executable, "-m", "mlfbuild", "-C", repo.root, "build", "-q"], check=True)
    ran = repo.scons("-c")
    assert ran.status == 0, ran.output
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
        ran = repo.scons(*arguments)
        assert ran.status == 0, ran.output
        assert not ran.written
        assert not ran.removed


def test_parallel_jobs_build_the_same(repo: FirmwareRepo, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = FirmwareRepo(tmp_path_factory.mktemp("a longer path than the first one has"))
    other.build("-j", "4")
    for name in ("build/mlf/m4/alpha.tar", "build/mlf/m4/beta.tar", ELF):
        assert repo.read(name) == other.read(name), name
