"""Packages and trees with budgets: builds with Make, SCons and the hooks of other systems check their links."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import warm
from support.examples import first_on_push
from support.tree_firmware import CLEAN, PROJECT, PROJECTS, make_repo, scons_command

MAKE_CHECK = "mlfbuild: no rule has $(MLF_CHECK), so budgets are not checked; see models/mlf.mk"
BUDGET = """\
models:
  alpha:
    {source: networks/alpha.tflite, vectors: alpha.npz, memories: [dtcm], targets: [m55], budget: {flash: 64}}
firmware: {app: {sources: [src/main.c], targets: [m55], budget: {dtcm: 64}}}
"""
PACKAGES = ("--for", "zephyr", "--for", "rt-thread", "--for", "esp-idf", "--for", "platformio")
OVER = (r"app\.elf for m55: model alpha: takes .* of flash", r"app\.elf for m55: the image: takes .* of dtcm")


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """A firmware whose budgets of flash and DTCM are too small; its committed tree is a package of all systems."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "make")
    folder = tmp_path_factory.mktemp("budgets") / "repo"
    make_repo(folder, *PACKAGES, models=BUDGET)
    (folder / "src/main.c").write_text(
        '#include "tvmgen_alpha.h"\n__attribute__((section(".mlf_dtcm"))) char fast[128];\n'
        "int main(void) { return tvmgen_alpha_run((void *)fast, (void *)0); }\n"
    )
    link = "$(MLF_BOARD_LDFLAGS) $^ -o $@\n"
    makefile = (folder / "Makefile").read_text()
    assert link in makefile
    checked = link.replace("$^ -o", "$(MLF_PLACEMENT_LDFLAGS) $^ -Wl,-Map=$@.map -o") + "\t$(MLF_CHECK)\n"
    (folder / "Makefile").write_text(makefile.replace(link, checked))
    (folder / "bin").mkdir()
    (folder / "bin/mlfbuild").symlink_to(warm.command("mlfbuild"))
    return folder


def with_mlfbuild(repo: Path) -> dict[str, str]:
    return {"PATH": f"{repo / 'bin'}:{CLEAN['PATH']}", "LANG": os.environ.get("LANG", "")}


