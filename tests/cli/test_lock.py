"""`mlfbuild lock`, and frozen builds, which accept only locked inputs."""

import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild import __version__
from mlfbuild.requirements.lock import Lock, read_lock
from support.command import Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network
from support.program_repo import ProgramRepo

CROSS = "targets:\n  pc: {cpu: host}\n  m4: {cpu: cortex-m4, board: mps2-an386}\n"
BUILT = "build/mlf/pc/alpha/RECORD.json"


@pytest.fixture
def locked(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return the folder with a lock file; only archives are built."""
    tool("cmake", "ninja", "gcc")
    assert folder.run("lock", "-q").status == 0
    return folder


def lock_of(folder: Folder) -> Lock:
    lock = read_lock(folder.root / "mlfbuild.lock")
    assert lock is not None
    return lock


def relock(folder: Folder, **sections: object) -> None:
    """Write a valid lock file with other facts."""
    folder.write("mlfbuild.lock", dataclasses.replace(lock_of(folder), **sections).to_text())  # type: ignore[arg-type]


def other_compiler(folder: Folder, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Pretend that this machine has another version of its C compiler."""
    real = shutil.which("gcc")
    script = f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; else exec {real} "$@"; fi\n'
    path = folder.write("tools/my-cc", script)
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))


def add_model(folder: Folder, name: str) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("models:\n", f"models:\n  {name}: {{source: models/beta.tflite}}\n"))


def test_lock_prints_changes(folder: Folder, tool: Callable[..., str]) -> None:
    tool("gcc")
    first = folder.run("lock")
    lines = first.out.splitlines()
    assert first.status == 0
    assert [line.partition(":")[0] for line in lines] == [
        "model alpha", "model beta", "toolchain of pc", "archive of alpha for pc", "archive of beta for pc",
    ]  # fmt: skip
    assert all(line.endswith(", new") for line in lines)
    assert first.err.splitlines()[-1] == "mlfbuild.lock: written; commit it"
    assert str(folder.root) not in (folder.root / "mlfbuild.lock").read_text()
    time = (folder.root / "mlfbuild.lock").stat().st_mtime_ns
    again = folder.run("lock")
    assert again == type(again)(0, "mlfbuild.lock: everything is as locked\n", "")
    assert (folder.root / "mlfbuild.lock").stat().st_mtime_ns == time
    assert folder.run("lock", "--format", "json").json == {"lock": "mlfbuild.lock", "written": False, "changes": []}


def test_second_frozen_build_does_nothing(locked: Folder) -> None:
    assert locked.run("build", "--frozen", "--offline").status == 0
    assert "compiled" not in locked.run("build", "-v").err, "the archives that were locked are there"
    before = {name: (locked.root / name).stat().st_mtime_ns for name in locked.files()}
    again = locked.run("build", "--frozen", "--offline", status=0)
    assert again.err == "nothing to build: 3 jobs up to date\n"
    assert {name: (locked.root / name).stat().st_mtime_ns for name in locked.files()} == before


def test_lock_file_is_named_after_the_project_file(folder: Folder) -> None:
    (folder.root / "mlfbuild.yml").rename(folder.root / "other.yml")
    assert folder.run("lock", "-f", "other.yml").status == 0
    assert (folder.root / "other.lock").is_file()
    assert folder.run("lock", "--check", "-f", "other.yml").out == "other.lock: everything is as locked\n"


@pytest.mark.parametrize(
    "verb",
    [["build"], ["verify"], ["report"], ["profile"], ["plan"], ["generate", "--model", "alpha"], ["lock", "--check"]],
    ids=lambda verb: verb[0],
)
def test_changed_model_stops_every_verb_before_compiling(locked: Folder, verb: list[str]) -> None:
    locked.write("models/alpha.tflite", tiny_network(5))
    before = locked.files()
    ended = locked.run(*verb, *([] if verb[0] == "lock" else ["--frozen"]), status=1)
    (line,) = [line for line in ended.err.splitlines() if not line.startswith("not verified: ")]
    assert_printed(line, "lock-drift", "mlfbuild: mlfbuild.lock", "model alpha: file: locked ")
    assert locked.files() == before, "nothing was built"


