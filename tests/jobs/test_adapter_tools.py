"""PlatformIO and Espressif's component manager accept packages; each is installed into a separate environment.

PlatformIO builds for this machine, with a minimal platform and the installed SCons, because its own platforms would
have to be downloaded.
"""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import SCons

from support.tree_firmware import CLEAN, PROJECT, expected, make_repo, run

pytestmark = pytest.mark.sweep

SCONS = f"""\
import sys
sys.path.insert(0, {str(Path(SCons.__file__).parents[1])!r})
from SCons.Script import main
main()
"""
PLATFORM = """\
from platformio.public import PlatformBase


class HerePlatform(PlatformBase):
    pass
"""
BUILDER = """\
from SCons.Script import AlwaysBuild, Default, DefaultEnvironment

env = DefaultEnvironment()
env.Replace(CC="gcc", AR="ar", RANLIB="ranlib", LINK="gcc", PROGNAME="app")
AlwaysBuild(Default(env.BuildProgram()))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    tool("gcc")
    repo = make_repo(tmp_path_factory.mktemp("packages") / "repo", "--for", "esp-idf", "--for", "platformio")
    return repo / "models"


def installed(folder: Path, package: str) -> Path:
    """Install ``package`` into a new environment; return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    subprocess.run([folder / "bin/pip", "install", "-q", package], check=True, capture_output=True)
    return folder / "bin"


def pretend_installed(folder: Path, kind: str, version: str) -> None:
    """Write the manifest by which PlatformIO recognises a package, and its note about the origin."""
    name = folder.name
    folder.mkdir(parents=True)
    manifest = {"name": name, "title": name, "version": version, "description": name, "packages": {}}
    (folder / ("platform.json" if kind == "platform" else "package.json")).write_text(json.dumps(manifest))
    spec = {"owner": "platformio", "id": None, "name": name, "requirements": None, "uri": None}
    note = {"type": kind, "name": name, "version": version, "spec": spec}
    (folder / ".piopm").write_text(json.dumps(note))


@pytest.fixture(scope="module")
def platformio(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that runs PlatformIO with the platform ``here`` and SCons as if they were downloaded."""
    home = tmp_path_factory.mktemp("platformio")
    programs = installed(home / "venv", "platformio>=6.1,<7")
    question = "from platformio.dependencies import get_core_dependencies as all; print(all()['tool-scons'])"
    scons = run(home, programs / "python", "-c", question).strip().removeprefix("~")
    pretend_installed(home / "packages/tool-scons", "tool", scons)
    pretend_installed(home / "platforms/here", "platform", "1.0.0")
    (home / "packages/tool-scons/scons.py").write_text(SCONS)
    (home / "platforms/here/platform.py").write_text(PLATFORM)
    (home / "platforms/here/builder").mkdir()
    (home / "platforms/here/builder/main.py").write_text(BUILDER)
    env = {**CLEAN, "PLATFORMIO_CORE_DIR": str(home), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no", "HOME": str(home)}
    return lambda folder, *arguments: run(folder, programs / "pio", *arguments, env=env)


def test_platformio_packs_the_library(models: Path, platformio: Callable[..., str], tmp_path: Path) -> None:
    platformio(tmp_path, "pkg", "pack", models, "-o", tmp_path / "models.tar.gz")
    with tarfile.open(tmp_path / "models.tar.gz") as tar:
        packed = set(tar.getnames())
    sources = [entry[2:-1] for entry in json.loads((models / "library.json").read_text())["build"]["srcFilter"][1:]]
    assert len(sources) == 2 and {"library.json", *sources} <= packed


def test_platformio_finds_and_builds_the_library(models: Path, platformio: Callable[..., str], tmp_path: Path) -> None:
    shutil.copytree(models, tmp_path / "lib/models")
    shutil.copytree(PROJECT / "src", tmp_path / "src")
    (tmp_path / "platformio.ini").write_text("[env:here]\nplatform = here\n")
    output = platformio(tmp_path, "run")
    assert "mlf_models @ 0.0.0" in output and "startup" not in output
    assert run(tmp_path, ".pio/build/here/app").splitlines() == expected()


def test_platformio_checks_budgets_after_the_link(platformio: Callable[..., str], tmp_path: Path) -> None:
    budgets = "models: {alpha: {source: networks/alpha.tflite, budget: {flash: 64 KiB}}}\n"
    repo = make_repo(tmp_path / "repo", "--for", "platformio", models=budgets)
    shutil.copytree(repo / "models", tmp_path / "app/lib/models")
    (tmp_path / "app/src").mkdir()
    (tmp_path / "app/src/main.c").write_text(
        '#include "tvmgen_alpha.h"\nint main(void) { return !tvmgen_alpha_run; }\n'
    )
    (tmp_path / "app/platformio.ini").write_text("[env:here]\nplatform = here\n")
    output = platformio(tmp_path / "app", "run")
    image = tmp_path / "app/.pio/build/here/app"
    assert "mlfbuild: not in PATH, so budgets are not checked; run mlfbuild report -q --fail-over-budget" in output
    assert f"--elf {image} --map" in output and image.with_name("app.map").is_file()


def test_component_manager_accepts_the_manifest(models: Path, tmp_path: Path) -> None:
    compote = installed(tmp_path / "venv", "idf-component-manager>=3.1,<4") / "compote"
    component = Path(shutil.copytree(models, tmp_path / "mlf_models"))
    env = {**CLEAN, "HOME": str(tmp_path)}
    run(component, compote, "-W", "manifest", "lint", env=env)
    run(component, compote, "-W", "component", "pack", "--name", "mlf_models", env=env)
    with tarfile.open(component / "dist/mlf_models_0.0.0.tgz") as tar:
        packed = {name.removeprefix("./") for name in tar.getnames()}
    assert {"idf_component.yml", "CMakeLists.txt", "alpha/codegen/host/src/alpha_lib0.c"} <= packed
    manifest = component / "idf_component.yml"
    manifest.write_text(manifest.read_text().replace('version: "0.0.0"', "version: one"))
    done = subprocess.run([compote, "manifest", "lint"], cwd=component, env=env, capture_output=True, text=True)
    assert done.returncode != 0, "it does judge"
