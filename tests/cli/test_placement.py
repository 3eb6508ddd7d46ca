"""Sections on the command line: their effect on C code, and errors."""

import json
import re
from pathlib import Path

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.cli.output.invocation import run
from support.errors import assert_printed
from support.firmware_repo import tiny_network
from support.native import generated


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    return tmp_path / "net.tflite"


def compile_placed(model: Path, *words: str) -> int:
    places = [text for word in words for text in ("--place", word)]
    command = ["compile", str(model), "--cpu", "cortex-m4", "-o", str(model.with_suffix(".tar")), *places]
    return run([*command, "--format", "json"])


def test_compile_with_sections(model: Path) -> None:
    assert compile_placed(model, "weights=.ext", "params=.rodata.mlf") == 0
    text = generated(open_archive(model.with_suffix(".tar")))
    sections = re.findall(r'section\("(\.(?:ext|rodata)[^"]*)"\)', text)
    assert sections == [".rodata.mlf", ".ext"]


def test_unpack_with_sections(shared: Path, tmp_path: Path) -> None:
    archive = shared / "archives/conv-graph.tar"
    places = ["--place", "params=.ext", "--place", "workspace=.bss.far"]
    assert run(["unpack", str(archive), "-o", str(tmp_path / "tree"), *places]) == 0
    text = (tmp_path / "tree/executor/conv_entry.c").read_text()
    assert set(re.findall(r'section\("([^"]*)"\)', text)) == {".ext", ".bss.far", ".rodata.tvm"}
    assert 'section(".rodata.tvm")))\nstatic const char mlf_conv_model_id[]' in text, "the id alone is no parameter"


def test_unpack_keeps_sections_of_the_code(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = shared / "archives/conv-aotc.tar"
    words = ["unpack", str(archive), "-o", str(tmp_path / "tree"), "--place", "params=.ext", "--format", "json"]
    assert run(words) == 2
    error = json.loads(capsys.readouterr().err)
    assert error["code"] == "archive-chooses-section" and error["place"].endswith("conv-aotc.tar: placement.params")
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["workspace"], "placement-without-section"),
        (["wights=.x"], "unknown-placement-class"),
        (["weights=.x", "weights=.y"], "placement-given-twice"),
        (["weights=1x"], "invalid-name"),
        (["weights=.x", "state=.x"], "mixed-section"),
        (["params=.bss.x"], "section-cannot-hold-constants"),
    ],
)
def test_mistakes(model: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str) -> None:
    assert compile_placed(model, *words) == 2
    error = json.loads(capsys.readouterr().err)
    assert (error["code"], error["place"]) == (code, f"--place {words[-1]}")
    assert not model.with_suffix(".tar").exists()


def test_classes_of_a_graph(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = model.with_suffix(".tar")
    command = ["compile", str(model), "--cpu", "cortex-m4", "-o", str(output), "--executor", "graph"]
    assert run([*command, "--place", "weights=.ext"]) == 2
    assert_printed(capsys.readouterr().err, "section-not-in-graph", "net: placement.weights")
    assert run([*command, "--place", "params=.ext"]) == 0
