"""`mlfbuild build` builds models and firmware once; these tests build for this machine, which is fast."""

import gzip
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from support.command import Folder
from support.foreign_archives import written
from support.libraries import native_library
from support.packed_archives import packed_archive
from support.terminal import Terminal
from support.tvm_archives import tvm_files


@pytest.mark.usefixtures("host_tools")
def test_a_second_build_changes_nothing(folder: Folder) -> None:
    first = folder.run("build", status=0)
    assert first.out.splitlines() == [
        "alpha for pc: build/mlf/pc/alpha", "beta for pc: build/mlf/pc/beta", "app for pc: build/pc/app/app",
    ]  # fmt: skip
    assert "compile alpha for pc: compiled, " in first.err
    times = {path: (folder.root / path).stat().st_mtime_ns for path in folder.files() if "/mlf/" in path}
    second = folder.run("build", "-v")
    assert "compile alpha for pc: up to date\n" in second.err
    assert {path: (folder.root / path).stat().st_mtime_ns for path in times} == times


def test_build_of_one_model_builds_no_firmware(folder: Folder) -> None:
    ended = folder.run("build", "--model", "beta", "--format", "json")
    assert ended.json == {
        "models": [
            {
                "model": "beta", "target": "pc", "archive": "build/mlf/pc/beta.tar", "tree": "build/mlf/pc/beta",
                "compiled": True, "written": ended.json["models"][0]["written"], "notes": [],
            }
        ],
        "firmware": [],
    }  # fmt: skip


@pytest.mark.usefixtures("host_tools")
def test_firmware_that_is_not_built_for_one_model_is_named(folder: Folder) -> None:
    notes = [line for line in folder.run("build", "--model", "beta").err.splitlines() if "firmware app" in line]
    assert len(notes) == 1
    assert "firmware app" not in folder.run("build", "--model", "beta", "-q").err


def test_firmware_links_the_models_of_its_target(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("beta.tflite}", "beta.tflite, targets: [spare]}").replace(", models: [alpha, beta]}", "}")
    folder.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host}\n  spare: {cpu: host}"))
    folder.write("main.c", '#include "tvmgen_alpha.h"\nint main(void) { return 0; }\n')
    ended = folder.run("build", "--target", "pc")
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "app for pc: build/pc/app/app")


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        ("build --target pcc", "unknown-target", "target 'pcc'"),
        ("build --model gamma", "unknown-model", "model 'gamma'"),
        ("plan --model alhpa", "unknown-model", "model 'alhpa'"),
        ("verify --target mars", "unknown-target", "target 'mars'"),
    ],
)
def test_unknown_targets_and_models(folder: Folder, arguments: str, code: str, place: str) -> None:
    assert folder.refused(*arguments.split()) == (2, code, place)


def test_a_model_that_is_not_built_for_the_target(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("{cpu: host}", "{cpu: host}\n  spare: {cpu: host}")
    text = text.replace("beta.tflite}", "beta.tflite, targets: [spare]}").replace("[alpha, beta]", "[alpha]")
    folder.write("mlfbuild.yml", text)
    arguments = ("build", "--target", "pc", "--model", "beta")
    assert folder.refused(*arguments) == (2, "model-not-built-for-target", "model 'beta'")


@pytest.mark.parametrize("name", ["kws.tar.gz", "kws.model-library-format", "kws.model-lib"])
def test_sources_are_recognised_by_content(archives: Folder, name: str) -> None:
    data = pack_archive(native_library("tiny"))
    archives.write(name, gzip.compress(data) if name.endswith("gz") else data)
    archives.write(
        "mlfbuild.yml", f"mlfbuild: 1\ntargets: {{pc: {{cpu: host}}}}\nmodels: {{kws: {{source: {name}}}}}\n"
    )
    ended = archives.run("build", "-q")
    assert (ended.status, ended.out) == (0, "")
    fragment = (archives.root / "build/mlf/pc/kws/mlf.cmake").read_text()
    assert "add_library(mlf::tiny ALIAS mlf_tiny)" in fragment and "add_library(mlf::kws ALIAS mlf_tiny)" in fragment


def test_corrected_sources_are_named_once(shared: Path, archives: Folder) -> None:
    """The bug of TVM that ``test_system_lib`` describes."""
    model = "models: {add: {source: add.tar, targets: [m4]}}"
    archives.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{m4: {{cpu: cortex-m4}}}}\n{model}\n")
    written(archives.root, packed_archive(tvm_files(shared, "v5-add-graph"), "add"), "add.tar")

    def notes() -> list[str]:
        (built,) = archives.run("build", "--format", "json").json["models"]
        return [note.split(":")[0] for note in built["notes"]]

    assert [notes(), notes()] == [["add_lib0.c"], []]
    assert archives.run("convert", "add.tar", "--repair", "-o", "right.tar").status == 0
    (archives.root / "right.tar").replace(archives.root / "add.tar")
    assert notes() == []


def test_a_build_prints_what_it_takes_of_the_part_and_notes_last(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text().replace("{cpu: host}", "{cpu: cortex-m4, mcu: stm32l4r5}")
    text = text.replace("vectors: alpha.npz}", "options: {memory: smallest}, budget: {ram: 1 KiB}}")
    folder.write("mlfbuild.yml", text.partition("firmware:")[0])
    lines = folder.run("build").err.splitlines()
    rows = [line for line in lines if line.startswith("  ")]
    assert [
        row.rpartition("  ")[2].partition("of ")[2] for row in rows if row.startswith("  alpha") or "beta" in row
    ] == ["stm32l4r5 (640 KiB), 2 % of the budget (1 KiB)", "stm32l4r5 (640 KiB)"]
    assert "memory: smallest has no effect" in lines[-1]
    assert "  alpha" not in folder.run("build").err, "nothing was built"
    (folder.root / "build/mlf/pc/alpha.tar").unlink()
    assert folder.run("build", "-q").err == ""


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"CI": "true"}])
def test_bars_are_for_terminals(folder: Folder, environment: dict[str, str]) -> None:
    text = (folder.root / "mlfbuild.yml").read_text().replace("{cpu: host}", "{cpu: cortex-m4, mcu: stm32l4r5}")
    folder.write("mlfbuild.yml", text.partition("firmware:")[0])
    seen = Terminal().run(folder.root, "build", "--model", "alpha", PYTHONIOENCODING="utf-8", **environment)
    (row,) = [line for line in seen.lines if line.startswith("  alpha")]
    assert ("\N{FULL BLOCK}" in row) == ("CI" not in environment)
    assert ("\x1b[32m\N{FULL BLOCK}" in seen.raw) == (not environment)