def test_every_drift_is_an_event(locked: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    locked.write("models/alpha.tflite", tiny_network(5))
    add_model(locked, "gamma")
    other_compiler(locked, monkeypatch, "cc 99.1")
    ended = locked.run("build", "--frozen")
    lines = ended.err.splitlines()
    assert ended.status == 1
    assert_printed(lines[0], "lock-drift", "mlfbuild: mlfbuild.lock", "3 entries")
    assert [line.split(":")[0] for line in lines[1:]] == ["  model alpha", "  model gamma", "  toolchain of pc"]
    assert lines[2] == "  model gamma: is not in the lock file"
    assert lines[3].endswith(", here cc 99.1")
    event = json.loads(locked.run("build", "--frozen", "--format", "json").err.splitlines()[-1])
    assert (event["exit_code"], event["kind"]) == (1, "drift")
    assert [problem["message"] for problem in event["problems"]] == [line.strip() for line in lines[1:]]


def test_changed_options_are_detected_before_unpacking(locked: Folder) -> None:
    assert locked.run("build", "--frozen").status == 0
    record = (locked.root / BUILT).read_bytes()
    text = (locked.root / "mlfbuild.yml").read_text()
    locked.write("mlfbuild.yml", text.replace("vectors: alpha.npz", "vectors: alpha.npz, options: {trace: true}"))
    ended = locked.run("build", "--frozen", status=1)
    assert "mlfbuild: mlfbuild.lock: archive of alpha for pc: locked " in ended.err
    assert (locked.root / BUILT).read_bytes() == record
    assert locked.run("build").status == 0, "any other build takes what there is"
    assert (locked.root / BUILT).read_bytes() != record
    assert locked.run("generate", "--frozen", "--model", "alpha").status == 1, "nor is what was built before taken"


def test_another_version_of_mlfbuild_is_a_drift(locked: Folder) -> None:
    models = {
        name: dataclasses.replace(entry, compiler="native 0.0.9") for name, entry in lock_of(locked).models.items()
    }
    relock(locked, models=models)
    ended = locked.run("build", "--frozen", "--model", "beta")
    assert (ended.status, ended.err.count("\n")) == (1, 1)
    facts = ("model beta: compiler: ", "native 0.0.9", f"native {__version__}")
    assert_printed(ended.err, "lock-drift", "mlfbuild: mlfbuild.lock", *facts)


def test_another_toolchain_is_a_drift(locked: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    other_compiler(locked, monkeypatch, "cc (Debian 12.2.0-15) 12.2.0")
    ended = locked.run("build", "--frozen", status=1)
    facts = ("toolchain of pc: cc: ", "here cc (Debian 12.2.0-15) 12.2.0;")
    assert_printed(ended.err, "lock-drift", "mlfbuild: mlfbuild.lock", *facts)
    assert not (locked.root / BUILT).exists()
    assert locked.run("build", "--frozen", "--tree", "tree").status == 0, "no firmware, no toolchain"
    changed = locked.run("lock")
    assert changed.out.startswith("toolchain of pc: cc: ")
    assert changed.out.endswith(" -> cc (Debian 12.2.0-15) 12.2.0\n")


def test_obsolete_entries_are_reported_and_removed(locked: Folder) -> None:
    text = (locked.root / "mlfbuild.yml").read_text()
    text = text.replace("  beta: {source: models/beta.tflite}\n", "").replace("[alpha, beta]", "[alpha]")
    locked.write("mlfbuild.yml", text)
    ended = locked.run("build", "--frozen")
    assert (ended.status, ended.err.count("\n")) == (1, 1)
    assert_printed(ended.err, "lock-drift", "mlfbuild: mlfbuild.lock", "model beta: ")
    assert locked.run("lock").out == "model beta: removed\narchive of beta for pc: removed\n"


def test_unselected_entries_are_ignored_and_kept(locked: Folder) -> None:
    before = lock_of(locked)
    for name in ("alpha", "beta"):
        locked.write(f"models/{name}.tflite", tiny_network(5))
    locked.run("lock", "--model", "beta")
    after = lock_of(locked)
    assert after.models["alpha"] == before.models["alpha"]
    assert after.archives["pc"]["alpha"] == before.archives["pc"]["alpha"]
    assert after.models["beta"] != before.models["beta"]
    assert after.archives["pc"]["beta"] != before.archives["pc"]["beta"]
    assert locked.run("build", "--frozen", "--model", "beta").status == 0
    assert locked.run("build", "--frozen").status == 1


def test_frozen_build_without_a_lock_file_is_refused(folder: Folder) -> None:
    assert folder.refused("build", "--frozen") == (1, "lock-missing", "mlfbuild.lock")


def test_damaged_lock_file_is_refused(locked: Folder) -> None:
    text = (locked.root / "mlfbuild.lock").read_text()
    locked.write("mlfbuild.lock", text.replace(f"native {__version__}", "native 0.0.9", 1))
    assert locked.refused("build", "--frozen") == (5, "lock-edited", "mlfbuild.lock")
    assert locked.run("build").status == 0, "a build that is not frozen needs none"
    again = locked.run("lock", status=0)
    assert again.err.splitlines()[0].startswith("mlfbuild.lock: ")
    assert (locked.root / "mlfbuild.lock").read_text() == text


def test_a_file_of_another_program_is_not_replaced(folder: Folder) -> None:
    folder.write("mlfbuild.lock", "npm was here\n")
    before = folder.files()
    assert folder.refused("lock") == (6, "not-a-lock-file", "mlfbuild.lock")
    assert folder.files() == before


def test_failed_compilation_keeps_the_old_lock(locked: Folder) -> None:
    text = (locked.root / "mlfbuild.lock").read_text()
    locked.write("models/beta.tflite", b"no model")
    assert locked.run("lock").status == 5
    assert (locked.root / "mlfbuild.lock").read_text() == text


def test_missing_toolchain_does_not_stop_lock(locked: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (locked.root / "mlfbuild.yml").read_text()
    locked.write("mlfbuild.yml", text.replace("targets:\n  pc: {cpu: host}\n", CROSS))
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", str(locked.root / "none"))
    where = f"{locked.root}/none: program not found; run `mlfbuild lock` on a machine that has it"
    first = locked.run("lock", status=0)
    assert f"toolchain of m4: is not locked, so that frozen builds of it fail: {where}" in first.err.splitlines()
    assert set(lock_of(locked).archives) == {"pc", "m4"}, "archives need no toolchain"
    assert set(lock_of(locked).toolchains) == {"pc"}
    assert locked.run("build", "--frozen", "--target", "pc").status == 0

    monkeypatch.delenv("MLFBUILD_ARM_NONE_EABI_GCC")
    assert "toolchain of m4: arm-none-eabi-gcc " in locked.run("lock").out
    whole = lock_of(locked)
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", str(locked.root / "none"))
    kept = locked.run("lock")
    assert kept.err.splitlines() == [f"toolchain of m4: stays as it was locked: {where}"]
    assert lock_of(locked) == whole
    missing = locked.run("build", "--frozen", "--target", "m4")
    assert (missing.status, missing.err.partition(": program not found")[0]) == (3, f"mlfbuild: {locked.root}/none")
    checked = locked.run("lock", "--check")
    assert (checked.status, checked.out) == (0, "mlfbuild.lock: everything is as locked\n")
    assert checked.err == f"not checked: toolchain of m4: {locked.root}/none: program not found\n"


def test_toolchain_file_of_the_project_is_locked(locked: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    other_compiler(locked, monkeypatch, "cc 99.1")
    locked.write("own.cmake", f'set(CMAKE_C_COMPILER "{locked.root}/tools/my-cc")\n')
    text = (locked.root / "mlfbuild.yml").read_text()
    locked.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host, toolchain: own.cmake}"))
    assert locked.run("lock").status == 0
    assert lock_of(locked).toolchains["pc"].programs == {"my-cc": "cc 99.1"}
    assert str(locked.root) not in (locked.root / "mlfbuild.lock").read_text()
    (locked.root / "own.cmake").write_text(f"# mine\n{(locked.root / 'own.cmake').read_text()}")
    ended = locked.run("build", "--frozen")
    assert ended.err.startswith("mlfbuild: mlfbuild.lock: toolchain of pc: toolchain file: locked ")


def test_source_date_epoch_is_reported(locked: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    shutil.rmtree(locked.root / "build")
    ended = locked.run("lock", "--check", status=1)
    assert "SOURCE_DATE_EPOCH" in ended.err.splitlines()[-3]


def test_frozen_does_not_apply_to_every_verb(folder: Folder) -> None:
    assert "--frozen does not apply to `mlfbuild check`" in folder.run("--frozen", "check").err
    arguments = ("verify", "--frozen", "--elf", "x.elf", "--vectors", "x.npz")
    assert folder.refused(*arguments) == (2, "option-not-applicable", "--frozen")


def test_programs_that_compile_are_locked_by_version_and_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tool: Callable[..., str]
) -> None:
    tool("gcc")
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, capsys)
    repo = ProgramRepo(tmp_path)
    chosen = ("--target", "pc", "-j", "1")
    assert folder.run("lock", *chosen).status == 0
    assert {name: entry.compiler for name, entry in lock_of(folder).models.items()} == {
        "alpha": "command", "beta": "command", "gamma": "tvm 0.14.0",
    }  # fmt: skip
    assert repo.ran() == ["alpha host", "beta host", "tvm"]
    assert folder.run("lock", "--check", *chosen).status == 0
    assert repo.ran() == [], "what was made is not made again"
    repo.write("data/labels.txt", "yes no maybe\n")
    repo.use_tvm("0.15.0")
    ended = folder.run("lock", "--check", *chosen)
    assert repo.ran() == [], "what drifted is known before anything runs"
    lines = ended.err.splitlines()
    assert ended.status == 1
    assert_printed(lines[0], "lock-drift", "mlfbuild: mlfbuild.lock", "2 entries")
    assert lines[1].startswith("  model alpha: inputs: locked ")
    assert lines[2] == "  model gamma: compiler: locked tvm 0.14.0, here tvm 0.15.0"


def test_build_without_frozen_does_not_compare_locks(locked: Folder) -> None:
    assert locked.run("build", "-q").status == 0
    loaded = "import sys; from mlfbuild.cli.output.invocation import run; run({!r}); print(*sys.modules)"
    for words in (["build", "-q"], ["plan", "-q", "--lines", "--complete"]):
        done = subprocess.run(
            [sys.executable, "-c", loaded.format(words)], cwd=locked.root, capture_output=True, text=True, check=True
        )
        modules = done.stdout.splitlines()[-1].split()
        assert "mlfbuild.jobs.model_builds" in modules
        assert not {"mlfbuild.usecases.lock", "mlfbuild.requirements.lock_diff"} & set(modules), words
