"""Unpacked trees: only changed files are written, files of the user stay, and incomplete trees are repaired."""

import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.core.errors import ConflictError, InputFileError, StorageError
from mlfbuild.core.files import write_atomic
from mlfbuild.jobs.tree import (
    UnpackResult,
    read_record,
    recorded_files,
    remove_tree,
    tree,
    tree_damage,
    tree_files,
    unpack,
)
from mlfbuild.jobs.tree.record import Record
from mlfbuild.jobs.tree.tree import write_tree
from mlfbuild.library import ArchiveFile, CodegenFile, LazyBytes, Library
from support.errors import raises
from support.libraries import graph_library, native_library, native_module

SOURCE = "codegen/host/src/tiny_lib0.c"
EXTRA = "codegen/host/src/tiny_lib1.c"


def library_with(*extra: str, offset: int = 3) -> Library:
    """Return a native library with further empty sources, by default called ``tiny_lib<n>.c``."""
    module = native_module(offset=offset)
    files = tuple(CodegenFile(PurePosixPath(path).relative_to("codegen"), b"\n") for path in extra)
    return Library((replace(module, codegen=(*module.codegen, *files)),))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def times(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def age(folder: Path) -> None:
    """Set all times to the past, so that files written later are recognised."""
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


# What is written, kept and removed


def test_new_tree_has_archive_fragment_and_record(tmp_path: Path) -> None:
    result = unpack(native_library(), tmp_path, archive_id="0" * 64)
    assert sorted(contents(tmp_path)) == [
        "README.md", "RECORD.json", "SConscript",
        "codegen/host/include/tvmgen_tiny.h", "codegen/host/src/mlfbuild/offset.h", "codegen/host/src/tiny_lib0.c",
        "metadata.json", "mlf.cmake", "mlf.mk", "parameters/tiny.params", "src/tiny.relay",
    ]  # fmt: skip
    assert {*result.written, "RECORD.json"} == contents(tmp_path).keys()
    assert result.unchanged == result.removed == ()
    assert tree_damage(tmp_path) == []
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {0o644}


KERNEL = "codegen/host/src/mlfbuild/offset.h"


def test_new_trees_share_the_kernel_headers_of_trees_beside_them(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    unpack(native_library(), first, archive_id="0" * 64)
    unpack(native_library(), second, archive_id="0" * 64)
    shared = [path for path in contents(first) if (first / path).samefile(second / path)]
    assert shared == [KERNEL]
    # A link would have the old time, and objects of the edited header would count as newer.
    (second / KERNEL).unlink()
    age(first)
    unpack(native_library(), second, archive_id="0" * 64)
    assert not (second / KERNEL).samefile(first / KERNEL)
    assert (second / KERNEL).stat().st_mtime > 1_000_000_000


def test_edited_headers_are_not_linked(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    unpack(native_library(), first, archive_id="0" * 64)
    good = (first / KERNEL).read_bytes()
    (first / KERNEL).write_bytes(b"edited")
    unpack(native_library(), second, archive_id="0" * 64)
    assert (second / KERNEL).read_bytes() == good
    assert (first / KERNEL).read_bytes() == b"edited"


def test_large_archive_is_unpacked_in_parts(tmp_path: Path) -> None:
    (module,) = graph_library().modules
    weights = np.arange(16 << 20, dtype=np.int32)
    write_archive(Library((replace(module, params={**module.params, "w": weights}),)), tmp_path / "a.tar")
    library = open_archive(tmp_path / "a.tar")
    files = tree_files(library)
    source = files.pop("blobs/net_blobs.c")
    assert isinstance(source, LazyBytes), "the C source takes four times the bytes of the parameters"
    tracemalloc.start()
    write_tree(tmp_path / "tree", files, Record.of(files, archive="a"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert (tmp_path / "tree" / "parameters/net.params").stat().st_size > weights.nbytes


def test_unchanged_tree_is_not_written(tmp_path: Path) -> None:
    first = unpack(native_library(), tmp_path, archive_id="a")
    age(tmp_path)
    before = times(tmp_path)
    assert unpack(native_library(), tmp_path, archive_id="a") == UnpackResult((), first.written, ())
    assert times(tmp_path) == before


def test_only_changed_files_are_written(tmp_path: Path) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    age(tmp_path)
    before = times(tmp_path)
    result = unpack(library_with(offset=9), tmp_path, archive_id="b")
    assert result.written == (SOURCE, "src/tiny.relay")
    assert {path for path, time in times(tmp_path).items() if time != before[path]} == {*result.written, "RECORD.json"}


def test_other_archive_with_the_same_files_changes_only_the_record(tmp_path: Path) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    assert unpack(native_library(), tmp_path, archive_id="b").written == ()
    record = read_record(tmp_path)
    assert record is not None and record.archive == "b" and record.complete


def test_files_missing_in_the_new_archive_are_removed(tmp_path: Path) -> None:
    unpack(library_with(EXTRA, "codegen/host/extra/deep/notes.txt"), tmp_path, archive_id="a")
    result = unpack(native_library(), tmp_path, archive_id="b")
    assert result.removed == ("codegen/host/extra/deep/notes.txt", EXTRA)
    assert not (tmp_path / "codegen/host/extra").exists(), "emptied folders go too"
    fresh = tmp_path / "fresh"
    unpack(native_library(), fresh, archive_id="b")
    assert {k: v for k, v in contents(tmp_path).items() if not k.startswith("fresh/")} == contents(fresh)


def test_files_of_the_user_stay(tmp_path: Path) -> None:
    unpack(library_with("codegen/host/extra/notes.txt"), tmp_path, archive_id="a")
    (tmp_path / "codegen/host/extra/mine.txt").write_text("mine")
    (tmp_path / "README").write_text("mine")
    unpack(native_library(), tmp_path, archive_id="b")
    assert (tmp_path / "codegen/host/extra/mine.txt").read_text() == "mine"
    assert tree_damage(tmp_path) == []
    remove_tree(tmp_path)
    assert sorted(contents(tmp_path)) == ["README", "codegen/host/extra/mine.txt"]


@pytest.mark.parametrize("damage", ["delete", "edit", "truncate", "folder"])
def test_damage_is_found_and_repaired(tmp_path: Path, damage: str) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    whole = contents(tmp_path)
    victim = "codegen/host/include/tvmgen_tiny.h" if damage == "folder" else SOURCE
    path = tmp_path / victim
    if damage == "delete":
        path.unlink()
    elif damage == "folder":
        path.unlink()
        path.parent.rmdir()
    else:
        path.write_bytes(b"" if damage == "truncate" else whole[SOURCE].replace(b"4", b"5"))
    assert tree_damage(tmp_path) == [f"{path}: {'was edited' if damage in {'edit', 'truncate'} else 'is missing'}"]
    assert unpack(native_library(), tmp_path, archive_id="a").written == (victim,)
    assert contents(tmp_path) == whole and tree_damage(tmp_path) == []


def test_file_can_become_a_folder_and_back(tmp_path: Path) -> None:
    unpack(library_with("codegen/host/x"), tmp_path, archive_id="a")
    unpack(library_with("codegen/host/x/y/z"), tmp_path, archive_id="b")
    assert (tmp_path / "codegen/host/x/y/z").is_file()
    result = unpack(library_with("codegen/host/x"), tmp_path, archive_id="a")
    assert (tmp_path / "codegen/host/x").is_file()
    assert result.removed == ("codegen/host/x/y/z",) and tree_damage(tmp_path) == []


# Conflicts


def refused(folder: Path, library: Library | None = None) -> ConflictError:
    """Return the error of unpacking into ``folder``, which must not change it."""
    before, stamps = contents(folder), times(folder)
    with pytest.raises(ConflictError) as caught:
        unpack(library or native_library(), folder, archive_id="c")
    assert contents(folder) == before and times(folder) == stamps
    assert "\n" not in str(caught.value)
    return caught.value


def test_conflicting_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text("mine")
    (tmp_path / "mlf.cmake").write_text("mine")
    error = refused(tmp_path)
    assert (error.code, error.place) == ("foreign-files-in-tree", str(tmp_path))
    assert error.reason.endswith(": metadata.json, mlf.cmake")


def test_new_file_of_the_archive_cannot_replace_a_file_of_the_user(tmp_path: Path) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    (tmp_path / EXTRA).write_text("int mine;\n")
    assert EXTRA in refused(tmp_path, library_with(EXTRA)).reason


def test_many_conflicts_are_reported_in_one_line(tmp_path: Path) -> None:
    extra = [f"codegen/host/src/tiny_lib{i}.c" for i in range(1, 16)]
    for path in extra:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("int mine;\n")
    assert " and 5 more" in refused(tmp_path, library_with(*extra)).reason


def test_file_with_the_same_content_is_no_conflict(tmp_path: Path) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    (tmp_path / "RECORD.json").unlink()
    assert tree_damage(tmp_path) == [f"{tmp_path}/RECORD.json: is missing or damaged"]
    assert unpack(native_library(), tmp_path, archive_id="a").written == ()
    assert tree_damage(tmp_path) == []


def test_conflicting_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").mkdir()
    (tmp_path / "metadata.json/mine.txt").write_text("mine")
    assert ": metadata.json/mine.txt" in refused(tmp_path).reason


def test_empty_folder_is_no_conflict(tmp_path: Path) -> None:
    (tmp_path / "metadata.json/empty").mkdir(parents=True)
    unpack(native_library(), tmp_path, archive_id="a")
    assert tree_damage(tmp_path) == []


def test_file_in_place_of_a_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "codegen").write_text("mine")
    assert ": codegen" in refused(tmp_path).reason


def test_file_in_place_of_the_tree_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "tree").write_text("mine")
    with raises(ConflictError, "tree-is-not-a-folder", at=str(tmp_path / "tree")):
        unpack(native_library(), tmp_path / "tree", archive_id="a")


@pytest.mark.parametrize("link", ["metadata.json", "codegen", "codegen/host/src"])
@pytest.mark.parametrize("recorded", [False, True], ids=["new", "recorded"])
def test_symbolic_links_are_not_followed(tmp_path: Path, link: str, recorded: bool) -> None:
    folder, outside = tmp_path / "tree", tmp_path / "outside"
    unpack(native_library(), outside, archive_id="a")
    folder.mkdir()
    if recorded:
        unpack(native_library(), folder, archive_id="a")
        (folder / link).rename(tmp_path / "moved")
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(outside / link)
    before = contents(outside)
    assert f": {link}" in refused(folder, library_with(offset=9)).reason
    if recorded:
        assert all("is missing" in line for line in tree_damage(folder)) and tree_damage(folder)
        remove_tree(folder)
    assert contents(outside) == before


def test_tree_can_be_behind_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    unpack(native_library(), tmp_path / "link", archive_id="a")
    assert tree_damage(tmp_path / "real") == []


# The record


def test_record_with_paths_outside_the_tree_is_ignored(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    folder = tmp_path / "tree"
    unpack(native_library(), folder, archive_id="a")
    for path in ("../outside.txt", str(outside), "a/../../outside.txt", ""):
        record = json.loads((folder / "RECORD.json").read_text())
        record["files"][path] = {"sha256": "0" * 64, "size": 4}
        (folder / "RECORD.json").write_text(json.dumps(record))
        assert read_record(folder) is None and recorded_files(folder) == [] and remove_tree(folder) == ()
        unpack(native_library(), folder, archive_id="a")
        assert outside.read_text() == "mine" and tree_damage(folder) == []


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"mlfbuild_record": 1}', b'{"mlfbuild_record": "x"}', b"[1]"])
def test_damaged_record_counts_as_none(tmp_path: Path, text: bytes) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    (tmp_path / "RECORD.json").write_bytes(text)
    assert tree_damage(tmp_path) == [f"{tmp_path}/RECORD.json: is missing or damaged"]
    assert SOURCE in refused(tmp_path, library_with(offset=9)).reason
    unpack(native_library(), tmp_path, archive_id="a")
    assert tree_damage(tmp_path) == []


def test_record_of_another_program_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "RECORD.json").write_text('{"album": "Kind of Blue"}')
    error = refused(tmp_path)
    assert (error.code, error.place) == ("not-a-record", f"{tmp_path}/RECORD.json")
    assert "is not a record of mlfbuild" in tree_damage(tmp_path)[0]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_record_that_is_not_a_file_is_rejected(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        (tmp_path / "RECORD.json").mkdir()
    else:
        (tmp_path / "RECORD.json").symlink_to("elsewhere")
    error = refused(tmp_path)
    assert (error.code, error.place) == ("record-is-not-a-file", f"{tmp_path}/RECORD.json")


def test_record_of_a_later_version_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "RECORD.json").write_text('{"mlfbuild_record": 2}')
    with raises(InputFileError, "record-of-later-version", at=f"{tmp_path}/RECORD.json"):
        unpack(native_library(), tmp_path, archive_id="a")


def test_recorded_files_end_with_the_record(tmp_path: Path) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    (tmp_path / SOURCE).unlink()
    names = [str(path.relative_to(tmp_path)) for path in recorded_files(tmp_path)]
    assert names[-1] == "RECORD.json" and SOURCE not in names and len(names) == 10
    assert recorded_files(tmp_path / "nowhere") == []


def test_removing_a_tree_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    unpack(graph_library(), folder, archive_id="a")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {*remove_tree(folder), "RECORD.json"} == files and len(files) > 20
    assert not folder.exists() and remove_tree(folder) == ()


# Names


@pytest.mark.parametrize("name", ["RECORD.json", "mlf.cmake"])
def test_reserved_names_are_rejected(tmp_path: Path, name: str) -> None:
    library = replace(native_library(), other_files=(ArchiveFile(PurePosixPath(name), b""),))
    with raises(InputFileError, "reserved-file-name", at=name):
        unpack(library, tmp_path, archive_id="a")


def test_names_that_build_files_cannot_contain_are_rejected(tmp_path: Path) -> None:
    with raises(InputFileError, "file-name-not-buildable", at="'codegen/host/src/a;b.c'"):
        unpack(library_with("codegen/host/src/a;b.c"), tmp_path, archive_id="a")
    module = replace(native_module(), name="my-model")
    with raises(InputFileError, "module-name-not-buildable", at="'my-model'"):
        unpack(Library((module,)), tmp_path, archive_id="a")
    assert contents(tmp_path) == {}


# Stopped half-way


class Killed(BaseException):
    """A process that ends between two system calls."""


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int, leave: Callable[[Path], None]) -> None:
    """Let ``count`` writes and removals of ``write_tree`` happen; the next one is interrupted, and no more follow."""
    done = 0

    def step(path: Path) -> None:
        nonlocal done
        if done == count:
            leave(path)
            raise Killed
        done += 1

    write, unlink = tree.write_atomic, Path.unlink

    def write_one(path: Path, data: bytes) -> None:
        step(path)
        write(path, data)

    def unlink_one(path: Path, missing_ok: bool = False) -> None:
        if not path.name.endswith(".tmp"):
            step(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(tree, "write_atomic", write_one)
    monkeypatch.setattr(Path, "unlink", unlink_one)


def leave_temporary_file(path: Path) -> None:
    """Leave the temporary file of a write that was killed before its rename."""

    def killed(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        patch.setattr(Path, "unlink", lambda _: None)
        with pytest.raises(Killed):
            write_atomic(path, b"half")


OLD = library_with(EXTRA, "codegen/host/x", "codegen/host/gone/old.c")
NEW = library_with("codegen/host/src/tiny_lib2.c", "codegen/host/x/y", offset=9)
STEPS = 1 + 3 + 7 + 1
"""Record, three files to remove, seven to write (sources, graph text, three fragments), record."""


@pytest.mark.parametrize("count", range(STEPS + 1))
@pytest.mark.parametrize("then", [NEW, OLD, native_library()], ids=["again", "back", "third"])
def test_next_run_completes_every_interrupted_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, then: Library
) -> None:
    folder, fresh = tmp_path / "tree", tmp_path / "fresh"
    unpack(OLD, folder, archive_id="old")
    (folder / "mine.txt").write_text("mine")
    with monkeypatch.context() as patch:
        stop_after(patch, count, leave_temporary_file)
        if count < STEPS:
            with pytest.raises(Killed):
                unpack(NEW, folder, archive_id="new")
        else:
            unpack(NEW, folder, archive_id="new")
    if 0 < count < STEPS:
        assert tree_damage(folder) == [f"{folder}/RECORD.json: the last unpacking was stopped half-way"]
    unpack(then, folder, archive_id="then")
    unpack(then, fresh, archive_id="then")
    if count > 0:
        assert contents(folder) == {**contents(fresh), "mine.txt": b"mine"}
    assert tree_damage(folder) == []


def test_interrupted_first_run_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, 4, leave_temporary_file)
        with pytest.raises(Killed):
            unpack(native_library(), tmp_path / "tree", archive_id="a")
    unpack(native_library(), tmp_path / "tree", archive_id="a")
    unpack(native_library(), tmp_path / "fresh", archive_id="a")
    assert contents(tmp_path / "tree") == contents(tmp_path / "fresh")


def test_read_only_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file = Path.open

    def refuse_new(path: Path, mode: str = "r", *rest: object, **named: object) -> object:
        if mode == "xb":
            raise PermissionError(13, "Permission denied")
        return open_file(path, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", refuse_new)  # root, who runs many test suites, may write anywhere
    with raises(StorageError, "cannot-write", "RECORD.json"):
        unpack(native_library(), tmp_path, archive_id="a")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("count", range(STEPS))
def test_full_disk_is_reported_in_one_line_and_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    unpack(OLD, tmp_path, archive_id="old")
    calls = 0
    replace_file = Path.replace

    def full(path: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls > count:
            raise OSError(28, "No space left on device")
        return replace_file(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        if count < STEPS - 3:  # removals need no space
            with pytest.raises(StorageError, match="cannot write: No space left on device") as caught:
                unpack(NEW, tmp_path, archive_id="new")
            assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.tmp"))
    unpack(NEW, tmp_path, archive_id="new")
    assert tree_damage(tmp_path) == []
    assert sorted(contents(tmp_path)) == sorted([*read_record(tmp_path).files, "RECORD.json"])  # type: ignore[union-attr]
