"""``mlfbuild build --tree``: the committed folder, rejected folders, and restored files."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs.tree import tree_damage
from support.command import Folder

TWO_TARGETS = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
  m4: {cpu: cortex-m4}
models:
  alpha: {source: models/alpha.tflite}
  beta: {source: models/beta.tflite, targets: [pc]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    return Folder(tmp_path, capsys)


def test_trees_are_next_to_the_model_files(folder: Folder) -> None:
    ended = folder.run("build", "--tree", "models")
    assert (ended.status, ended.out) == (0, "alpha for pc: models/alpha\nbeta for pc: models/beta\n")
    assert {path.name for path in (folder.root / "models").iterdir()} == {
        "alpha", "alpha.tflite", "beta", "beta.tflite",
        "mlf.cmake", "mlf.mk", "SConscript", "RECORD.json", ".gitattributes",
    }  # fmt: skip
    assert not any(folder.root.rglob("*.elf")) and not (folder.root / "build/pc").exists(), "no firmware is built"
    assert not (folder.root / "build/mlf/pc/alpha").exists() and (folder.root / "build/mlf/pc/alpha.tar").exists()


def test_unchanged_tree_is_not_written(folder: Folder) -> None:
    folder.run("build", "--tree", "models")
    before = {path: path.stat().st_mtime_ns for path in folder.root.rglob("*") if path.is_file()}
    ended = folder.run("build", "--tree", "models", "--format", "json")
    assert [(model["tree"], model["written"], model["compiled"]) for model in ended.json["models"]] == [
        ("models/alpha", 0, False),
        ("models/beta", 0, False),
    ]
    assert {path: path.stat().st_mtime_ns for path in folder.root.rglob("*") if path.is_file()} == before


def test_edited_files_are_written_again_and_listed(folder: Folder) -> None:
    folder.run("build", "--tree", "tree")
    good = {path: path.read_bytes() for path in (folder.root / "tree").rglob("*") if path.is_file()}
    for name in ("tree/alpha/codegen/host/src/alpha_lib0.c", "tree/alpha/mlf.mk", "tree/mlf.cmake"):
        folder.write(name, "edited")
    (folder.root / "tree/beta/metadata.json").unlink()
    ended = folder.run("build", "--tree", "tree", status=0)
    edited = "codegen/host/src/alpha_lib0.c, mlf.mk"
    assert f"compile alpha for pc: 2 files written; restored after manual edits: {edited} (" in ended.err
    assert "compile beta for pc: 1 file written (" in ended.err
    assert "write tree: 1 file written; restored after manual edits: mlf.cmake (" in ended.err
    assert {path: path.read_bytes() for path in good} == good


def test_one_model_does_not_change_the_others(folder: Folder) -> None:
    folder.run("build", "--tree", "tree")
    (folder.root / "tree/beta/metadata.json").unlink()
    assert folder.run("build", "--tree", "tree", "--model", "alpha").status == 0
    assert not (folder.root / "tree/beta/metadata.json").exists()
    text = (folder.root / "tree/mlf.cmake").read_text()
    assert "alpha/mlf.cmake" in text and "beta/mlf.cmake" in text


def test_edited_files_are_restored(folder: Folder) -> None:
    folder.run("build", "--tree", "tree")
    for name in ("alpha/codegen/host/src/alpha_lib0.c", "mlf.mk"):
        folder.write(f"tree/{name}", "mine")
    assert folder.run("build", "--tree", "tree").status == 0
    assert tree_damage(folder.root / "tree") == tree_damage(folder.root / "tree/alpha") == []


def test_conflicting_files_are_rejected_before_writing(folder: Folder) -> None:
    folder.write("firmware/SConscript", "Import('env')\n")
    ended = folder.run("build", "--tree", "firmware", "--format", "json")
    assert (ended.status, ended.error["code"], ended.error["place"]) == (6, "foreign-files-in-tree", "firmware")
    assert ended.error["reason"].endswith(": SConscript")
    assert (folder.root / "firmware/SConscript").read_text() == "Import('env')\n"
    assert not (folder.root / "firmware/alpha").exists()


def test_file_in_place_of_the_folder_is_rejected_before_writing(folder: Folder) -> None:
    folder.write("firmware", "mine")
    before = folder.files()
    assert folder.refused("build", "--tree", "firmware") == (6, "tree-is-not-a-folder", "firmware")
    assert folder.files() == before


def refused(folder: Folder, *arguments: str) -> tuple[int, str, str]:
    before = folder.files()
    found = folder.refused("build", *arguments)
    assert folder.files() == before
    return found


def test_tree_is_for_one_target(folder: Folder) -> None:
    folder.write("mlfbuild.yml", TWO_TARGETS)
    assert refused(folder, "--tree", "tree") == (2, "tree-of-several-targets", "--tree tree")
    assert folder.run("build", "--tree", "tree", "--target", "m4").out == "alpha for m4: tree/alpha\n"


def test_folder_inside_another_tree_is_rejected(folder: Folder) -> None:
    folder.run("build", "--tree", "tree")
    for name in ("tree/alpha", "tree/more", "tree/alpha/codegen/more"):
        assert refused(folder, "--tree", name) == (2, "tree-inside-tree", f"--tree {name}")


def test_folder_inside_a_model_file_is_rejected(folder: Folder) -> None:
    (folder.root / "link").symlink_to("models")
    for name in ("models/alpha.tflite", "models/alpha.tflite/tree", "link/alpha.tflite"):
        assert refused(folder, "--tree", name) == (2, "tree-inside-source", f"--tree {name}")


def test_tree_around_a_model_file_is_rejected(folder: Folder) -> None:
    folder.write("models/beta/alpha.tflite", (folder.root / "models/alpha.tflite").read_bytes())
    folder.write("mlfbuild.yml", TWO_TARGETS.replace("models/alpha", "models/beta/alpha"))
    assert refused(folder, "--tree", "models", "--target", "pc") == (2, "source-inside-tree", "--tree models")


def test_test_firmware_of_the_tree_is_verified_by_its_image(folder: Folder, tool: Callable[[str], str]) -> None:
    tool("ninja")
    assert folder.run("build", "--tree", "tree", "--with-verify").status == 0
    folder.write(
        "CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES C)\ninclude(tree/mlf.cmake)\n"
    )
    subprocess.run([tool("cmake"), "-G", "Ninja", "-B", "out"], check=True, capture_output=True)
    subprocess.run([tool("cmake"), "--build", "out", "--target", "mlf_alpha_verify"], check=True, capture_output=True)
    ended = folder.run("verify", "--elf", "out/alpha_verify.elf", "--vectors", "alpha.npz")
    assert ended == type(ended)(0, "alpha: 3 cases right on host, arena 0 of 0 bytes used\n", "")
    folder.write_vectors("alpha", wrong=True)
    assert folder.run("verify", "--elf", "out/alpha_verify.elf", "--vectors", "alpha.npz").status == 1


def test_without_the_option_test_firmware_is_removed(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", "--with-verify")
    assert (folder.root / "tree/alpha/verify/alpha/verify_module.h").is_file()
    folder.run("build", "--tree", "tree")
    assert not (folder.root / "tree/alpha/verify").exists()
    assert "verify" not in (folder.root / "tree/alpha/mlf.cmake").read_text()


def test_target_without_board_has_no_test_firmware(folder: Folder) -> None:
    assert refused(folder, "--with-verify") == (2, "option-needs-another", "--with-verify")
    folder.write("mlfbuild.yml", TWO_TARGETS)
    chosen = ("--tree", "tree", "--target", "m4", "--with-verify")
    assert refused(folder, *chosen) == (2, "target-without-board", "--with-verify")
