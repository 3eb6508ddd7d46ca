"""The lock file is written and read back, and any other content is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core import ConflictError, InputFileError
from mlfbuild.requirements.lock import (
    Lock,
    LockedModel,
    LockedProvider,
    LockedToolchain,
    check_replaceable,
    lock_path,
    read_lock,
)
from mlfbuild.requirements.lock_diff import differences, drift, left_over
from support.errors import raises

A, B, C = ("0a" * 32, "1b" * 32, "2c" * 32)
COMMIT, OTHER_COMMIT = ("3f" * 20, "9b" * 20)
TREE, OTHER_TREE = ("4d" * 32, "5e" * 32)
LOCK = Lock(
    models={
        "kws": LockedModel("models/kws.tflite", A, "native 0.1.0"),
        "vww": LockedModel("../vww.tar", B, "command", C),
    },
    archives={"m4": {"kws": A, "vww": B}, "m55": {"kws": C}},
    dependencies={
        "cmsis-nn": LockedProvider("git", "https://example.org/CMSIS-NN", "v7.0.0", commit=COMMIT, tree=TREE),
        "dsp": LockedProvider("path", "../dsp", content=A),
        "fft": LockedProvider("url", "https://example.org/fft.tar.gz", "2.1", sha256=B),
        "rtos": LockedProvider("package", "FreeRTOS", "11.0"),
    },
    toolchains={
        "host": LockedToolchain({"cc": "cc (Debian 12.2.0-14) 12.2.0"}),
        "m4": LockedToolchain({"arm-none-eabi-gcc": "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205"}, B),
    },
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mlfbuild.lock"
    path.write_text(LOCK.to_text())
    return path


def edit(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))


def test_lock_file_is_next_to_the_project_file() -> None:
    assert lock_path(Path("firmware/mlfbuild.yml")) == Path("firmware/mlfbuild.lock")
    assert lock_path(Path("other.yaml")) == Path("other.lock")
    assert lock_path(Path("odd.lock")) == Path("odd.lock.lock")


def test_text_of_a_lock_file(path: Path, golden: Callable[[str, str], None]) -> None:
    golden(path.read_text(), "mlfbuild.lock")
    assert b"\r" not in path.read_bytes()


def test_written_lock_is_read(path: Path) -> None:
    assert read_lock(path) == LOCK
    assert read_lock(path.with_name("none.lock")) is None


names = st.text(min_size=1, max_size=8)
hashes = st.integers(0, 2**256 - 1).map("{:064x}".format)
objects = st.integers(0, 2**160 - 1).map("{:040x}".format)
dependencies = st.one_of(
    st.builds(LockedProvider, st.just("git"), names, names, objects, hashes, content=st.just("") | hashes),
    st.builds(LockedProvider, st.just("url"), names, names, sha256=hashes),
    st.builds(LockedProvider, st.just("path"), names, st.text(max_size=3), content=hashes),
    st.builds(LockedProvider, st.just("package"), names, st.text(max_size=3)),
)
locks = st.builds(
    Lock,
    models=st.dictionaries(names, st.builds(LockedModel, names, hashes, names, st.just("") | hashes), max_size=3),
    archives=st.dictionaries(names, st.dictionaries(names, hashes, min_size=1, max_size=3), max_size=3),
    dependencies=st.dictionaries(names, dependencies, max_size=3),
    toolchains=st.dictionaries(
        names, st.builds(LockedToolchain, st.dictionaries(names, names, max_size=2), st.just("") | hashes), max_size=3
    ),
)


@given(lock=locks)
def test_any_lock_reads_back_unchanged(lock: Lock, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.lock"
    path.write_text(lock.to_text())
    assert read_lock(path) == lock
    assert differences(lock, lock) == []


@given(old=locks, new=locks)
def test_different_locks_have_differences(old: Lock, new: Lock) -> None:
    assert bool(differences(old, new)) == (old != new)
    assert all("\n" not in found.as_change() + found.as_drift() for found in differences(old, new))


@given(lock=locks, data=st.data())
def test_changed_text_is_refused(lock: Lock, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = lock.to_text()
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.sampled_from(["", "x", "0", '"', "}", "\n", ","]))
    path = tmp_path_factory.getbasetemp() / "damaged.lock"
    path.write_text(text[:at] + put + text[at + 1 :])
    refusal = ""
    try:
        assert read_lock(path) == lock, "white space alone changes nothing"
    except InputFileError as error:
        refusal = str(error)
    assert not refusal or "`mlfbuild lock`" in refusal
    assert "\n" not in refusal


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace('"mlfbuild_lock": 1', '"mlfbuild_lock": 2'), "lock-of-later-version"),
        (lambda text: text.replace('  "mlfbuild_lock": 1,\n', ""), "lock-without-format"),
        (lambda text: text.replace("v7.0.0", "v7.0.1"), "lock-edited"),
        (lambda text: text.replace('"version": "2.1"', '"version": "2.1",\n      "verified": "yes"'), "lock-edited"),
        (lambda text: text.replace('      "commit"', '<<<<<<< HEAD\n      "commit"'), "lock-merge-conflict"),
        (lambda text: text.replace('      "commit"', '=======\n      "commit"'), "lock-merge-conflict"),
        (lambda _: " " * (16 * 1024 * 1024 + 1), "lock-too-large"),
    ],
)
def test_damaged_lock_file_is_refused(path: Path, change: Callable[[str], str], code: str) -> None:
    edit(path, change)
    with raises(InputFileError, code, at=str(path)) as caught:
        read_lock(path)
    assert "`mlfbuild lock`" in caught.value.hint and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda text: text.replace('"mlfbuild_lock": 1', '"mlfbuild_lock": 0'), "mlfbuild_lock: "),
        (lambda text: text.replace('"mlfbuild_lock": 1', '"mlfbuild_lock": "1"'), "mlfbuild_lock: "),
        (lambda text: text[: len(text) // 2], ""),
        (lambda text: text[:0], ""),
        (lambda text: text.replace('"dsp": {', '"cmsis-nn": {'), ""),
        (lambda text: text.replace('"kind": "git"', '"kind": "svn"'), "dependencies.cmsis-nn.kind: "),
        (lambda text: text.replace(COMMIT, COMMIT[1:]), "dependencies.cmsis-nn.commit: "),
        (lambda text: text.replace(TREE, TREE[:40]), "dependencies.cmsis-nn.tree: "),
        (lambda text: text.replace(f'      "tree": "{TREE}",\n', ""), "dependencies.cmsis-nn.tree: "),
        (lambda text: text.replace(f'"kws": "{C}"', '"kws": null'), "archives.m55.kws: "),
        (lambda text: text.replace('"toolchains": {', '"toolchains": 1, "x": {'), "toolchains: "),
        (lambda _: "[" * 100_000, ""),
    ],
)
def test_invalid_members_are_refused(path: Path, change: Callable[[str], str], key: str) -> None:
    edit(path, change)
    with pytest.raises(InputFileError) as caught:
        read_lock(path)
    assert str(caught.value).startswith(f"{path}: {key}") and "\n" not in str(caught.value)


def test_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError):
        read_lock(tmp_path)


def test_only_lock_files_are_replaced(path: Path, tmp_path: Path) -> None:
    edit(path, lambda text: f"<<<<<<< ours\n{text[:200]}")
    check_replaceable(path)
    check_replaceable(tmp_path / "none.lock")
    (tmp_path / "empty.lock").write_text("")
    check_replaceable(tmp_path / "empty.lock")
    path.write_text('{"lockfileVersion": 3}\n')
    with raises(ConflictError, "not-a-lock-file", at=str(path)):
        check_replaceable(path)
    path.write_text(json.dumps({"mlfbuild_lock": 7}))
    with raises(InputFileError, "lock-of-later-version", at=str(path)):
        check_replaceable(path)


def changed(section: str, name: str, **facts: object) -> Lock:
    """Return the lock with other facts of one entry."""
    entries = getattr(LOCK, section)
    entry = type(entries[name])(**{**vars(entries[name]), **facts})
    return Lock(**{**vars(LOCK), section: {**entries, name: entry}})


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (changed("models", "kws", sha256=B), "model kws: file: locked 0a0a0a0a0a0a, here 1b1b1b1b1b1b"),
        (changed("models", "kws", source="kws.onnx"), "model kws: source: locked models/kws.tflite, here kws.onnx"),
        (changed("models", "kws", compiler="native 0.2.0"),
         "model kws: compiler: locked native 0.1.0, here native 0.2.0"),
        (changed("models", "vww", inputs=""), "model vww: inputs: locked 2c2c2c2c2c2c, here nothing"),
        (Lock(archives={"m55": {"kws": A}}), "archive of kws for m55: locked 2c2c2c2c2c2c, here 0a0a0a0a0a0a"),
        (Lock(archives={"m7": {"kws": A}}), "archive of kws for m7: is not in the lock file"),
        (changed("dependencies", "cmsis-nn", version="v7.1.0"),
         "dependency cmsis-nn: version: locked v7.0.0, here v7.1.0"),
        (changed("dependencies", "cmsis-nn", place="https://example.org/fork"),
         "dependency cmsis-nn: comes from: locked https://example.org/CMSIS-NN, here https://example.org/fork"),
        (changed("dependencies", "cmsis-nn", commit=OTHER_COMMIT, tree=OTHER_TREE),
         "dependency cmsis-nn: v7.0.0: locked 3f3f3f3f3f3f, here 9b9b9b9b9b9b (v7.0.0 moved)"),
        (changed("dependencies", "cmsis-nn", commit=OTHER_COMMIT),
         "dependency cmsis-nn: v7.0.0: locked 3f3f3f3f3f3f, here 9b9b9b9b9b9b (v7.0.0 moved, with the same files)"),
        (changed("dependencies", "cmsis-nn", tree=OTHER_TREE),
         "dependency cmsis-nn: tree: locked 4d4d4d4d4d4d, here 5e5e5e5e5e5e"),
        (changed("dependencies", "dsp", content=B), "dependency dsp: files: locked 0a0a0a0a0a0a, here 1b1b1b1b1b1b"),
        (changed("dependencies", "fft", sha256=A), "dependency fft: file: locked 1b1b1b1b1b1b, here 0a0a0a0a0a0a"),
        (changed("dependencies", "rtos", version=""), "dependency rtos: version: locked 11.0, here nothing"),
        (changed("toolchains", "m4", sha256=A),
         "toolchain of m4: toolchain file: locked 1b1b1b1b1b1b, here 0a0a0a0a0a0a"),
        (changed("toolchains", "host", programs={"cc": "cc 13"}),
         "toolchain of host: cc: locked cc (Debian 12.2.0-14) 12.2.0, here cc 13"),
        (Lock(toolchains={"m7": LOCK.toolchains["m4"]}), "toolchain of m7: is not in the lock file"),
        (Lock(models={"kws2": LOCK.models["kws"]}), "model kws2: is not in the lock file"),
    ],
)  # fmt: skip
def test_each_drift_is_reported(now: Lock, line: str) -> None:
    assert drift(LOCK, now) == [line]


def test_unselected_entries_do_not_drift() -> None:
    assert drift(LOCK, Lock()) == []
    assert drift(LOCK, Lock(models={"kws": LOCK.models["kws"]}, archives={"m4": {"kws": A}})) == []


def test_obsolete_entries_are_reported() -> None:
    everything = {"m4": ["kws", "vww"], "m55": ["kws"], "host": []}
    assert list(left_over(LOCK, everything, LOCK.dependencies)) == []
    left = sorted(left_over(LOCK, {"m4": ["kws"]}, ["cmsis-nn", "dsp", "fft"]))
    gone = "is in the lock file, but no longer in the project"
    assert left == [
        f"archive of kws for m55: {gone}",
        f"dependency rtos: {gone}",
        f"model vww: {gone}",
        f"toolchain of host: {gone}",
    ]


def test_changes_have_old_and_new_value() -> None:
    new = changed("dependencies", "cmsis-nn", commit=OTHER_COMMIT, tree=OTHER_TREE)
    assert [found.as_change() for found in differences(LOCK, new)] == [
        "dependency cmsis-nn: v7.0.0: 3f3f3f3f3f3f -> 9b9b9b9b9b9b (v7.0.0 moved)"
    ]
    assert [found.as_change() for found in differences(Lock(), Lock(models={"kws": LOCK.models["kws"]}))] == [
        "model kws: models/kws.tflite 0a0a0a0a0a0a native 0.1.0, new"
    ]
    assert [found.as_change() for found in differences(Lock(archives={"m4": {"kws": A}}), Lock())] == [
        "archive of kws for m4: removed"
    ]


def test_names_from_a_lock_file_are_escaped() -> None:
    found = differences(Lock(), Lock(models={"a\nb\x1b[2J": LOCK.models["kws"]}))
    assert found[0].as_drift().isprintable()
