"""`mlfbuild add` writes one entry, vectors and a budget that holds, or nothing."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.core import StorageError
from mlfbuild.project import Budget, load_project
from mlfbuild.usecases.add import adding
from mlfbuild.usecases.add.project_text import with_model
from mlfbuild.verify import vectors_origin
from support.command import Ended, Folder
from support.firmware_repo import tiny_network
from support.libraries import native_library

PROJECT = """\
# The wing's firmware
mlfbuild: 1

targets:
  m4:  {cpu: cortex-m4, board: qemu}   # the board on the desk
  pc: { cpu: host }
models:
  alpha:
    source:   nets/alpha.tflite   # ours
  # more will follow

# images
firmware:
  app: {sources: [main.c], models: [alpha], targets: [m4]}
"""
ADDED = """\
  beta:
    source: nets/beta.tflite
    interface: {{inputs: [t0], outputs: [t3]}}
    vectors: tests/beta.npz
    budget: {{flash: {flash}, ram: {ram}}}
"""
C = """\
#include "tvmgen_beta.h"

/* Put the inputs into in_<name>; the results are in out_<name>. */
static int32_t run_beta(void)
{
    static int8_t in_t0[MLF_BETA_T0_ELEMENTS];
    static int8_t out_t3[MLF_BETA_T3_ELEMENTS];
    struct tvmgen_beta_inputs inputs = {.t0 = in_t0};
    struct tvmgen_beta_outputs outputs = {.t3 = out_t3};
    return tvmgen_beta_run(&inputs, &outputs);
}
"""


@pytest.fixture
def repo(folder: Folder) -> Folder:
    """A project with one of two models, on the host and on a board."""
    return written(folder, PROJECT)


def written(folder: Folder, text: str) -> Folder:
    folder.write("mlfbuild.yml", text)
    (folder.root / "nets").mkdir()
    for seed, name in enumerate(("alpha", "beta")):
        (folder.root / f"nets/{name}.tflite").write_bytes(tiny_network(seed))
    return folder


def contents(folder: Folder) -> dict[str, bytes]:
    return {path: (folder.root / path).read_bytes() for path in folder.files()}


def added(repo: Folder, *arguments: str) -> Any:
    ended = repo.run("add", "nets/beta.tflite", *arguments, "--format", "json")
    assert ended.status == 0, ended.err
    return ended.json


def refused(repo: Folder, *arguments: str) -> tuple[int, str]:
    """Return exit status and code of an addition that changes nothing."""
    before = contents(repo)
    ended: Ended = repo.run("add", *arguments, "--format", "json")
    assert contents(repo) == before
    return ended.status, ended.error["code"]


@pytest.fixture
def arm_tools(tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc")


@pytest.mark.usefixtures("arm_tools")
def test_a_model_gets_an_entry_vectors_and_a_budget(repo: Folder) -> None:
    result = added(repo)
    budget = result["budget"]
    lines = PROJECT.splitlines(keepends=True)
    place = lines.index("  # more will follow\n") + 1
    entry = ADDED.format(**budget)
    assert (repo.root / "mlfbuild.yml").read_text() == "".join([*lines[:place], entry, *lines[place:]])
    assert result["code"] == C
    assert (result["name"], result["written"]) == ("beta", ["mlfbuild.yml", "tests/beta.npz"])
    assert result["notes"][1:] == ["add beta to the models of firmware app to link it"]
    origin = vectors_origin(repo.root / "tests/beta.npz")
    assert origin is not None
    assert origin.judge.startswith("TensorFlow Lite Micro")
    model = load_project(repo.root / "mlfbuild.yml").models["beta"]
    assert model.budget == Budget(**budget)
    assert refused(repo, "nets/beta.tflite") == (2, "model-already-added")


@pytest.mark.usefixtures("arm_tools")
def test_the_budget_is_the_linked_size_and_a_tenth(repo: Folder) -> None:
    budget = added(repo, "--target", "m4")["budget"]
    text = (repo.root / "mlfbuild.yml").read_text()
    assert "    targets: [m4]\n" in text
    repo.write("main.c", f"{C}\nint main(void)\n{{\n    return run_beta();\n}}\n")
    repo.write("mlfbuild.yml", text.replace("models: [alpha], targets", "models: [beta], targets"))
    report = repo.run("report", "--target", "m4", "--format", "json").json
    (model,) = (each for image in report["images"] for each in image["models"] if each["name"] == "beta")
    assert budget == {"flash": -(-model["flash"] * 11 // 10), "ram": -(-model["ram"] * 11 // 10)}


def test_models_of_this_machine_have_no_budget_and_vectors_are_kept(folder: Folder) -> None:
    written(folder, "mlfbuild: 1\ntargets: [host]\nmodels:\n- nets/alpha.tflite # first\n")
    folder.run("vectors", "alpha", "--self")
    (folder.root / "tests/alpha.npz").rename(folder.root / "tests/beta.npz")
    with np.load(folder.root / "tests/beta.npz") as arrays:
        np.savez(folder.root / "tests/beta.npz", in0=arrays["in0"], out0=arrays["out0"])
    own = (folder.root / "tests/beta.npz").read_bytes()
    result = added(folder)
    assert (result["budget"], result["written"]) == ({}, ["mlfbuild.yml"])
    text = "mlfbuild: 1\ntargets: [host]\nmodels:\n- nets/alpha.tflite # first\n- nets/beta.tflite\n"
    assert (folder.root / "mlfbuild.yml").read_text() == text
    assert (folder.root / "tests/beta.npz").read_bytes() == own
    project = load_project(folder.root / "mlfbuild.yml")
    assert list(project.found_vectors) == ["beta"]


def test_a_model_in_a_list_has_no_budget(folder: Folder) -> None:
    written(folder, 'mlfbuild: 1\ntargets: [cortex-m4]\nmodels: ["nets/a*.tflite"]\n')
    assert added(folder)["budget"] == {}
    text = 'mlfbuild: 1\ntargets: [cortex-m4]\nmodels: ["nets/a*.tflite", nets/beta.tflite]\n'
    assert (folder.root / "mlfbuild.yml").read_text() == text
    assert refused(folder, "nets/alpha.tflite") == (2, "model-already-added")


def test_vectors_of_another_model_are_refused(folder: Folder) -> None:
    written(folder, "mlfbuild: 1\ntargets: [host]\nmodels: {alpha: nets/alpha.tflite}\n")
    (folder.root / "tests").mkdir()
    np.savez(folder.root / "tests/beta.npz", in0=np.zeros((1, 9), np.int8), out0=np.zeros((1, 4), np.int8))
    assert refused(folder, "nets/beta.tflite")[0] == 5


def test_an_archive_has_an_entry_and_no_vectors(folder: Folder) -> None:
    written(folder, "mlfbuild: 1\ntargets: [host]\nmodels: {alpha: nets/alpha.tflite}\n")
    (folder.root / "nets/net.tar").write_bytes(pack_archive(native_library("net")))
    assert folder.run("add", "nets/net.tar", "-q") == Ended(0, "", "")
    model = load_project(folder.root / "mlfbuild.yml").models["net"]
    assert (model.compiler, model.vectors) == ("archive", {})


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["nets/alpha.tflite"], 2, "model-already-added"),
        (["nets/beta.tflite", "--name", "alpha"], 2, "model-name-taken"),
        (["nets/beta.tflite", "--name", "Beta"], 2, "invalid-name"),
        (["nets/beta.tflite", "--name", "board"], 2, "reserved-name"),
        (["nets/beta.tflite", "--target", "m5"], 2, "unknown-target"),
        (["nets/none.tflite"], 5, "no-such-input"),
        (["main.c"], 5, "unsupported-model-file"),
        (["nets/text.tflite"], 5, "tflite-malformed"),
        (["../outside.tflite"], 2, "model-outside-project"),
    ],
)
def test_what_cannot_be_added_changes_nothing(repo: Folder, arguments: list[str], status: int, code: str) -> None:
    (repo.root / "nets/text.tflite").write_text("no model")
    outside = repo.root.parent / "outside.tflite"
    outside.write_bytes(tiny_network(3))
    assert refused(repo, *arguments) == (status, code)


def test_a_list_of_models_has_no_names_and_targets(folder: Folder) -> None:
    written(folder, "mlfbuild: 1\ntargets: [host]\nmodels: [nets/alpha.tflite]\n")
    assert refused(folder, "nets/beta.tflite", "--name", "other") == (2, "list-of-models")
    assert refused(folder, "nets/beta.tflite", "--target", "host") == (2, "list-of-models")


def test_a_missing_package_is_named(repo: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.core.extras._is_there", lambda module: not module.startswith("ruamel"))
    before = contents(repo)
    ended = repo.run("add", "nets/beta.tflite")
    assert ended.status == 3
    assert "pip install 'ruamel.yaml>=0.18'" in ended.err
    assert contents(repo) == before


def test_a_read_only_project_file_stays_as_it_is(repo: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "mlfbuild.yml" and access(path, mode))
    assert refused(repo, "nets/beta.tflite") == (8, "cannot-write")


def test_vectors_are_removed_if_the_project_file_cannot_be_written(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, "mlfbuild: 1\ntargets: [host]\nmodels: {alpha: nets/alpha.tflite}\n")

    def full(path: Path, _data: bytes) -> None:
        assert (folder.root / "tests/beta.npz").is_file()
        raise StorageError("cannot-write", place=path, reason="the disk is full")

    monkeypatch.setattr(adding, "write_atomic", full)
    assert refused(folder, "nets/beta.tflite") == (8, "cannot-write")


# The text of the project file ----------------------------------------------------------------------------------------

KEYS = {"source": "b.onnx", "budget": {"flash": 1, "ram": 2}}
FLOW = "{source: b.onnx, budget: {flash: 1, ram: 2}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("models: {a: a.onnx}   # c\nx:  1\n", f"models: {{a: a.onnx, b: {FLOW}}} # c\nx:  1\n"),
        ('models: [ "a*.onnx" ]\nx:  1\n', 'models: ["a*.onnx", b.onnx]\nx:  1\n'),
        ("models:\n- a.onnx\n\n# x\nx:  1\n", "models:\n- a.onnx\n- b.onnx\n\n# x\nx:  1\n"),
        ("models:\n    - a.onnx\n", "models:\n    - a.onnx\n    - b.onnx\n"),
        ("models:\n   a: {source: a.onnx}", f"models:\n   a: {{source: a.onnx}}\n   b: {FLOW}"),
        ("x: [1,\n  2]\nmodels:\n  a: a.onnx\n", None),
        ("models:\r\n  a: {source: a.onnx}\r\n", f"models:\r\n  a: {{source: a.onnx}}\r\n  b: {FLOW}\r\n"),
        ("x: [1,\n  2]\nmodels: {a: a.onnx}\n", ""),
    ],
)
def test_only_lines_of_the_model_are_written(before: str, after: str | None) -> None:
    whole = f"{before}  b:\n    source: b.onnx\n    budget: {{flash: 1, ram: 2}}\n" if after is None else after
    assert with_model(before, "b", KEYS) == (whole or None)


FIRST = "\n  b:\n    source: b.onnx\n    budget: {flash: 1, ram: 2}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x: 1\n", f"x: 1\n\nmodels:{FIRST}"),
        ("x: 1", f"x: 1\n\nmodels:{FIRST}"),
        ("models:   # ours\nx: 1\n", f"models:   # ours{FIRST}x: 1\n"),
        ("models: {}\nx: 1\n", f"models:{FIRST}x: 1\n"),
        ("models: []   # ours\n", f"models:   # ours{FIRST}"),
        ("models: {\n}\n", None),
        ("{x: 1}\n", None),
        ("[x]\n", None),
    ],
)
def test_the_first_model_gets_a_section(before: str, after: str | None) -> None:
    assert with_model(before, "b", KEYS) == after


@pytest.mark.parametrize("models", ["", "models:\n", "models: {}\n"])
def test_a_project_without_models_gets_its_first(folder: Folder, models: str) -> None:
    written(folder, f"mlfbuild: 1\n{models}targets: [host]\n")
    assert added(folder)["name"] == "beta"
    assert list(load_project(folder.root / "mlfbuild.yml").models) == ["beta"]


def test_other_mistakes_of_a_project_without_models_are_reported(folder: Folder) -> None:
    written(folder, "mlfbuild: 1\ntargets: [hots]\nmodels:\n")
    assert refused(folder, "nets/beta.tflite") == (2, "project-file")


def test_the_c_compiles_and_runs(folder: Folder, tool: Callable[..., str]) -> None:
    written(folder, "mlfbuild: 1\ntargets: [host]\nmodels: {alpha: nets/alpha.tflite}\n")
    code = added(folder)["code"]
    folder.write("use.c", f"{code}\nint main(void)\n{{\n    return run_beta();\n}}\n")
    folder.run("build", "--model", "beta")
    tree = folder.root / "build/mlf/host/beta"
    sources = [str(path) for path in tree.rglob("*.c")]
    includes = [f"-I{path}" for path in {header.parent for header in tree.rglob("*.h")}]
    flags = ["-Wall", "-Wextra", "-Werror", *includes]
    subprocess.run([tool("gcc"), *flags, "use.c", *sources, "-lm", "-o", "use"], cwd=folder.root, check=True)
    assert subprocess.run([folder.root / "use"], check=False).returncode == 0
