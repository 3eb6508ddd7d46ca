"""``build --affected-by`` and ``--shard``: each builds a part, and what is left out is right."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import Folder
from support.examples import first_on_push
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}, spare: {cpu: host}}
models:
  alpha: {source: models/alpha.tflite}
  beta: {source: models/beta.tflite}
firmware:
  one: {sources: [one/main.c], include-dirs: [one], models: [alpha], targets: [pc]}
  two: {sources: [two/main.c], models: [beta], targets: [pc]}
"""


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(folder: Folder) -> Folder:
    folder.write("mlfbuild.yml", PROJECT)
    folder.write("one/pins.h", "#define PIN 1\n")
    folder.write("one/main.c", '#include "pins.h"\n#include "tvmgen_alpha.h"\nint main(void) { return PIN; }\n')
    folder.write("two/main.c", '#include "tvmgen_beta.h"\nint main(void) { return 0; }\n')
    folder.write(".gitignore", "build/\n")
    git(folder.root, "init", "-q")
    git(folder.root, "add", ".")
    git(folder.root, "commit", "-qm", "first")
    return folder


def built(folder: Folder, *words: str) -> tuple[list[str], list[str]]:
    """Return the models and images that a build considers."""
    found = folder.run("build", "--format", "json", *words, status=0).json
    models = [f"{model['model']} for {model['target']}" for model in found["models"]]
    return models, [f"{image['firmware']} for {image['target']}" for image in found["firmware"]]


def edit_model(folder: Folder) -> None:
    folder.write("models/alpha.tflite", tiny_network(9))


def edit_settings(folder: Folder) -> None:
    folder.write("mlfbuild.yml", PROJECT.replace("beta.tflite}", "beta.tflite, options: {memory: smallest}}"))


@pytest.mark.usefixtures("host_tools")
@pytest.mark.parametrize("linked", first_on_push([True, False]), ids=["linked before", "clean checkout"])
@pytest.mark.parametrize(
    ("change", "models", "images"),
    [
        (lambda _: None, [], []),
        (lambda folder: folder.write("README", "text"), [], []),
        (lambda folder: folder.write("mlfbuild.yml", f"# a comment\n{PROJECT}"), [], []),
        (edit_model, ["alpha for pc", "alpha for spare"], ["one for pc"]),
        (lambda folder: folder.write("one/pins.h", "#define PIN 2\n"), ["alpha for pc"], ["one for pc"]),
        (lambda folder: folder.write("two/main.c", "int main(void) { return 1; }\n"), ["beta for pc"], ["two for pc"]),
        (edit_settings, ["beta for pc", "beta for spare"], ["two for pc"]),
    ],
    ids=["nothing", "other file", "comment", "model", "header", "source", "settings"],
)
def test_only_what_a_change_affects_is_built(
    repository: Folder, change: Callable[[Folder], object], models: list[str], images: list[str], *, linked: bool
) -> None:
    if linked:
        repository.run("build", status=0)
    change(repository)
    assert built(repository, "--affected-by", "HEAD") == (models, images)


@pytest.mark.usefixtures("host_tools")
def test_committed_changes_count_from_the_revision(repository: Folder) -> None:
    edit_model(repository)
    git(repository.root, "commit", "-qam", "second")
    assert built(repository, "--affected-by", "HEAD") == ([], [])
    assert built(repository, "--affected-by", "HEAD~1")[1] == ["one for pc"]


@pytest.mark.usefixtures("host_tools")
@pytest.mark.parametrize("count", first_on_push([3, 1, 2, 9]))
def test_shares_are_disjoint_and_complete(repository: Folder, count: int) -> None:
    whole = built(repository)
    parts = [built(repository, "--shard", f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(image for _, images in parts for image in images) == sorted(whole[1])
    assert {model for models, _ in parts for model in models} == {*whole[0]}


@pytest.mark.usefixtures("host_tools")
def test_shares_follow_the_recorded_durations(repository: Folder) -> None:
    repository.run("build", "--store-durations", status=0)
    recorded = json.loads((repository.root / "mlfbuild-durations.json").read_text())
    assert {*recorded} == {*built(repository)[0], *built(repository)[1]}
    costs = {"one for pc": 100.0, "two for pc": 1.0, "alpha for spare": 1.0, "beta for spare": 1.0}
    repository.write("mlfbuild-durations.json", json.dumps(costs))
    assert built(repository, "--shard", "1/2") == (["alpha for pc"], ["one for pc"])
    assert built(repository, "--shard", "2/2")[1] == ["two for pc"]


def test_refusals(repository: Folder, tmp_path: Path) -> None:
    assert repository.refused("build", "--affected-by", "nowhere")[:2] == (2, "unknown-revision")
    assert repository.run("build", "--shard", "4/3").status == 2
    assert repository.run("build", "--shard", "0/3").status == 2
    assert (
        repository.refused("build", "--tree", "out", "--target", "pc", "--shard", "1/2")[1] == "option-not-applicable"
    )
    repository.write("mlfbuild-durations.json", "[1]")
    assert repository.refused("build", "--shard", "1/2")[:2] == (5, "durations-damaged")
    git(repository.root, "commit", "--allow-empty", "-qm", "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository.root}", "clone")
    ended = repository.run("-f", "clone/mlfbuild.yml", "build", "--affected-by", "HEAD~1", status=2)
    assert "`git fetch --unshallow`" in ended.err
    (tmp_path / ".git").rename(tmp_path / "no-git")
    assert repository.refused("build", "--affected-by", "HEAD")[:2] == (2, "project-not-in-git")
