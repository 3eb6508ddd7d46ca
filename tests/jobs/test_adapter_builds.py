"""Build packages with their systems: the firmware of ``tree-firmware`` on QEMU, and the systems' own tools.

If a system is too large for a test, a few of its functions are replaced; the README.md of each project states what a
build with them proves.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import kconfiglib
import pytest
import yaml

from mlfbuild.jobs.tree import ADAPTERS, unpack, write_target_tree
from mlfbuild.targets import CPUS
from support.libraries import graph_library, native_library
from support.tree_firmware import CLEAN, PROJECT, PROJECTS, assert_right, expected, files, make_repo, run, scons

PACKAGES = [word for system in ADAPTERS for word in ("--for", system)]
GIT = {
    **CLEAN,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """The folder of trees, which is a package of every system."""
    tool("arm-none-eabi-gcc", "qemu-system-arm", "cmake", "ninja", "git")
    return make_repo(tmp_path_factory.mktemp("packages") / "repo", *PACKAGES) / "models"


@pytest.fixture(autouse=True)
def _back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


def project(name: str, folder: Path, main: str = "src/main.c") -> Path:
    """Copy a project to ``folder`` and add the firmware's ``main.c``."""
    shutil.copytree(PROJECTS / name, folder)
    (folder / main).parent.mkdir(parents=True)
    shutil.copy(PROJECT / "src/main.c", folder / main)
    return folder


def cmake(folder: Path, *options: str) -> None:
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={PROJECT / 'arm-none-eabi.cmake'}"
    run(folder, "cmake", "-B", "build", "-G", "Ninja", toolchain, *options)
    run(folder, "cmake", "--build", "build")


def configure(kconfig: Path, settings: Mapping[str, str], folder: Path) -> kconfiglib.Kconfig:
    """Read Kconfig files without warnings; the given symbols must be defined in them."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        configuration = kconfiglib.Kconfig(str(kconfig), warn_to_stderr=False)
    finally:
        os.chdir(here)
    for name, value in settings.items():
        assert configuration.syms[name].set_value(value)
    assert configuration.warnings == []
    return configuration


# Zephyr --------------------------------------------------------------------------------------------------------------


def west(folder: Path, *arguments: str) -> str:
    path = f"{Path(shutil.which('git') or 'git').parent}:{CLEAN['PATH']}"
    return run(folder, sys.executable, "-m", "west", *arguments, env={**GIT, "PATH": path, "HOME": str(folder)})


@pytest.fixture
def workspace(models: Path, tmp_path: Path) -> Path:
    """A workspace that west creates of the application's repository, with the repository of the models as a module."""
    upstream = Path(shutil.copytree(models, tmp_path / "workspace/upstream/models"))
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "models"]):
        run(upstream, "git", *command, env=GIT)
    project("zephyr-module/app", tmp_path / "workspace/app")
    west(tmp_path / "workspace", "init", "-l", "app")
    west(tmp_path / "workspace", "manifest", "--validate")
    west(tmp_path / "workspace", "update")
    return tmp_path / "workspace"


def build_zephyr(workspace: Path, module: Path, *options: str) -> None:
    """Evaluate a module and ``prj.conf`` as Zephyr does."""
    build = yaml.safe_load((module / "zephyr/module.yml").read_text())["build"]
    (workspace / "Kconfig").write_text(
        f'menu "mlf_models"\nosource "{module / build["kconfig"]}"\nconfig ZEPHYR_MLF_MODELS_MODULE\n\tbool\n'
        "\tdefault y\nendmenu\n"
        'config REQUIRES_FULL_LIBC\n\tbool "Require complete C library"\n'
    )
    configuration = configure(workspace / "Kconfig", {}, workspace)
    configuration.load_config(str(workspace / "app/prj.conf"))
    assert configuration.warnings == []
    assert configuration.syms["REQUIRES_FULL_LIBC"].str_value == "y"
    configuration.write_config(str(workspace / "app/.config"))
    cmake(workspace / "app", f"-DMODULE_CMAKE={module / build['cmake']}", *options)


