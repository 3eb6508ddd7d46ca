"""Builds notice a model that a pattern matches, and vectors that are found, as soon as the file exists."""

from pathlib import Path

import pytest

from mlfbuild.usecases import project_inputs, stamps
from support.command import Folder
from support.firmware_repo import tiny_network

SHORT = "mlfbuild: 1\ntargets: [host]\nmodels: [nets/*.tflite]\n"


@pytest.fixture
def short(folder: Folder) -> Folder:
    folder.write("mlfbuild.yml", SHORT)
    add(folder, "alpha", 1)
    return folder


def add(folder: Folder, name: str, seed: int) -> None:
    (folder.root / "nets").mkdir(exist_ok=True)
    (folder.root / f"nets/{name}.tflite").write_bytes(tiny_network(seed))


def compiled(folder: Folder) -> dict[str, bool]:
    return {model["model"]: model["compiled"] for model in folder.run("build", "--format", "json").json["models"]}


def test_a_build_compiles_a_new_model_and_nothing_else(short: Folder) -> None:
    assert compiled(short) == {"alpha": True}
    add(short, "beta", 2)
    assert compiled(short) == {"alpha": False, "beta": True}
    (short.root / "nets/alpha.tflite").unlink()
    assert compiled(short) == {"beta": False}


def test_watch_looks_at_the_folder_of_a_pattern(short: Folder) -> None:
    from mlfbuild.jobs import load

    watched = project_inputs(load(Path("mlfbuild.yml")))
    before = stamps(watched)
    assert stamps(watched) == before
    add(short, "beta", 2)
    assert [str(path) for path, state in stamps(watched).items() if state != before[path]] == ["nets"]


@pytest.mark.usefixtures("host_tools")
def test_verify_runs_vectors_as_soon_as_they_exist(short: Folder) -> None:
    assert short.run("check").out.splitlines() == ["mlfbuild.yml: no mistakes (1 target, 1 model, 0 firmware)"]
    assert short.run("vectors", "alpha", "--self").err == "tests/alpha.npz: written; commit it\n"
    found = "alpha: vectors tests/alpha.npz, found by the name of the model"
    assert short.run("check").out.splitlines()[0] == found
    assert short.run("plan").out.splitlines().count("  vectors: tests/alpha.npz, found by the name of the model") == 1
    verified = short.run("verify", "--format", "json").json
    assert [(result["model"], result["passed"]) for result in verified] == [("alpha", True)]
