"""Quantisation in builds: what runs again after which change, and what a project file with mistakes gets."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.jobs import hash_of
from support.command import Folder
from support.float_networks import calibration, float_onnx, float_tflite

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
  m4: {cpu: cortex-m4}
models:
  net: {source: net.tflite, quantize: {calibration: data.npz}}
"""
MADE = "build/quantized/net.tflite"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a project that has been built."""
    from mlfbuild.cli.output.invocation import run

    root = tmp_path_factory.mktemp("quantized")
    (root / "mlfbuild.yml").write_text(PROJECT)
    (root / "net.tflite").write_bytes(float_tflite())
    calibration(root / "data.npz")
    assert run(["-C", str(root), "build", "-q"]) == 0
    return root


@pytest.fixture
def project(built: Path, folder: Folder) -> Folder:
    shutil.copytree(built, folder.root, dirs_exist_ok=True)
    return folder


def made(project: Folder) -> dict[str, str]:
    """Return the key of the action that made each result."""
    keys = (project.root / "build").rglob("*.key")
    return {path.name.split(".")[1] + path.parent.name: json.loads(path.read_bytes())["key"] for path in keys}


def rebuilt(project: Folder) -> set[str]:
    """Build, and return what was made again."""
    times = {path: path.stat().st_mtime_ns for path in project.root.rglob("*.key")}
    project.run("build", "-q", status=0)
    return {path.parent.name for path in project.root.rglob("*.key") if times.get(path) != path.stat().st_mtime_ns}


def test_a_null_build_loads_no_engine_and_no_numpy(project: Folder) -> None:
    code = "import sys; from mlfbuild.cli import main; sys.argv[1:] = ['build']\ntry: main()\n"
    code += "finally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"numpy", "onnxruntime", "ai_edge_quantizer", "ai_edge_litert"}
    assert rebuilt(project) == set()


def test_equal_ranges_make_the_same_file_and_compile_nothing(project: Folder) -> None:
    before = (project.root / MADE).read_bytes()
    with np.load(project.root / "data.npz") as data:
        np.savez(project.root / "data.npz", in0=data["in0"][::-1])
    (state,) = [each for each in explained(project) if each["kind"] == "quantised model"]
    assert (state["state"], [change["name"] for change in state["changes"]]) == ("outdated", ["calibration"])
    assert rebuilt(project) == {"quantized"}
    assert (project.root / MADE).read_bytes() == before


def explained(project: Folder) -> list[dict[str, object]]:
    return list(project.run("why", "--format", "json", status=0).json["results"])


def other_data(project: Folder) -> None:
    calibration(project.root / "data.npz", seed=1)


def other_network(project: Folder) -> None:
    project.write("net.tflite", float_tflite(1))


def other_keys(project: Folder) -> None:
    project.write("mlfbuild.yml", PROJECT.replace("data.npz}", "data.npz, per-channel: false}"))


@pytest.mark.parametrize(
    "change", [other_data, *(pytest.param(each, marks=pytest.mark.sweep) for each in (other_network, other_keys))]
)
def test_changes_quantise_once_and_compile_for_each_target(project: Folder, change: Callable[[Folder], None]) -> None:
    before = (project.root / MADE).read_bytes()
    change(project)
    assert rebuilt(project) == {"quantized", "pc", "m4"}
    assert (project.root / MADE).read_bytes() != before
    assert rebuilt(project) == set()


@pytest.mark.sweep
@pytest.mark.parametrize("damage", ["edited", "deleted", "killed before the record"])
def test_a_damaged_product_is_made_again(project: Folder, damage: str) -> None:
    path, record = project.root / MADE, project.root / "build/quantized/.net.tflite.key"
    before = path.read_bytes()
    (record if damage.startswith("killed") else path).unlink()
    if damage == "edited":
        path.write_bytes(before[:-1])
    assert rebuilt(project) == {"quantized"}
    assert path.read_bytes() == before


def test_the_committed_file_gives_the_same_archive_without_an_engine(
    project: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = project.root / "build/mlf/m4/net.tar"
    before = archive.read_bytes()
    (project.root / "committed").mkdir()
    shutil.copy(project.root / MADE, project.root / "committed/net.tflite")
    shutil.rmtree(project.root / "build")
    project.write(
        "mlfbuild.yml", PROJECT.replace("net.tflite, quantize: {calibration: data.npz}", "committed/net.tflite")
    )
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    project.run("build", status=0)
    assert archive.read_bytes() == before


@pytest.mark.usefixtures("results_cache")
@pytest.mark.sweep
def test_the_cache_keeps_the_file(project: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(project.root / "build")
    project.run("build", status=0)
    before = (project.root / MADE).read_bytes()
    shutil.rmtree(project.root / "build")
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    project.run("build", status=0)
    assert (project.root / MADE).read_bytes() == before


def test_plan_lock_and_bill_have_the_step(project: Folder) -> None:
    model = project.run("plan", "--format", "json", status=0).json["models"][0]
    assert model["up_to_date"] and {"net.tflite", "data.npz"} <= {*map(name, model["reads"])}
    assert MADE in {place.removeprefix(f"{project.root.as_posix()}/") for place in model["writes"]}
    project.run("lock", "-q", status=0)
    locked = json.loads((project.root / "mlfbuild.lock").read_text())["models"]["net"]
    assert locked["source"] == "net.tflite" and locked["inputs"]
    project.run("build", "--frozen", "-q", status=0)
    (net,) = [each for each in project.run("sbom", "--format", "json").json["components"] if each["kind"] == "model"]
    assert net["properties"]["quantised"] == hash_of(project.root / MADE)
    other_data(project)
    assert project.refused("build", "--frozen")[:2] == (1, "lock-drift")


def name(place: str) -> str:
    return Path(place).name


@pytest.mark.sweep
@pytest.mark.usefixtures("host_tools")
def test_computed_vectors_of_a_quantised_onnx_network_are_right(folder: Folder) -> None:
    folder.write("net.onnx", float_onnx())
    calibration(folder.root / "data.npz", shape=(1, 3, 8, 8))
    folder.write("mlfbuild.yml", PROJECT.replace("net.tflite", "net.onnx").replace("  m4: {cpu: cortex-m4}\n", ""))
    folder.run("vectors", "net", status=0)
    with np.load(folder.root / "tests/net.npz") as vectors:
        assert {array.dtype.name for name, array in vectors.items() if name[-1] == "0"} == {"int8"}
    folder.run("verify", status=0)


def test_a_build_fails_once_for_bad_data(project: Folder) -> None:
    np.savez(project.root / "data.npz", in0=np.ones((4, 8, 8, 3), np.float32))
    assert project.refused("build")[:2] == (5, "calibration-constant")


@pytest.mark.parametrize(
    ("keys", "code", "key"),
    [
        ("{calibration: no.npz}", "no-such-file", "calibration"),
        ("{calibration: data.npz, method: entropy}", "unknown-method", "method"),
        ("{calibration: data.npz, activations: int4}", "unknown-type", "activations"),
        ("{calibration: data.npz, io: int16}", "quantize-io", "io"),
        ("{method: minmax}", "missing-key", ""),
    ],
)
def test_mistakes_in_the_project_file(folder: Folder, keys: str, code: str, key: str) -> None:
    folder.write("net.tflite", float_tflite())
    calibration(folder.root / "data.npz")
    folder.write("mlfbuild.yml", PROJECT.replace("{calibration: data.npz}", keys))
    ((found, place),) = folder.mistakes("check")
    assert (found, place.rpartition(".quantize")[2].lstrip(".")) == (code, key)


def test_keys_that_change_the_network_and_archives_are_refused(folder: Folder) -> None:
    folder.write("net.onnx", float_onnx())
    calibration(folder.root / "data.npz")
    text = PROJECT.replace("net.tflite,", "net.onnx, state: {x: y},")
    folder.write("mlfbuild.yml", text)
    assert "quantize-with-choice" in dict(folder.mistakes("check"))
    folder.write("net.tar", b"")
    folder.write("mlfbuild.yml", PROJECT.replace("net.tflite,", "net.tar,"))
    assert "quantize-format" in dict(folder.mistakes("check"))