def test_zephyr(workspace: Path) -> None:
    folders = [Path(line) for line in west(workspace, "list", "-f", "{abspath}").splitlines()]
    found = [path for path in folders if (path / "zephyr/module.yml").is_file()]
    modules = {yaml.safe_load((path / "zephyr/module.yml").read_text())["name"]: path for path in found}
    assert modules == {"mlf_models": workspace / "models"}
    before = files(workspace / "models")
    build_zephyr(workspace, modules["mlf_models"])
    assert_right(workspace / "app/build/app.elf")
    assert files(workspace / "models") == before


def test_zephyr_links_only_models_whose_switch_is_on(workspace: Path) -> None:
    (workspace / "app/prj.conf").write_text("CONFIG_MLF_BETA=y\n")
    (workspace / "app/src/main.c").write_text(
        '#include "tvmgen_beta.h"\nint main(void) { return tvmgen_beta_run(0, 0); }\n'
    )
    build_zephyr(workspace, workspace / "models")
    symbols = run(workspace, "arm-none-eabi-nm", "app/build/app.elf")
    assert "tvmgen_beta_run" in symbols and "alpha" not in symbols


def test_zephyr_switches_are_off_by_default(models: Path) -> None:
    configuration = configure(models / "zephyr/Kconfig", {}, models)
    assert [(symbol.name, symbol.str_value) for symbol in configuration.unique_defined_syms] == [
        ("MLF_ALPHA", "n"),
        ("MLF_BETA", "n"),
    ]


# RT-Thread -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def bsp(models: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(PROJECTS / "rt-thread-package", tmp_path / "bsp"))
    shutil.copy(PROJECT / "src/main.c", folder / "applications/main.c")
    shutil.copy(PROJECT / "rt-thread/building.py", folder)
    shutil.copytree(models, folder / "models")
    return folder


def build_rt_thread(bsp: Path, **switches: str) -> str:
    configuration = configure(Path("Kconfig"), switches, bsp)
    configuration.config_prefix = ""  # as RT-Thread's tools have it
    configuration.write_autoconf(str(bsp / "rtconfig.h"))
    return scons(bsp, "-Q")


def test_rt_thread(bsp: Path) -> None:
    before = files(bsp / "models")
    assert "groups: Applications mlf_alpha mlf_beta" in build_rt_thread(bsp, PKG_USING_MLF_MODELS="y")
    assert_right(bsp / "build/app.elf")
    assert files(bsp / "models") == before


def test_git_commits_the_whole_package_in_rt_thread(bsp: Path) -> None:
    run(bsp, "git", "init", "-q", env=GIT)
    run(bsp, "git", "add", "-A", env=GIT)
    committed = set(run(bsp, "git", "ls-files", "models", env=GIT).splitlines())
    assert committed == {f"models/{path}" for path in files(bsp / "models")}
    (bsp / "models/.gitignore").unlink()
    run(bsp, "git", "rm", "-rq", "--cached", ".", env=GIT)
    run(bsp, "git", "add", "-A", env=GIT)
    assert "models/mlf.mk" not in run(bsp, "git", "ls-files", "models", env=GIT)


def test_rt_thread_compiles_only_models_whose_switch_is_on(bsp: Path) -> None:
    (bsp / "applications/main.c").write_text("int main(void) { return 0; }\n")
    assert "groups: Applications\n" in build_rt_thread(bsp)
    output = build_rt_thread(bsp, PKG_USING_MLF_MODELS="y", MLF_MODELS_USING_ALPHA="n")
    assert "groups: Applications mlf_beta\n" in output
    assert "beta_lib0.c" in output and "alpha_lib0" not in output


def test_rt_thread_package_is_also_a_tree_for_scons(models: Path, tmp_path: Path) -> None:
    repo = Path(shutil.copytree(PROJECT, tmp_path / "repo"))
    shutil.copytree(models, repo / "models")
    scons(repo, "-Q")
    assert_right(repo / "build/scons/app.elf")


# ESP-IDF and PlatformIO ----------------------------------------------------------------------------------------------


def test_esp_idf(models: Path, tmp_path: Path) -> None:
    folder = project("esp-idf-component", tmp_path / "app")
    shutil.copytree(models, folder / "components/models")
    cmake(folder)
    assert_right(folder / "build/app.elf")


