"""``CacheDir`` and the cache of results: one checkout makes what others copy, and nothing is compiled there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs.model_builds import tree_is_whole
from support.examples import first_on_push
from support.firmware_repo import FirmwareRepo

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
env.CacheDir("../cache")
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
env.Program("build/app", env.Object("build/main.o", "src/main.c"))
"""
MAIN = """\
#include "tvmgen_alpha.h"

int main(void) { return tvmgen_alpha_run(0, 0) == 99; }
"""
TREE = "build/mlf/pc/alpha"


@pytest.fixture
def checkout(
    results_cache: Path,  # noqa: ARG001 - builds use it
    tmp_path: Path,
    tool: Callable[[str], str],
) -> Callable[[str], FirmwareRepo]:
    """A function that returns a new checkout of one firmware repository; all checkouts use the same cache."""
    tool("gcc")

    def make(name: str) -> FirmwareRepo:
        repo = FirmwareRepo(tmp_path / name)
        repo.write("mlfbuild.yml", PROJECT)
        repo.write("SConstruct", SCONSTRUCT)
        repo.write("src/main.c", MAIN)
        return repo

    return make


def retrieved(output: str) -> set[str]:
    return set(re.findall(r"Retrieved `([^']*)' from (?:the )?cache", output))


@pytest.mark.parametrize("jobs", first_on_push(["-j4", "-j1"]))
def test_another_checkout_compiles_nothing(checkout: Callable[[str], FirmwareRepo], jobs: str) -> None:
    first = checkout("first")
    first.build(jobs)
    second = checkout("a longer name")
    ran = second.build(jobs)
    assert retrieved(ran.output) == {
        "build/mlf/pc/alpha.tar", "build/mlf.lib/pc/alpha/alpha_lib0.o", "build/mlf.lib/pc/libmlf_alpha.a",
        "build/main.o", "build/app",
    }  # fmt: skip
    assert "Compiling model" not in ran.output
    assert "gcc" not in ran.output
    assert "Unpacking build/mlf/pc/alpha.tar" in ran.output, "the tree is made from the archive, which is quick"
    assert tree_is_whole(second.root / TREE)
    assert second.read(f"{TREE}/RECORD.json") == first.read(f"{TREE}/RECORD.json")
    again = second.build("--debug=explain", "-Q").output
    assert again == "scons: `.' is up to date.\n"


@pytest.mark.sweep
def test_results_missing_in_the_cache_are_made(checkout: Callable[[str], FirmwareRepo]) -> None:
    checkout("first").build()
    second = checkout("second")
    second.write_model("alpha", seed=9)
    ran = second.build()
    assert "Compiling model models/alpha.tflite -> build/mlf/pc/alpha.tar" in ran.output
    assert retrieved(ran.output) == {"build/main.o"}, "other weights do not change the header that main.c includes"
    second.write_model("alpha", seed=1)
    ran = second.build()
    assert "build/mlf/pc/alpha.tar" in retrieved(ran.output)
    assert "Compiling model" not in ran.output
    assert tree_is_whole(second.root / TREE), "files of the other archive are gone, too"


@pytest.mark.sweep
@pytest.mark.parametrize("damage", first_on_push([None, b"", b"garbage"]), ids=["short", "empty", "garbage"])
def test_damaged_archive_in_the_cache_is_made_again(
    checkout: Callable[[str], FirmwareRepo], results_cache: Path, damage: bytes | None
) -> None:
    first = checkout("first")
    first.build()
    good = first.read("build/mlf/pc/alpha.tar")
    (entry,) = [path for path in results_cache.rglob("*") if path.is_file() and path.read_bytes() == good]
    entry.chmod(0o644)
    entry.write_bytes(good[:3000] if damage is None else damage)
    second = checkout("second")
    ran = second.build("-Q")
    assert "Compiling model models/alpha.tflite -> build/mlf/pc/alpha.tar" in ran.output
    assert second.read("build/mlf/pc/alpha.tar") == good
    assert tree_is_whole(second.root / TREE)
    assert entry.read_bytes() == good, "nobody else meets it"
    second.build()
    assert second.build("-Q").output == "scons: `.' is up to date.\n"


@pytest.mark.sweep
def test_archive_cut_off_by_hand_is_made_again(
    checkout: Callable[[str], FirmwareRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = checkout("first")
    repo.build()
    archive = repo.root / "build/mlf/pc/alpha.tar"
    good = archive.read_bytes()
    monkeypatch.setenv("MLFBUILD_CACHE_DISABLE", "1")
    archive.write_bytes(good[:3000])
    (repo.root / TREE / "RECORD.json").unlink()
    repo.build()
    assert archive.read_bytes() == good
    assert tree_is_whole(repo.root / TREE)


@pytest.mark.sweep
def test_cache_show_and_readonly_cache(checkout: Callable[[str], FirmwareRepo], tmp_path: Path) -> None:
    checkout("first").build()
    before = {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    second = checkout("second")
    shown = second.build("-Q", "--cache-show", "--cache-readonly").output.splitlines()
    assert "Compiling model models/alpha.tflite -> build/mlf/pc/alpha.tar" in shown, "what would have been done"
    assert len([line for line in shown if line.startswith(("gcc", "ar ", "ranlib", "Compiling"))]) == 6
    second.write_model("alpha", seed=9)
    assert not retrieved(second.build("--cache-readonly").output)
    assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} == before, "nothing is put there"


def test_edited_tree_is_restored_from_the_archive(checkout: Callable[[str], FirmwareRepo]) -> None:
    repo = checkout("first")
    repo.build()
    source = repo.root / TREE / "codegen/host/src/alpha_lib0.c"
    good = source.read_bytes()
    source.write_bytes(b"")
    ran = repo.build()
    assert source.read_bytes() == good
    assert not retrieved(ran.output)


@pytest.mark.sweep
def test_image_is_not_cached(checkout: Callable[[str], FirmwareRepo], tool: Callable[[str], str]) -> None:
    tool("cmake"), tool("ninja")
    project = PROJECT + "firmware: {app: {sources: [src/main.c], models: [alpha]}}\n"
    sconstruct = SCONSTRUCT[: SCONSTRUCT.index("models.apply")] + 'env.MlfFirmware("app", models=models)\n'
    repos = [checkout("first"), checkout("second")]
    for status, repo in enumerate(repos):
        repo.write("mlfbuild.yml", project)
        repo.write("SConstruct", sconstruct)
        repo.write("src/main.c", f"int main(void) {{ return {status}; }}\n")
        assert not retrieved(repo.build().output) - {"build/mlf/pc/alpha.tar"}
    assert repos[0].read("build/pc/app/app") != repos[1].read("build/pc/app/app")
