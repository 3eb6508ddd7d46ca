"""``mlfbuild why``: which inputs changed since the last build, and where each result is from."""

from pathlib import Path
from typing import Any

import pytest

from support.command import Folder
from support.firmware_repo import tiny_network

VERIFIED = "verification of alpha for pc"


def built(folder: Folder) -> dict[str, Any]:
    """Return what is known about archives and images."""
    return {title: result for title, result in found(folder).items() if title != VERIFIED}


def found(folder: Folder, *arguments: str) -> dict[str, Any]:
    results = folder.run("why", *arguments, "--format", "json", status=0).json["results"]
    return {result["title"]: result for result in results}


def changed(result: dict[str, Any]) -> list[str]:
    return [change["name"] for change in result["changes"]]


def cause(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(change["name"], change["before"], change["now"]) for change in result["record"]["because"]]


@pytest.mark.usefixtures("host_tools")
def test_changed_inputs_are_named_before_and_after_the_build_that_they_cause(folder: Folder) -> None:
    states = {title: result["state"] for title, result in found(folder).items()}
    assert states == dict.fromkeys(("alpha for pc", "beta for pc", "app for pc"), "missing") | {VERIFIED: "never"}
    folder.run("build", status=0)
    before = built(folder)
    assert {result["state"] for result in before.values()} == {"current"}
    assert {result["record"]["origin"] for result in before.values()} == {"compiled", "linked"}

    old = before["alpha for pc"]["record"]["inputs"]["model alpha.tflite"]
    folder.write("models/alpha.tflite", tiny_network(9))
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("beta.tflite", "beta.tflite, options: {memory: smallest}"))
    folder.write("main.c", (folder.root / "main.c").read_text() + "/* edited */\n")
    stale = built(folder)
    assert {result["state"] for result in stale.values()} == {"outdated"}
    assert changed(stale["alpha for pc"]) == ["model alpha.tflite"]
    assert changed(stale["beta for pc"]) == ["options.memory"]
    assert changed(stale["app for pc"]) == ["model alpha for pc", "model beta for pc", "main.c"]

    folder.run("build", status=0)
    after = built(folder)
    assert {result["state"] for result in after.values()} == {"current"}
    new = after["alpha for pc"]["record"]["inputs"]["model alpha.tflite"]
    assert cause(after["alpha for pc"]) == [("model alpha.tflite", old, new)]
    assert cause(after["beta for pc"]) == [("options.memory", "", "smallest")]
    assert "main.c" in {name for name, _, _ in cause(after["app for pc"])}
    folder.run("build", status=0)
    assert built(folder) == after, "a build with nothing to do records nothing"


@pytest.mark.usefixtures("host_tools")
def test_headers_and_compiler_are_inputs_of_an_image(folder: Folder) -> None:
    folder.write("pins.h", "#define PIN 1\n")
    folder.write("main.c", '#include "pins.h"\n' + (folder.root / "main.c").read_text())
    folder.run("build", status=0)
    inputs = found(folder, "app")["app for pc"]["record"]["inputs"]
    assert {"pins.h", "main.c"} <= {*inputs}
    assert any("gcc" in Path(name).name for name in inputs)
    folder.write("pins.h", "#define PIN 2\n")
    assert changed(found(folder, "app")["app for pc"]) == ["pins.h"]


@pytest.mark.usefixtures("host_tools")
def test_changes_since_a_verification_are_named(folder: Folder) -> None:
    folder.run("verify", status=0)
    assert found(folder, "alpha")[VERIFIED]["state"] == "passed"
    folder.write_vectors("alpha", wrong=True)
    stale = found(folder, "alpha")[VERIFIED]
    assert (stale["state"], changed(stale)) == ("outdated", ["vectors"])
    folder.run("verify", status=1)
    assert found(folder, "alpha")[VERIFIED]["state"] == "failed"


def test_an_edited_archive_and_a_copy_are_told_apart(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host}\n  spare: {cpu: host}"))
    folder.run("build", "--model", "alpha", status=0)
    results = {title: result for title, result in found(folder, "alpha").items() if result["record"]}
    assert {title: result["record"]["origin"] for title, result in results.items()} == {
        "alpha for pc": "compiled",
        "alpha for spare": "copied",
    }
    folder.write("build/mlf/spare/alpha.tar", b"edited")
    edited = found(folder, "alpha", "--target", "spare")["alpha for spare"]
    assert edited["state"] == "edited"
    lines = folder.run("why", "alpha", status=0).out.splitlines()
    assert [line for line in lines if not line.startswith(" ")][:2] == [
        "alpha for pc: the archive is up to date",
        "alpha for spare: the archive is not the one that mlfbuild made",
    ]


def test_an_unknown_name_is_refused(folder: Folder) -> None:
    assert folder.refused("why", "alpa") == (2, "unknown-model-or-firmware", "mlfbuild.yml")