def run(folder: Path, *command: str | Path, env: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.returncode, done.stdout


def fails_until_raised(repo: Path, folder: Path, image: Path, tree: Path, *command: str | Path) -> None:
    """Build with a ``command``: over budget, twice; within a budget; and without mlfbuild."""
    for _ in range(2):
        status, output = run(folder, *command, env=with_mlfbuild(repo))
        assert status != 0 and all(re.search(over, output) for over in OVER), output
        assert not image.exists()
    path = tree / "budgets.json"
    path.write_text(path.read_text().replace('": 64', '": 65536'))
    status, output = run(folder, *command, env=with_mlfbuild(repo))
    assert status == 0 and image.exists(), output
    image.unlink()
    status, output = run(folder, *command, env=CLEAN)
    assert status == 0, output
    assert "mlfbuild: not in PATH, so budgets are not checked; run mlfbuild report -q" in output


def replaced(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


PLACED = 'SConscript("models/placement/SConscript", exports="env")'


@pytest.mark.sweep
def test_make(repo: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(repo, tmp_path / "repo"))
    image = folder / "build/make/app.elf"
    fails_until_raised(repo, folder, image, folder / "models", "make")
    (folder / "Makefile").write_text((folder / "Makefile").read_text().replace("\t$(MLF_CHECK)\n", ""))
    assert MAKE_CHECK in run(folder, "make", "-n", env=CLEAN)[1].splitlines()


@pytest.mark.parametrize("name", first_on_push(["$(basename $@).map", "other.map", "$@.map"], 2))
def test_make_with_maps_of_other_names_and_rules_in_a_later_makefile(repo: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(repo, tmp_path / "repo"))
    head, target, rules = (folder / "Makefile").read_text().partition("$(BUILD)/app.elf:")
    (folder / "rules.mk").write_text(target + rules.replace("-Map=$@.map", f"-Map={name}"))
    (folder / "Makefile").write_text(
        f"{head}include rules.mk\n{'MLF_MAP = other.map' if name == 'other.map' else ''}\n"
    )
    image = folder / "build/make/app.elf"
    fails_until_raised(repo, folder, image, folder / "models", "make")
    assert "MLF_CHECK" not in run(folder, "make", "-n", env=CLEAN)[1]


def test_make_with_a_rule_for_the_check(repo: Path, tmp_path: Path) -> None:
    """The rule that links is in a file of a vendor, as in ChibiOS."""
    folder = Path(shutil.copytree(repo, tmp_path / "repo"))
    makefile = (folder / "Makefile").read_text().replace("\t$(MLF_CHECK)\n", "")
    image = folder / "build/make/app.elf"
    (folder / "Makefile").write_text(f"all: hook\n{makefile}\nMLF_IMAGE = {image}\nhook: {image}\n\t$(MLF_CHECK)\n")
    fails_until_raised(repo, folder, image, folder / "models", "make", f"BUILD={image.parent}")


def test_scons(repo: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(repo, tmp_path / "repo"))
    replaced(folder / "SConstruct", "app.Program(", f"app.Append(**{PLACED})\napp.Program(")
    image = folder / "build/scons/app.elf"
    fails_until_raised(repo, folder, image, folder / "models", *scons_command(folder), "-Q")
    assert "is up to date" in run(folder, *scons_command(folder), "-Q", env=CLEAN)[1]


@pytest.mark.sweep
def test_rt_thread(repo: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(PROJECTS / "rt-thread-package", tmp_path / "bsp"))
    (folder / "applications").mkdir(exist_ok=True)
    shutil.copy(repo / "src/main.c", folder / "applications")
    shutil.copy(PROJECT / "rt-thread/building.py", folder)
    shutil.copytree(repo / "models", folder / "models")
    (folder / "rtconfig.h").write_text("#define PKG_USING_MLF_MODELS\n#define MLF_MODELS_USING_ALPHA\n")
    replaced(folder / "SConstruct", "Env.Program(", f"env = Env\nEnv.Append(**{PLACED})\nEnv.Program(")
    image = folder / "build/app.elf"
    fails_until_raised(repo, folder, image, folder / "models", *scons_command(folder), "-Q")


IDF = """
set_target_properties(app PROPERTIES OUTPUT_NAME app)
target_link_options(app PRIVATE "-Wl,--Map=${CMAKE_BINARY_DIR}/${CMAKE_PROJECT_NAME}.map")
function(idf_build_get_property variable property)
  set(${variable} app PARENT_SCOPE)
endfunction()
include(components/models/project_include.cmake)
"""
ZEPHYR = """
set(KERNEL_ELF_NAME app.elf)
set(KERNEL_MAP_NAME app.map)
target_link_options(app PRIVATE -Wl,-Map=app.map)
get_property(commands GLOBAL PROPERTY extra_post_build_commands)
add_custom_command(TARGET app POST_BUILD ${commands})
"""


@pytest.mark.sweep
@pytest.mark.parametrize("system", ["esp-idf", "zephyr"])
def test_systems_with_cmake(system: str, repo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "app"
    if system == "esp-idf":
        shutil.copytree(PROJECTS / "esp-idf-component", folder)
        tree = Path(shutil.copytree(repo / "models", folder / "components/models"))
        text = (folder / "CMakeLists.txt").read_text() + IDF
    else:
        shutil.copytree(PROJECTS / "zephyr-module/app", folder)
        tree = Path(shutil.copytree(repo / "models", folder / "models"))
        (folder / ".config").write_text("CONFIG_MLF_ALPHA=y\n")
        names, rest = ZEPHYR.split("target_link", 1)
        text = (folder / "CMakeLists.txt").read_text().replace("add_subdirectory", f"{names}add_subdirectory")
        text += f"target_link{rest}"
    text += f"target_link_libraries(app PRIVATE -T{tree}/placement/mlf_placement.ld)\n"
    (folder / "CMakeLists.txt").write_text(text)
    shutil.copytree(repo / "src", folder / "src", dirs_exist_ok=True)
    options = (f"-DCMAKE_TOOLCHAIN_FILE={PROJECT / 'arm-none-eabi.cmake'}", f"-DMODULE_CMAKE={tree / 'zephyr'}")
    status, output = run(folder, "cmake", "-B", "build", "-G", "Ninja", *options, env=CLEAN)
    assert status == 0, output
    image = folder / "build/app.elf"
    fails_until_raised(repo, folder, image, tree, "cmake", "--build", "build")


def test_platformio_runs_the_check(repo: Path) -> None:
    library = (repo / "models/library.json").read_text()
    assert '"extraScript": "mlf_platformio.py"' in library
    script = (repo / "models/mlf_platformio.py").read_text()
    programs: list[dict[str, object]] = []

    class Environment:
        def subst(self, text: str) -> str:
            return {"$LINK": "arm-none-eabi-gcc", "$LINKFLAGS": "-mthumb"}[text]

        def Append(self, **values: object) -> None:  # noqa: N802 - SCons' name
            programs.append(values)

    class Folder:
        abspath = os.fspath(repo / "models")

        def srcnode(self) -> Folder:
            return self

    exec(script, {"Dir": lambda _: Folder(), "DefaultEnvironment": Environment, "Action": lambda *parts: parts})
    (values,) = programs
    assert set(values) == {"LINKCOM", "PROGEMITTER", "_LIBFLAGS"}
    assert values["_LIBFLAGS"] == " -Wl,-Map=${TARGET}.map"
