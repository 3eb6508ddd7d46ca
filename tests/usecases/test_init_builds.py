"""Projects of ``mlfbuild init`` are built, run on QEMU, verified and edited with the printed commands."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.targets import BOARDS
from mlfbuild.usecases.init import TEMPLATES, InitReport, InitRequest, init_project
from support import warm
from support.cmsis_nn import write_cmsis_nn_repository
from support.examples import first_on_push
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

BUILT = {"scons": "build/m4/app/app.elf", "cmake": "build/m4/app.elf", "bare-metal": "build/make/app.elf"}


@pytest.fixture(autouse=True)
def _tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm", "cmake", "ninja", "make")


class Repo:
    """A new project and its commands."""

    def __init__(self, request: InitRequest) -> None:
        self.root = request.folder
        self.report: InitReport = init_project(request)

    def run(self, name: str, path: str = "") -> tuple[int, str]:
        """Run the command ``name`` as a user would; return its exit status and output."""
        command = self.report.commands[name]
        path = path or f"{warm.programs()}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.root, env=os.environ | {"PATH": path}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, done.stdout

    def runs(self, name: str) -> str:
        status, output = self.run(name)
        assert status == 0, output
        return output

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert old in text
        (self.root / name).write_text(text.replace(old, new))

    def built(self) -> dict[str, int]:
        """Return the time of the last change of every object, library and image."""
        files = (path for path in (self.root / "build").rglob("*") if path.suffix in {".o", ".obj", ".a", ".elf"})
        return {path.relative_to(self.root).as_posix(): path.stat().st_mtime_ns for path in files}


SELF_RUNNING = tuple(name for name in TEMPLATES if name != "project-api")
"""Templates whose firmware runs by itself; tests/cli/test_project_api.py runs the other one."""


def request(folder: Path, template: str, **fields: Path | None) -> InitRequest:
    return InitRequest(folder, template, "mps2-an386", **fields)


@pytest.mark.parametrize("template", first_on_push(sorted(SELF_RUNNING, key="scons".__ne__), 1))
def test_example_works_and_can_be_edited(tmp_path: Path, template: str) -> None:
    repo = Repo(request(tmp_path / "my firmware", template))
    assert "warning" not in repo.runs("build").lower()
    assert re.search(r"^tones probabilities: 127 -128 -128 -128\nPASS$", repo.runs("run"), re.MULTILINE)
    assert "tones: 4 cases right on mps2-an386" in repo.runs("verify")

    before = repo.built()
    assert BUILT[template] in before
    repo.runs("build")
    assert repo.built() == before

    repo.edit("src/main.c", "wrong += run_tones();", 'wrong += run_tones();\n    printf("edited\\n");')
    assert "127 -128 -128 -128\nedited\nPASS\n" in repo.runs("run")
    changed = {path for path, time in repo.built().items() if before.get(path) != time}
    assert len(changed) == 2 and any("main.c" in path or "main.o" in path for path in changed), changed

    repo.edit("src/sample.h", "    127, -128,", "    126, -128,")
    status, output = repo.run("run")
    assert status != 0
    assert "127 -128 -128 -128\nedited\nFAIL\n" in output


@pytest.mark.sweep
@pytest.mark.parametrize(
    "template", [pytest.param(name, marks=[] if name == "bare-metal" else pytest.mark.sweep) for name in SELF_RUNNING]
)
def test_archive_of_tvm_works(shared: Path, tmp_path: Path, template: str) -> None:
    """With floats, several inputs and outputs, and functions of the math library."""
    archive = shared / "archives/many-aotc.tar"
    repo = Repo(request(tmp_path / "repo", template, archive=archive, vectors=archive.with_suffix(".npz")))
    repo.runs("build")
    output = repo.runs("run")
    assert "many output0: -0.558 -0.039 0.356" in output and "PASS\n" in output
    if template == "bare-metal":  # verify is the same for all templates
        assert "many: 1 case right on mps2-an386" in repo.runs("verify")


@pytest.mark.parametrize(("name", "said"), [
    ("conv-usmp_external", ["conv output: 0.133 0.128", "PASS"]),
    ("multi-aotc", ["mod1 output: 0.000 0.000\nmod2 output: 0.125 0.125", "DONE"]),
    ("v5-add-aotc", ["add output: 6.000 192.000\nPASS"]),
])  # fmt: skip
def test_archives_of_every_c_interface_run(shared: Path, tmp_path: Path, name: str, said: list[str]) -> None:
    """With a memory pool of the caller, two modules, and TVM 0.8."""
    archive = shared / f"archives/{name}.tar"
    vectors = archive.with_suffix(".npz")
    repo = Repo(
        request(tmp_path / "repo", "bare-metal", archive=archive, vectors=vectors if vectors.exists() else None)
    )
    output = repo.runs("run")
    assert all(words in output for words in said), output


def test_bare_metal_needs_only_make_and_the_compiler(tmp_path: Path) -> None:
    repo = Repo(request(tmp_path / "repo", "bare-metal"))
    decoys = tmp_path / "decoys"
    decoys.mkdir()
    for name in ("python", "python3", "mlfbuild", "cmake", "ninja", "scons"):
        (decoys / name).write_text(f"#!/bin/sh\necho {name} >>{decoys}/called\nexit 99\n")
        (decoys / name).chmod(0o755)
    status, output = repo.run("build", path=f"{decoys}:/usr/bin:/bin")
    assert status == 0, output
    assert not (decoys / "called").exists()


def test_make_models_updates_the_tree(tmp_path: Path) -> None:
    repo = Repo(request(tmp_path / "repo", "bare-metal"))
    repo.runs("build")
    tree = {path: path.stat().st_mtime_ns for path in (repo.root / "mlf").rglob("*")}
    path = f"{warm.programs()}{os.pathsep}{os.environ['PATH']}"
    models = ["make", "models"]
    subprocess.run(models, cwd=repo.root, env=os.environ | {"PATH": path}, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in (repo.root / "mlf").rglob("*")} == tree

    model = repo.root / "models/tones.tflite"
    data = bytearray(model.read_bytes())
    at = data.index(bytes([127, 127, 127, 127, 0, 0]))  # of the second layer's weights
    data[at : at + 4] = bytes(4)
    model.write_bytes(data)
    subprocess.run(models, cwd=repo.root, env=os.environ | {"PATH": path}, check=True, capture_output=True)
    status, output = repo.run("run")
    assert "FAIL" in output and status != 0


def mixed_network() -> tuple[bytes, np.ndarray]:
    """Return a float network with small, large and medium outputs for main.c to print, and an input for it."""
    network = Network()
    source = network.input((1, 4), name="static")
    weights = np.linspace(-1e3, 1e3, 12, dtype=np.float32).reshape(3, 4)
    output = network.fully_connected(source, weights, np.array([0.25, -5e6, 5e6], np.float32))
    return network.build([output]), np.array([[0.5, -1, 2, 0]], np.float32)


def test_floats_and_names_that_are_c_keywords(tmp_path: Path) -> None:
    content, given = mixed_network()
    (tmp_path / "net.tflite").write_bytes(content)
    expected = tflite_micro_run(content, [given])[0]
    np.savez(tmp_path / "v.npz", in0=given[np.newaxis], out0=expected[np.newaxis])
    asked = request(tmp_path / "repo", "bare-metal", model=tmp_path / "net.tflite", vectors=tmp_path / "v.npz")
    repo = Repo(asked)
    output = repo.runs("run")
    numbers = re.search(r"^net t\d+: (-?\d+\.\d{3}) < -4e6 > 4e6\nPASS$", output, re.MULTILINE)
    assert numbers, output
    assert float(numbers[1]) == pytest.approx(float(expected.flat[0]), abs=1e-3)
    np.savez(tmp_path / "v.npz", in0=given[np.newaxis], out0=(expected * np.float32(1.0001))[np.newaxis])
    worse = Repo(replace(asked, folder=tmp_path / "worse"))
    assert "FAIL" in worse.run("run")[1]


@pytest.mark.sweep
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("template", SELF_RUNNING)
@pytest.mark.parametrize("model", ["", "ad_f32", "ic_int8", "kws_int8", "vww_f32", "vww_int8"])
def test_every_template_on_every_board(shared: Path, tmp_path: Path, template: str, board: str, model: str) -> None:
    source = shared / f"models/{model}.tflite" if model else None
    repo = Repo(InitRequest(tmp_path / "repo", template, board, model=source))
    repo.runs("build")
    assert "PASS\n" in repo.runs("run")
    assert "right on" in repo.runs("verify")


@pytest.mark.sweep
def test_archive_that_requires_a_library_works(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the printed commands fetches the library from the place in the project file."""
    library = write_cmsis_nn_repository(tmp_path / "CMSIS-NN")
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "cache"))
    archives = shared / "archives"
    archive, vectors = archives / "kws_int8-cmsisnn_m4.tar", archives / "kws_int8-cmsisnn_m4.npz"
    repo = Repo(request(tmp_path / "fw", "cmake", archive=archive, vectors=vectors))
    repo.edit("mlfbuild.yml", "https://github.com/ARM-software/CMSIS-NN", library.as_uri())
    status, output = repo.run("build")
    assert status != 0 and "run `mlfbuild lock`" in output
    assert list(repo.report.commands) == ["lock", "build", "run", "verify"]
    assert "dependency cmsis-nn: git file:" in repo.runs("lock")
    repo.runs("build")
    assert "\nPASS" in repo.runs("run")
    assert "kws_int8: 1 case right on mps2-an386" in repo.runs("verify")
