"""Workspaces: one file includes projects, and commands run for each of them."""

import pytest

from mlfbuild.project import json_schema
from support.command import Folder
from support.firmware_repo import tiny_network

MEMBER = "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4}}\nmodels: {net: {source: net.tflite}}\n"


@pytest.fixture
def workspace(folder: Folder) -> Folder:
    folder.write("mlfbuild.yml", "mlfbuild: 1\ninclude: {sensor: sensor/mlfbuild.yml, gateway: gw/all.yml}\n")
    folder.write("gw/all.yml", "mlfbuild: 1\ninclude: {radio: radio/mlfbuild.yml}\n")
    for seed, name in enumerate(("sensor", "gw/radio")):
        folder.write(f"{name}/mlfbuild.yml", MEMBER)
        folder.write(f"{name}/net.tflite", tiny_network(seed))
    return folder


def test_each_project_is_built_in_its_own_folder(workspace: Folder) -> None:
    found = workspace.run("build", "--format", "json", status=0).json
    assert {prefix: [model["archive"] for model in part["models"]] for prefix, part in found["projects"].items()} == {
        "sensor": ["sensor/build/mlf/m4/net.tar"],
        "gateway/radio": ["gw/radio/build/mlf/m4/net.tar"],
    }
    lines = workspace.run("build", status=0).out.splitlines()
    assert [line for line in lines if line.endswith(":")] == [
        "sensor (sensor/mlfbuild.yml):",
        "gateway/radio (gw/radio/mlfbuild.yml):",
    ]


def test_a_name_with_a_prefix_chooses_a_project(workspace: Folder) -> None:
    found = workspace.run("build", "--target", "gateway/radio/m4", "--format", "json", status=0).json
    assert [*found["projects"]] == ["gateway/radio"]
    refused = workspace.refused("build", "--target", "m4")
    assert refused == (2, "project-of-workspace-missing", "--target m4")


def test_all_projects_run_although_one_fails(workspace: Folder) -> None:
    workspace.write("sensor/net.tflite", b"no model")
    ended = workspace.run("build", "--format", "json", status=5)
    assert [*ended.json["projects"]] == ["gateway/radio"]
    assert ended.error["place"].startswith("sensor/net.tflite")
    for name in ("sensor", "gw/radio"):
        workspace.write(f"{name}/mlfbuild.yml", MEMBER + "typo: 1\n")
    ended = workspace.run("check", status=2)
    assert "sensor/mlfbuild.yml:4:1" in ended.err and "gw/radio/mlfbuild.yml:4:1" in ended.err


def test_commands_for_one_project_ask_for_it(workspace: Folder) -> None:
    assert workspace.mistakes("plan") == [("workspace-not-project", "mlfbuild.yml:2:1: include")]
    assert workspace.run("plan", "-f", "sensor/mlfbuild.yml").status == 0


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("include: {a: missing.yml}", ("no-project-file", "mlfbuild.yml:2:14: include.a")),
        ("include: {a: mlfbuild.yml}", ("include-cycle", "mlfbuild.yml:2:10: include")),
        ("include: {}", ("empty-collection", "mlfbuild.yml:2:10: include")),
        ("include: {a: sensor/mlfbuild.yml}\nmodels: {}", ("unknown-key", "mlfbuild.yml:3:1: models")),
        ("include: [sensor/mlfbuild.yml]", ("wrong-type", "mlfbuild.yml:2:10: include")),
    ],
)
def test_mistakes_have_places(workspace: Folder, text: str, mistake: tuple[str, str]) -> None:
    workspace.write("mlfbuild.yml", f"mlfbuild: 1\n{text}\n")
    assert workspace.mistakes("check") == [mistake]


def test_the_schema_accepts_workspaces_and_projects() -> None:
    import jsonschema

    check = jsonschema.Draft202012Validator(json_schema())
    project = {"mlfbuild": 1, "targets": {"m4": {"cpu": "cortex-m4"}}, "models": {"net": {"source": "net.tflite"}}}
    assert check.is_valid({"mlfbuild": 1, "include": {"sensor": "sensor/mlfbuild.yml"}})
    assert check.is_valid(project)
    assert not check.is_valid({"mlfbuild": 1})
    assert not check.is_valid({**project, "include": {"sensor": "sensor/mlfbuild.yml"}})
