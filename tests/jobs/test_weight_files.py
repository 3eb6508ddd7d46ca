"""Weights beside an .onnx file: they are read, they are inputs of the build, and their names are not trusted."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from mlfbuild.core.errors import InputFileError, MlfError
from mlfbuild.jobs import read_files
from mlfbuild.native.frontends import SourceFiles, read_model
from mlfbuild.targets import cmake_folder
from mlfbuild.usecases.compile.file import file_job
from support import warm
from support.errors import raises
from support.examples import first_on_push
from support.firmware_repo import SITE_TOOL
from support.onnx_models import model

DATA = "weights/net.onnx.data"


def network(seed: int = 0) -> onnx.ModelProto:
    random = np.random.default_rng(seed)
    constants = {
        "w": random.standard_normal((40, 50)).astype(np.float32),
        "b": random.standard_normal(50).astype(np.float32),
    }
    values = helper.make_node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(constants["b"] * 2))
    nodes = [values, helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Mul", ["h", "k"], ["y"])]
    return onnx.load_from_string(model(nodes, [("x", (1, 40))], [("y", (1, 50))], constants))


def write(path: Path, location: str = DATA, seed: int = 0) -> Path:
    """Write a network whose weights, also those of a Constant, are in the file ``location``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / location).parent.mkdir(parents=True, exist_ok=True)
    (path.parent / location).unlink(missing_ok=True)
    onnx.save(
        network(seed), str(path), save_as_external_data=True, location=location, size_threshold=0,
        convert_attribute=True,
    )  # fmt: skip
    return path


