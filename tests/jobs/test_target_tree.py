"""The folder of a target: one fragment for all models, the board's files, and no trees of removed models."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import ConflictError, UsageError
from mlfbuild.jobs.tree import read_record, target_tree, tree_damage, unpack, write_target_tree
from mlfbuild.targets import BOARDS, CPUS
from support.errors import raises
from support.libraries import native_library

M4, HOST = CPUS["cortex-m4"], CPUS["host"]
BOARD = BOARDS["mps2-an386"]
OWN = {".gitattributes", "RECORD.json", "SConscript", "mlf.cmake", "mlf.mk"}
"""The files of a target's folder without models and board."""


def unpack_models(folder: Path, *names: str) -> None:
    for name in names:
        unpack(native_library(name), folder / name, archive_id=name)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_fragment(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    write_target_tree(tmp_path, ["kws", "vww"], BOARD, M4)
    golden((tmp_path / "mlf.cmake").read_text(), "mlf.cmake")


def test_board_files_are_only_those_of_the_board(tmp_path: Path) -> None:
    result = write_target_tree(tmp_path, ["kws"], BOARD, M4)
    assert "board/board.cmake" in result.written and "board/startup.c" in result.written
    assert [name for name in names(tmp_path) if name.endswith(".ld")] == ["board/mlf_board.ld", "board/mps2-an386.ld"]
    assert tree_damage(tmp_path) == []


def test_without_board_there_are_no_board_files(tmp_path: Path) -> None:
    write_target_tree(tmp_path, ["kws"], BOARD, M4)
    write_target_tree(tmp_path, ["kws"], None, HOST)
    assert set(names(tmp_path)) == OWN
    assert "board" not in (tmp_path / "mlf.cmake").read_text()


def test_git_keeps_every_byte(tmp_path: Path, tool: Callable[[str], str]) -> None:
    git = [tool("git"), "-c", "core.autocrlf=true", "-c", "user.name=a", "-c", "user.email=a@b"]

    def run(*arguments: str, folder: str = "first") -> str:
        return subprocess.run(
            [*git, "-C", tmp_path / folder, *arguments], check=True, capture_output=True, text=True
        ).stdout

    tree = tmp_path / "first/models"
    unpack_models(tree, "kws")
    write_target_tree(tree, ["kws"], BOARD, M4)
    (tree / "mine.txt").write_text("mine\n")
    run("init", "-q")
    run("add", ".")
    run("commit", "-q", "-m", "models")
    run("clone", "-q", ".", "../second")
    clone = tmp_path / "second/models"
    assert (clone / "mine.txt").read_bytes() == b"mine\r\n", "Git changes line ends, but for those of mlfbuild"
    assert tree_damage(clone) == tree_damage(clone / "kws") == []
    assert not write_target_tree(clone, ["kws"], BOARD, M4).written
    assert run("status", "--porcelain", folder="second") == ""


def test_attributes_of_the_user_stay(tmp_path: Path) -> None:
    (tmp_path / ".gitattributes").write_text("* text\n")
    for board in (BOARD, None):
        assert ".gitattributes" not in write_target_tree(tmp_path, ["kws"], board, M4).written
    assert (tmp_path / ".gitattributes").read_text() == "* text\n"
    assert tree_damage(tmp_path) == []


def test_edited_files_are_listed(tmp_path: Path) -> None:
    write_target_tree(tmp_path, ["kws", "vww"], BOARD, M4)
    (tmp_path / "mlf.mk").write_text("edited")
    (tmp_path / "board/startup.c").unlink()
    result = write_target_tree(tmp_path, ["kws"], BOARD, M4)
    assert result.edited == ("mlf.mk",)
    assert {"mlf.mk", "mlf.cmake", "board/startup.c"} <= set(result.written), "what changed or was lost is not edited"
    assert not write_target_tree(tmp_path, ["kws"], BOARD, M4).edited


def test_unchanged_folder_is_not_written(tmp_path: Path) -> None:
    first = write_target_tree(tmp_path, ["kws"], BOARD, M4)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert write_target_tree(tmp_path, ["kws"], BOARD, M4).unchanged == first.written
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_tree_of_a_removed_model_is_removed(tmp_path: Path) -> None:
    unpack_models(tmp_path, "kws", "vww")
    write_target_tree(tmp_path, ["kws", "vww"], None, HOST)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    result = write_target_tree(tmp_path, ["vww"], None, HOST)
    assert "kws/codegen/host/src/kws_lib0.c" in result.removed
    assert {path.name for path in tmp_path.iterdir()} == {*OWN, "mine", "vww"}
    assert tree_damage(tmp_path) == tree_damage(tmp_path / "vww") == []


def test_files_of_the_user_in_a_removed_tree_stay(tmp_path: Path) -> None:
    unpack_models(tmp_path, "kws")
    write_target_tree(tmp_path, ["kws"], None, HOST)
    (tmp_path / "kws" / "notes.txt").write_text("mine")
    write_target_tree(tmp_path, [], None, HOST)
    assert set(names(tmp_path)) == {*OWN, "kws/notes.txt"}


def test_tree_behind_a_link_is_not_removed(tmp_path: Path) -> None:
    unpack_models(tmp_path / "elsewhere", "kws")
    before = names(tmp_path / "elsewhere")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "kws").symlink_to(tmp_path / "elsewhere" / "kws")
    write_target_tree(tmp_path / "target", ["kws"], None, HOST)
    write_target_tree(tmp_path / "target", [], None, HOST)
    assert names(tmp_path / "elsewhere") == before


def test_interrupted_removal_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack_models(tmp_path, "kws", "vww")
    write_target_tree(tmp_path, ["kws", "vww"], None, HOST)

    def interrupt(_: Path) -> tuple[str, ...]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(target_tree, "remove_tree", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_target_tree(tmp_path, ["vww"], None, HOST)
    assert "kws" not in (tmp_path / "mlf.cmake").read_text()
    write_target_tree(tmp_path, ["vww"], None, HOST)
    assert not (tmp_path / "kws").exists()
    record = read_record(tmp_path)
    assert record is not None and record.models == ("vww",)


@pytest.mark.parametrize("name", ["board", "models"])
def test_reserved_names_are_rejected(tmp_path: Path, name: str) -> None:
    with raises(UsageError, "reserved-model-name", at=f"model '{name}'"):
        write_target_tree(tmp_path, [name], None, HOST)


def test_fragment_of_the_user_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mlf.cmake").write_text("# mine\n")
    with pytest.raises(ConflictError, match=r"mlf\.cmake"):
        write_target_tree(tmp_path, ["kws"], None, HOST)


def test_all_models_are_one_target(tmp_path: Path, tool: Callable[[str], str]) -> None:
    unpack_models(tmp_path / "mlf", "one", "two")
    write_target_tree(tmp_path / "mlf", ["one", "two"], None, HOST)
    (tmp_path / "main.c").write_text(
        '#include "tvmgen_one.h"\n#include "tvmgen_two.h"\n'
        "int main(void) { return tvmgen_one_run == 0 || tvmgen_two_run == 0; }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES C)\ninclude(mlf/mlf.cmake)\n"
        "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE mlf::models)\n"
    )
    commands = (["-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"], ["--build", tmp_path / "build"])
    for arguments in commands:
        subprocess.run([tool("cmake"), *arguments], check=True, capture_output=True)
    subprocess.run([tmp_path / "build" / "app"], check=True)
