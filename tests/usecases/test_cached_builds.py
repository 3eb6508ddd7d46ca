"""Builds take archives from the cache of results, whichever driver made them, and say so."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs import load, model_builds, target_jobs
from mlfbuild.jobs.compilation import Compiled, compile_model
from mlfbuild.jobs.model_builds import archive_record, compile_if_needed
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.jobs.travel import stays
from mlfbuild.usecases import build_project, generate_model
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4}, m7: {cpu: cortex-m7}}
models: {net: {source: net.tflite}}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Callable[[str], Path]:
    """A function that returns the project file of a new checkout."""

    def make(name: str, text: str = PROJECT) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "net.tflite").write_bytes(tiny_network(1))
        (folder / "mlfbuild.yml").write_text(text)
        return folder / "mlfbuild.yml"

    return make


def origins(project: Path) -> list[str]:
    return [result.origin for result in build_project(target_jobs(load(project))).models]


def archives(project: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in project.parent.rglob("*.tar")}


def test_another_checkout_compiles_nothing(results_cache: Path, checkout: Callable[[str], Path]) -> None:
    first, second = checkout("first"), checkout("the second")
    assert origins(first) == ["compiled", "compiled"]
    assert origins(second) == ["local", "local"]
    assert archives(first) == archives(second)
    assert origins(second) == ["", ""]
    record = archive_record(target_jobs(load(second))[0].models[0])
    assert record is not None and record.origin == "local"
    assert len([*results_cache.rglob("ac/*/*")]) == 2


@pytest.mark.usefixtures("results_cache")
def test_drivers_share_the_cache(checkout: Callable[[str], Path]) -> None:
    first, second = checkout("first"), checkout("second")
    assert origins(first) == ["compiled", "compiled"]
    made = generate_model(target_jobs(load(second))[0].models[0])
    assert (made.origin, made.compiled) == ("local", False)


def test_edited_entries_are_not_used(results_cache: Path, checkout: Callable[[str], Path]) -> None:
    origins(checkout("first"))
    for entry in [path for path in (results_cache / "cas").rglob("*") if path.is_file()]:
        entry.chmod(0o644)
        entry.write_bytes(entry.read_bytes()[:-1] + b"x")
    assert origins(checkout("second")) == ["compiled", "compiled"]
    assert origins(checkout("third")) == ["local", "local"]


@pytest.mark.usefixtures("results_cache")
def test_other_inputs_have_other_keys(checkout: Callable[[str], Path]) -> None:
    origins(checkout("first"))
    options = PROJECT.replace("source: net.tflite", "source: net.tflite, options: {memory: smallest}")
    assert origins(checkout("second", options)) == ["compiled", "compiled"]


@pytest.mark.parametrize("inputs", ["", "inputs: [tool.py], "])
def test_programs_are_cached_only_with_declared_inputs(
    results_cache: Path, checkout: Callable[[str], Path], inputs: str
) -> None:
    command = f"command: [{sys.executable}, tool.py, '{{source}}', '{{output}}', '{{cpu}}']"
    text = PROJECT.replace("net.tflite}", f"net.tflite, compiler: command, {inputs}{command}}}")
    found = []
    for name in ("first", "second"):
        project = checkout(name, text)
        (project.parent / "tool.py").write_text(
            "import subprocess, sys\n"
            "subprocess.run([sys.executable, '-m', 'mlfbuild', 'compile', sys.argv[1], '--cpu', sys.argv[3], "
            "'-o', sys.argv[2]], check=True)\n"
        )
        job = target_jobs(load(project))[0].models[0]
        made = compile_if_needed(job)
        found.append(made.origin if made else "")
    assert found == (["compiled", "local"] if inputs else ["compiled", "compiled"])
    assert any(results_cache.rglob("ac/*/*")) == bool(inputs)


@pytest.mark.parametrize(("limit", "kept"), [("0", False), ("1 MiB", True)])
def test_the_project_file_limits_the_cache(
    results_cache: Path, checkout: Callable[[str], Path], limit: str, kept: bool
) -> None:
    origins(checkout("first", f"{PROJECT}cache: {{limit: {limit}}}\n"))
    assert results_cache.exists() == kept


@pytest.mark.usefixtures("results_cache")
def test_archives_of_another_date_are_others(checkout: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    project = checkout("first")
    assert origins(project) == ["compiled", "compiled"]
    undated = archives(project)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert origins(project) == ["compiled", "compiled"]
    assert archives(project) != undated
    assert stays(target_jobs(load(project))[0].models[0]), "a worker would have another date"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert origins(project) == ["local", "local"]
    assert archives(project) == undated


def test_an_input_that_is_edited_meanwhile_spoils_no_cache(
    results_cache: Path, checkout: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = checkout("first")
    source = project.parent / "net.tflite"

    def edited_first(job: CompileJob) -> Compiled:
        source.write_bytes(tiny_network(2))
        return compile_model(job)

    monkeypatch.setattr(model_builds, "compile_model", edited_first)
    job = target_jobs(load(project))[0].models[0]
    assert compile_if_needed(job)
    assert not any(results_cache.rglob("ac/*/*"))
    assert compile_if_needed(job), "the archive is of the other file"