def test_weights_are_read_from_their_file(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    (tmp_path / "whole.onnx").write_bytes(network().SerializeToString())
    apart, whole = read_model(path, "net"), read_model(tmp_path / "whole.onnx", "net")
    found = {tensor.name: tensor.data for tensor in apart.constants}
    for tensor in whole.constants:
        np.testing.assert_array_equal(found[tensor.name], tensor.data)
    assert SourceFiles(path).weights == {DATA: tmp_path / DATA}
    assert SourceFiles(tmp_path / "whole.onnx").weights == {}


def test_weights_decide_the_identity_of_a_model(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    before = SourceFiles(path).read().identity
    data = bytearray((tmp_path / DATA).read_bytes())
    data[-1] ^= 1
    (tmp_path / DATA).write_bytes(data)
    assert SourceFiles(path).read().identity != before


def _location(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        made = onnx.load(str(path), load_external_data=False)
        for entry in made.graph.initializer[0].external_data:
            if entry.key == "location":
                entry.value = name
        path.write_bytes(made.SerializeToString())

    return change


def _link(path: Path) -> None:
    (path.parent / DATA).rename(path.parent / "elsewhere")
    (path.parent / DATA).symlink_to(path.parent / "elsewhere")


def _linked_folder(path: Path) -> None:
    (path.parent / "weights").rename(path.parent / "elsewhere")
    (path.parent / "weights").symlink_to("elsewhere")


def _folder(path: Path) -> None:
    (path.parent / DATA).unlink()
    (path.parent / DATA).mkdir()


def _cut(path: Path) -> None:
    (path.parent / DATA).write_bytes((path.parent / DATA).read_bytes()[:100])


UNSAFE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "absolute": (_location("/etc/hostname"), "weights-file-unsafe", "/etc/hostname"),
    "above": (_location("../secret"), "weights-file-unsafe", "../secret"),
    "above, hidden": (_location("weights/../../secret"), "weights-file-unsafe", "secret"),
    "drive": (_location("C:secret"), "weights-file-unsafe", "C:secret"),
    "backslashes": (_location("..\\secret"), "weights-file-unsafe", "secret"),
    "empty": (_location(""), "weights-file-unsafe", "not a path"),
    "control characters": (_location("a\x1b[2J"), "weights-file-unsafe", "not a path"),
    "link": (_link, "weights-file-unsafe", "link"),
    "linked folder": (_linked_folder, "weights-file-unsafe", "link"),
    "folder": (_folder, "weights-file-unsafe", "not a file"),
    "missing": (lambda path: (path.parent / DATA).unlink(), "weights-file-missing", DATA),
    "too short": (_cut, "onnx-malformed", "100 bytes"),
}


@pytest.mark.parametrize("kind", UNSAFE)
def test_unsafe_files_are_refused(kind: str, tmp_path: Path) -> None:
    change, code, fact = UNSAFE[kind]
    path = write(tmp_path / "model/net.onnx")
    (tmp_path / "secret").write_bytes(bytes(100_000))
    change(path)
    with pytest.raises(MlfError) as raised:
        read_model(path, "net")
    assert isinstance(raised.value, InputFileError)
    assert raised.value.place.startswith(str(path))
    assert raised.value.code == code
    assert fact in raised.value.message
    if kind != "too short":  # and the build asks for no such file, either
        with pytest.raises(InputFileError):
            read_files(file_job(path, tmp_path / "net.tar", "host"))


def test_place_of_weights_beyond_any_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx")
    made = onnx.load(str(path), load_external_data=False)
    for entry in made.graph.initializer[0].external_data:
        if entry.key == "offset":
            entry.value = str(1 << 70)
    path.write_bytes(made.SerializeToString())
    with raises(InputFileError, "onnx-malformed"):
        read_model(path, "net")


# Builds --------------------------------------------------------------------------------------------------------------

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  one: {source: models/one.onnx}
  two: {source: models/two.onnx}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
env.MlfModels("mlfbuild.yml", target="pc")
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(net C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for seed, name in enumerate(("one", "two")):
        write(tmp_path / f"models/{name}.onnx", f"{name}.onnx.data", seed)
    (tmp_path / "mlfbuild.yml").write_text(PROJECT)
    return tmp_path


def command(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def with_mlfbuild(folder: Path) -> str:
    return command(folder, warm.command("mlfbuild"), "build")


def with_scons(folder: Path) -> str:
    (folder / "SConstruct").write_text(SCONSTRUCT)
    (folder / "site_scons/site_tools").mkdir(parents=True, exist_ok=True)
    (folder / "site_scons/site_tools/mlf.py").write_text(SITE_TOOL)
    return command(folder, warm.command("SCons"), "-Q")


def with_cmake(folder: Path) -> str:
    if not (folder / "out").exists():
        (folder / "CMakeLists.txt").write_text(CMAKE)
        (folder / "main.c").write_text("int main(void) { return 0; }\n")
        found = (f"-Dmlfbuild_DIR={cmake_folder()}", f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}")
        command(folder, "cmake", "-G", "Ninja", "-S", ".", "-B", "out", *found)
    return command(folder, "cmake", "--build", "out")


def archives(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.stem: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob("**/mlf/pc/*.tar")}


@pytest.mark.parametrize("build", first_on_push([with_mlfbuild, with_scons, with_cmake]))
def test_changed_weights_rebuild_their_model_only(build: Callable[[Path], str], project: Path) -> None:
    build(project)
    first = archives(project)
    assert set(first) == {"one", "two"}
    build(project)
    assert archives(project) == first
    data = bytearray((project / "models/one.onnx.data").read_bytes())
    data[3] ^= 0x40
    (project / "models/one.onnx.data").write_bytes(data)
    build(project)
    second = archives(project)
    assert second["one"] != first["one"]
    assert second["two"] == first["two"]
    os.utime(project / "models/two.onnx.data")
    build(project)
    assert archives(project) == second


def test_plan_and_lock_list_all_files_of_a_model(project: Path) -> None:
    plan = json.loads(command(project, warm.command("mlfbuild"), "--format", "json", "plan"))
    (reads,) = (each["reads"] for each in plan["models"] if each["model"] == "one")
    assert [Path(path).name for path in reads] == ["mlfbuild.yml", "one.onnx", "one.onnx.data"]
    command(project, warm.command("mlfbuild"), "lock")
    locked = json.loads((project / "mlfbuild.lock").read_text())["models"]["one"]
    assert set(locked["weights"]) == {"one.onnx.data"}
    (project / "models/one.onnx.data").write_bytes(bytes((project / "models/one.onnx.data").stat().st_size))
    done = subprocess.run([warm.command("mlfbuild"), "lock", "--check"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 1
    assert "one.onnx.data" in done.stderr