def test_platformio_library_compiles_with_only_its_flags_and_sources(models: Path, tmp_path: Path) -> None:
    build = json.loads((models / "library.json").read_text())["build"]
    sources = [entry[2:-1] for entry in build["srcFilter"] if entry.startswith("+")]
    run(models, "gcc", *build["flags"], PROJECT / "src/main.c", *sources, "-o", tmp_path / "app")
    assert run(tmp_path, "./app").splitlines() == expected()


# Arduino, CMSIS-Toolbox and NuttX -------------------------------------------------------------------------------------


def test_arduino_library_compiles_with_only_its_folder(models: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    library = Path(shutil.copytree(models, tmp_path / "libraries/mlf_models"))
    properties = dict(line.split("=", 1) for line in (library / "library.properties").read_text().splitlines()[1:])
    sources = sorted((library / "src").rglob("*.c"))
    assert len(sources) == 2
    run(tmp_path, "gcc", "-I", library / "src", PROJECT / "src/main.c", *sources, "-o", "app")
    assert run(tmp_path, "./app").splitlines() == expected()
    sketch = "".join(f"#include <{header}>\n" for header in properties["includes"].split(","))
    (tmp_path / "sketch.cpp").write_text(sketch + "int main() { return tvmgen_alpha_run(nullptr, nullptr) == 0; }\n")
    tool("g++")
    run(tmp_path, "g++", "-I", library / "src", "-c", "sketch.cpp", "-o", "sketch.o")


def test_cmsis_toolbox_layer_compiles_with_only_its_files_and_folders(models: Path, tmp_path: Path) -> None:
    layer = yaml.safe_load((models / "mlf_models.clayer.yml").read_text())["layer"]
    shared = [f"-I{models / path}" for path in layer["add-path"]]
    objects = []
    for group in layer["groups"]:
        assert group["group"] == f"Model {('alpha', 'beta')[len(objects)]}"
        (entry,) = group["files"]
        objects.append(tmp_path / f"{len(objects)}.o")
        own = [f"-I{models / path}" for path in group.get("add-path", [])]
        run(tmp_path, "gcc", *shared, *own, "-c", models / entry["file"], "-o", objects[-1])
    run(tmp_path, "gcc", *shared, PROJECT / "src/main.c", *objects, "-o", "app")
    assert run(tmp_path, "./app").splitlines() == expected()


@pytest.fixture
def apps(models: Path, tmp_path: Path) -> Path:
    folder = project("nuttx-app", tmp_path / "apps")
    (folder / "external").symlink_to(shutil.copytree(models, tmp_path / "firmware/models") / "nuttx")
    return folder


def configure_nuttx(apps: Path, **switches: str) -> None:
    configuration = configure(Path("external/Kconfig"), switches, apps)
    configuration.write_config(str(apps / ".config"))


def test_nuttx_make(apps: Path) -> None:
    configure_nuttx(apps, MLF_MODELS="y")
    folder = apps.parent / "firmware/models"
    before = files(folder)
    run(apps, "make", "app.elf", f"MODELS={folder}")
    assert_right(apps / "app.elf")
    assert {path.partition("/")[0] for path in files(folder) - before} == {"nuttx"}
    run(folder, "git", "init", "-q", env=GIT)
    run(folder, "git", "add", "-A", env=GIT)
    assert set(run(folder, "git", "ls-files", env=GIT).splitlines()) == before


def test_nuttx_compiles_only_models_whose_switch_is_on(apps: Path) -> None:
    configure_nuttx(apps)
    (apps / "src/main.c").write_text("int main(void) { return 0; }\n")
    assert "_lib0.c" not in run(apps, "make", "app.elf", f"MODELS={apps.parent / 'firmware/models'}")
    configure_nuttx(apps, MLF_MODELS="y", MLF_ALPHA="n")
    output = run(apps, "make", "app.elf", f"MODELS={apps.parent / 'firmware/models'}")
    assert "beta_lib0.c" in output and "alpha_lib0.c" not in output


def test_nuttx_cmake(apps: Path) -> None:
    configure_nuttx(apps, MLF_MODELS="y")
    cmake(apps, f"-DMODELS={apps.parent / 'firmware/models'}")
    assert_right(apps / "build/app.elf")


# Rust ----------------------------------------------------------------------------------------------------------------

DEBIAN_CRATES = Path("/usr/share/cargo/registry")


def cargo(folder: Path, *arguments: str) -> str:
    """Run cargo without network, with the crate ``cc`` of Debian or the one that stands in for it."""
    crates = DEBIAN_CRATES if list(DEBIAN_CRATES.glob("cc-*")) else PROJECTS / "rust-crate/crates"
    (folder / ".cargo").mkdir(exist_ok=True)
    (folder / ".cargo/config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{crates}"\n'
    )
    environment = {**os.environ, "CARGO_HOME": str(folder / "home"), "CARGO_NET_OFFLINE": "true"}
    return run(folder, "cargo", *arguments, env=environment)


def test_rust_crate(models: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cargo")
    folder = Path(shutil.copytree(PROJECTS / "rust-crate", tmp_path / "app"))
    shutil.copytree(models, folder / "models")
    before = files(folder / "models")
    output = cargo(folder, "build")
    assert "Compiling mlf_models" in output and "warning" not in output
    assert run(folder, "target/debug/app").splitlines() == expected()
    assert files(folder / "models") == before
    assert "Compiling" not in cargo(folder, "build")
    source = folder / "models/alpha/codegen/host/src/alpha_lib0.c"
    source.write_text(source.read_text() + "#error changed\n")
    with pytest.raises(AssertionError, match="changed"):
        cargo(folder, "build")


# What archives of other compilers hold -------------------------------------------------------------------------------

MAIN = """\
#include "mlf_net_blobs.h"
#include "tvmgen_pre.h"

int main(void)
{
    int8_t x[4] = {1, 2, 3, 4}, y[4];
    struct tvmgen_pre_inputs inputs = {x};
    struct tvmgen_pre_outputs outputs = {y};
    return tvmgen_pre_run(&inputs, &outputs) + (y[3] == 7 && mlf_net_graph_json[0] == '{' ? 0 : 1);
}
"""


def compiled(folder: Path) -> None:
    """Replace the only source of a tree by its object, as in archives of compiled code."""
    (source,) = (folder / "codegen/host/src").glob("*.c")
    include = folder / "codegen/host/include"
    run(folder, "gcc", f"-I{include}", "-c", source, "-o", source.with_suffix(".o"))
    source.unlink()
    record = json.loads((folder / "RECORD.json").read_text())
    name = source.relative_to(folder).as_posix()
    record["files"][name.replace(".c", ".o")] = record["files"].pop(name)
    (folder / "RECORD.json").write_text(json.dumps(record))


@pytest.mark.parametrize("system", ["zephyr", "esp-idf"])
def test_graphs_and_compiled_objects(system: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("ninja")
    tree = tmp_path / "my app/models"
    unpack(graph_library(), tree / "net", archive_id="a")
    unpack(native_library("pre"), tree / "pre", archive_id="b")
    compiled(tree / "pre")
    write_target_tree(tree, ["net", "pre"], None, CPUS["host"], [system])
    app = tree.parent
    (app / "main.c").write_text(MAIN)
    lines: Sequence[str]
    if system == "zephyr":
        shutil.copy(PROJECTS / "zephyr-module/app/zephyr.cmake", app)
        lines = [
            "include(zephyr.cmake)",
            "set(CONFIG_MLF_NET y)\nset(CONFIG_MLF_PRE y)",
            "add_subdirectory(models/zephyr)\nadd_executable(app main.c)\nlink_zephyr_libraries(app)",
        ]
    else:
        text = (PROJECTS / "esp-idf-component/CMakeLists.txt").read_text()
        function = text[text.index("function(") : text.index("endfunction()")]
        lines = [function + "endfunction()", "add_subdirectory(models)", "add_executable(app main.c)",
                 "target_link_libraries(app PRIVATE component)"]  # fmt: skip
    (app / "CMakeLists.txt").write_text("\n".join(["cmake_minimum_required(VERSION 3.22)\nproject(app C)", *lines]))
    run(app, "cmake", "-B", "build", "-G", "Ninja")
    run(app, "cmake", "--build", "build")
    subprocess.run([app / "build/app"], check=True)
