"""Facts for later stages in archives: written by `compile` and projects, kept, shown, counted, and used."""

import io
import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.archive import open_archive, pack_archive
from mlfbuild.core import InputFileError
from mlfbuild.jobs import load, target_jobs
from mlfbuild.library import Fact, Library
from support import warm
from support.firmware_repo import tiny_network
from support.libraries import native_library
from support.project_api_client import LocalClient

FACTS: dict[str, Fact] = {
    "board": "mps3-an547", "project_type": "example_project", "retries": 3, "gain": 0.5, "fpu": True,
}  # fmt: skip


def recorded(facts: dict[str, Fact]) -> Library:
    library = native_library("tiny")
    return replace(library, modules=tuple(replace(module, extensions=facts) for module in library.modules))


def run(folder: Path, *words: object, status: int = 0) -> Any:
    done = warm.run("mlfbuild", *words, "--format", "json", cwd=folder, status=status)
    return json.loads(done.stdout) if done.stdout else json.loads(done.stderr.splitlines()[-1])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "facts.tar"
    path.write_bytes(pack_archive(recorded(FACTS)))
    return path


@pytest.mark.parametrize("version", [5, 6, 7])
def test_every_version_keeps_facts(archive: Path, version: int) -> None:
    run(archive.parent, "convert", archive.name, "--to", version, "-o", "other.tar")
    (module,) = open_archive(archive.with_name("other.tar")).modules
    assert module.extensions == FACTS
    assert [type(module.extensions[name]) for name in FACTS] == [type(value) for value in FACTS.values()]


def test_merging_and_splitting_keep_the_facts_of_each_module(archive: Path) -> None:
    other = replace(native_library("other").modules[0], extensions={"board": "here"})
    archive.with_name("other.tar").write_bytes(pack_archive(replace(native_library("other"), modules=(other,))))
    run(archive.parent, "merge", "facts.tar", "other.tar", "-o", "both.tar")
    both = {module.name: module.extensions for module in open_archive(archive.with_name("both.tar")).modules}
    assert both == {"tiny": FACTS, "other": {"board": "here"}}


def test_facts_are_shown_and_counted(archive: Path) -> None:
    assert run(archive.parent, "inspect", archive.name)["modules"][0]["extensions"] == FACTS
    text = warm.run("mlfbuild", "inspect", archive.name, cwd=archive.parent, check=True).stdout
    assert re.search(r"\n  extension +board: 'mps3-an547'\n +fpu: true\n", text)
    archive.with_name("b.tar").write_bytes(pack_archive(recorded({**FACTS, "fpu": 1, "board": "x"})))
    found = run(archive.parent, "compare", "facts.tar", "b.tar", status=1)["differences"]
    assert [(each["what"], each["name"]) for each in found] == [("extension", "board"), ("extension", "fpu")]


def test_archives_without_facts_are_as_before() -> None:
    assert pack_archive(recorded({})) == pack_archive(native_library("tiny"))


@pytest.mark.parametrize(
    "value",
    [[], {"a": []}, {"a": {}}, {"a": None}, {"0": 1}, {"a b": 1}, {"a": "x" * 5000}, {"a": 1 << 63},
     {f"n{i}": i for i in range(300)}],
)  # fmt: skip
def test_damaged_facts(archive: Path, value: object) -> None:
    members: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for entry in tar:
            file = tar.extractfile(entry)
            if file is not None:
                members[entry.name] = file.read()
    name = next(name for name in members if name.endswith("metadata.json"))
    document = json.loads(members[name])
    document["modules"]["tiny"]["mlfbuild"]["extensions"] = value
    members[name] = json.dumps(document).encode()
    with tarfile.open(archive, "w") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    with pytest.raises(InputFileError) as caught:
        open_archive(archive)
    assert caught.value.code in {"json-type-wrong", "json-value-invalid"}
    assert "mlfbuild" in caught.value.place


def test_compile_records_facts_and_init_uses_the_board(tmp_path: Path) -> None:
    (tmp_path / "tiny.tflite").write_bytes(tiny_network(1))
    facts = [
        word for name, value in FACTS.items() for word in ("--extension", f"{name}={json.dumps(value).strip(chr(34))}")
    ]
    run(tmp_path, "compile", "tiny.tflite", "--cpu", "cortex-m55", *facts, "-o", "tiny.tar")
    assert open_archive(tmp_path / "tiny.tar").modules[0].extensions == FACTS
    run(tmp_path, "init", "one", "--archive", "tiny.tar")
    assert "m55: {cpu: cortex-m55, board: mps3-an547}" in (tmp_path / "one/mlfbuild.yml").read_text()
    paths = {"model_library_format_path": "tiny.tar", "standalone_crt_dir": "", "project_dir": str(tmp_path / "two")}
    paths["model_library_format_path"] = str(tmp_path / "tiny.tar")
    LocalClient(tmp_path).call("generate_project", **paths, options={})
    assert "board: mps3-an547" in (tmp_path / "two/mlfbuild.yml").read_text()
    assert not (tmp_path / "two/src/mlf_rpc.c").exists()  # the archive chose example_project
    run(tmp_path, "compile", "tiny.tflite", "--cpu", "host", "--extension", "board=nucleo", "-o", "n.tar")
    assert "'nucleo'" in run(tmp_path, "init", "three", "--archive", "n.tar")["notes"][0]


@pytest.mark.parametrize("fact", ["board", "=x", "0=x", "a b=x", "a=1e999", "a=NaN", f"a={'x' * 5000}"])
def test_facts_that_cannot_be_recorded(tmp_path: Path, fact: str) -> None:
    (tmp_path / "tiny.tflite").write_bytes(tiny_network(1))
    words = ("compile", "tiny.tflite", "--cpu", "host", "--extension", fact, "-o", "out.tar")
    assert run(tmp_path, *words, status=2)["code"] in {"option-without-value", "invalid-name", "fact-invalid"}
    assert not (tmp_path / "out.tar").exists()


def test_a_project_records_facts_and_rebuilds_if_they_change(tmp_path: Path) -> None:
    (tmp_path / "tiny.tflite").write_bytes(tiny_network(1))
    project = "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {tiny: {source: tiny.tflite, extensions: %s}}\n"
    for facts, compiled in (("{board: a}", True), ("{board: a}", False), ("{board: b, n: 2}", True)):
        (tmp_path / "mlfbuild.yml").write_text(project % facts)
        (model,) = run(tmp_path, "build")["models"]
        assert model["compiled"] is compiled
    (target,) = target_jobs(load(tmp_path / "mlfbuild.yml"))
    assert open_archive(tmp_path / target.models[0].archive).modules[0].extensions == {"board": "b", "n": 2}
    (tmp_path / "mlfbuild.yml").write_text(project % "{0: a, a: .inf, b: [1]}")
    problems = run(tmp_path, "check", status=2)["problems"]
    assert [text.split(":")[3] for text in problems] == [f" models.tiny.extensions{key}" for key in ("", ".a", ".b")]
