"""`mlfbuild.compile` and the archives that it returns."""

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.core import InputFileError, UnsupportedModelError, UsageError
from mlfbuild.library import Library
from mlfbuild.usecases import Archive, Table
from support.errors import raises
from support.firmware_repo import tiny_network
from support.libraries import native_library, native_module
from support.oracle import tflite_micro_run

X = np.arange(-4, 4, dtype=np.int8).reshape(1, 8)


@pytest.fixture
def kws(tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a model."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "kws.tflite").write_bytes(tiny_network(0))
    return tmp_path / "kws.tflite"


class Tags(HTMLParser):
    """The tags and the text of a document."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_outputs_are_those_of_tensorflow_lite_micro(kws: Path) -> None:
    archive = mlfbuild.compile(kws, cpu="cortex-m4")
    (tensor,) = archive.library.module("kws").inputs
    (expected,) = tflite_micro_run(kws.read_bytes(), [X])
    for inputs in (X, {tensor.name: X}):
        (output,) = archive.run(inputs).values()
        assert output.dtype == np.int8
        np.testing.assert_array_equal(output, expected)


def test_saved_archives_have_the_bytes_of_the_command(kws: Path, tmp_path: Path) -> None:
    mlfbuild.compile(kws, "cortex-m55", name="word", options={"memory": "smallest"}).save(tmp_path / "a.tar")
    from mlfbuild.usecases import compile_file

    compile_file(kws, str(tmp_path / "b.tar"), "cortex-m55", name="word", options={"memory": "smallest"})
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    again = mlfbuild.compile(tmp_path / "a.tar", "cortex-m55")
    assert again.compare(tmp_path / "a.tar") == []


def test_mistakes(kws: Path, tmp_path: Path) -> None:
    with raises(InputFileError, "no-such-input"):
        mlfbuild.compile(tmp_path / "none.tflite")
    for arguments in ({"cpu": "z80"}, {"name": "K"}, {"options": {"memry": 1}}, {"executor": "tree"}):
        with pytest.raises(UsageError):
            mlfbuild.compile(kws, **arguments)
    archive = mlfbuild.compile(kws)
    with pytest.raises(ValueError, match="kws"):
        archive.run({"none": X})
    with raises(UsageError, "unknown-module"):
        archive.run(X, model="none")
    assert not list(tmp_path.glob("*.tar"))


def test_what_is_printed_fits_one_screen(kws: Path) -> None:
    archive = mlfbuild.compile(kws, cpu="cortex-m4")
    lines = repr(archive).splitlines()
    assert lines[0] == "Archive of 1 model for cortex-m4; sizes in bytes"
    assert [line.split()[:2] for line in lines[2:]] == [
        ["input", "8"], ["output", "4"], ["constants", "80"], ["workspace", "16"],
    ]  # fmt: skip
    many = Archive(native_library(*(f"m{number}" for number in range(40))))
    for value in (many, many.compare(archive)):
        assert len(repr(value).splitlines()) <= 24
        assert max(map(len, repr(value).splitlines())) <= 240
        assert Tags(value._repr_html_()).tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert "more" in repr(many).splitlines()[-1]


def test_names_in_notebooks_are_text() -> None:
    module = native_module()
    named = replace(module, inputs=(replace(module.inputs[0], name="<script>\x1b[2J"), *module.inputs[1:]))
    archive = Archive(Library((named,)))
    document = Tags(archive._repr_html_())
    assert "script" not in document.tags
    assert "<script>" in document.text
    assert "\x1b" not in document.text + repr(archive)


def test_differences_of_contents_are_rows(kws: Path, tmp_path: Path) -> None:
    (tmp_path / "new.tflite").write_bytes(tiny_network(1))
    archive = mlfbuild.compile(kws, cpu="cortex-m4")
    table = archive.compare(tmp_path / "new.tflite")
    assert isinstance(table, Table)
    assert {(row["module"], row["what"]) for row in table} == {("kws", "code")}, "only the weights differ"
    assert len({tuple(row) for row in table}) == 1, "rows have the same columns"
    assert archive.compare(kws) == []


def test_differences_of_numbers_are_rows_of_tensors(kws: Path, tmp_path: Path) -> None:
    archive = mlfbuild.compile(kws, options={"trace": True})
    assert [(row["tensor"], row["equal"]) for row in archive.compare(kws, X)][-1][1]
    (tmp_path / "new.tflite").write_bytes(tiny_network(1))
    other = mlfbuild.load(tmp_path / "new.tflite")
    table = archive.compare(tmp_path / "new.tflite", X)
    (expected,) = archive.run(X).values()
    (got,) = other.run({other.inputs[0].name: X}).values()
    assert [row["operator"] for row in table][-1] == "output"
    assert "FULLY_CONNECTED" in [row["operator"] for row in table]
    far = np.abs(expected.astype(int) - got.astype(int))
    assert (table[-1]["elements"], table[-1]["different"]) == (far.size, np.count_nonzero(far))
    assert table[-1]["largest difference"] == far.max() > 0
    assert not table[-1]["equal"]


def test_load_takes_model_files_and_traces_them(kws: Path) -> None:
    model = mlfbuild.load(kws)
    traced = model.trace({model.inputs[0].name: X})
    (output,) = model.run({model.inputs[0].name: X}).values()
    np.testing.assert_array_equal(list(traced.values())[-1], output)
    (kws.parent / "old.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(8))
    with pytest.raises((InputFileError, UnsupportedModelError)):
        mlfbuild.load(kws.parent / "old.tflite")
