"""Files of other formats are recognised by content, then by suffix, with a conversion that can be run."""

import ast
import pickle
import shlex
import zipfile
from pathlib import Path

import pytest

from mlfbuild.core import recognised
from mlfbuild.project.sources import source_problem
from support.firmware_repo import tiny_network


def zipped(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"")


CONTENTS = {
    "keras-model-not-converted": [b"\x89HDF\r\n\x1a\n" + bytes(80), ("metadata.json", "model.weights.h5")],
    "pytorch-model-not-converted": [b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02", ("net/data.pkl",)],
    "torchscript-not-converted": [("net/data.pkl", "net/code/__torch__.py", "net/constants.pkl")],
    "pytorch-program-not-converted": [("net/archive_format", "net/data/sample_inputs/model.pt")],
    "pickle-not-converted": [pickle.dumps({"weights": [1.0]}), pickle.dumps([1], protocol=2)],
    "web-page-not-model": [
        b"<!DOCTYPE html><html>", b"\xef\xbb\xbf\n <HTML lang=en>", b'<?xml version="1.0"?><Error><Code>AccessDenied',
    ],
}  # fmt: skip


@pytest.mark.parametrize(("code", "content"), [(code, content) for code, all_ in CONTENTS.items() for content in all_])
@pytest.mark.parametrize("name", ["net.tflite", "net"])
def test_content_decides(tmp_path: Path, name: str, code: str, content: bytes | tuple[str, ...]) -> None:
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        zipped(tmp_path / name, *content)
    found = recognised(tmp_path / name)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("net.keras", "keras-model-not-converted"),
        ("net.H5", "keras-model-not-converted"),
        ("net.pth", "pytorch-model-not-converted"),
        ("net.pt2", "pytorch-program-not-converted"),
        ("net.joblib", "pickle-not-converted"),
    ],
)
def test_the_suffix_decides_if_the_content_is_not_known(tmp_path: Path, name: str, code: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04 a damaged zip")
    found = recognised(path)
    assert found is not None
    assert found.code == code
    path.write_bytes(tiny_network(0))
    assert recognised(path) is None, "a TFLite model may have any suffix"
    path.unlink()
    assert recognised(path) is None, "the file is missing, which is another error"


def test_folders_of_saved_models(tmp_path: Path) -> None:
    assert recognised(tmp_path) is None
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01")
    for path in (tmp_path, tmp_path / "saved_model.pb"):
        found = recognised(path)
        assert found is not None
        assert found.code == "saved-model-not-converted"
        words = shlex.split(found.hint.partition(": ")[2][1:-1])
        assert words == ["tflite_convert", f"--saved_model_dir={tmp_path}", f"--output_file={tmp_path}.tflite"]


@pytest.mark.parametrize("suffix", [".keras", ".pt2", ".pkl"])
@pytest.mark.parametrize("stem", ["net", "my net", "it's", 'a"b', "$(x)`y`\\"])
def test_conversions_are_commands_of_a_shell_and_of_python(tmp_path: Path, stem: str, suffix: str) -> None:
    path = tmp_path / f"{stem}{suffix}"
    path.write_bytes(b"?")
    found = recognised(path)
    assert found is not None
    python, option, code = shlex.split(found.hint.partition(": ")[2][1:-1])
    assert (python, option) == ("python", "-c")
    strings = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
    assert str(path) in strings
    assert str(path.with_suffix(".tflite" if suffix == ".keras" else ".onnx")) in strings
    assert "\n" not in str(found)


@pytest.mark.parametrize("name", ["a" * 300, "net\u202e.h5", "net\x1b[2J.pkl"])
def test_hints_never_contain_unreadable_names(name: str) -> None:
    mistake = source_problem(name)
    assert mistake is not None
    assert "MODEL" in mistake.hint
    assert name not in mistake.hint
