"""``mlfbuild cache`` shows, empties and checks the local cache of results."""

from pathlib import Path

import pytest

from mlfbuild.cache import CacheSettings, open_cache
from mlfbuild.core import sha256
from support.command import Folder

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4}}
models: {kws: {source: kws.tflite}}
cache: {limit: 5 MiB, remote: https://cache.example/mlf}
"""
KEYS = [sha256(bytes([number])) for number in range(3)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache with three results of four blobs."""
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "caches"))
    cache = open_cache(CacheSettings(), print)
    for number, key in enumerate(KEYS):
        cache.store(key, {"own": b"%d" % number * 1000, "shared": b"shared"})
    return tmp_path / "caches/results"


def entry(place: Path, kind: str, digest: str) -> Path:
    return place / kind / digest[:2] / digest


def test_stats(folder: Folder, place: Path) -> None:
    found = folder.run("cache", "stats", "--format", "json").json
    size = sum(path.stat().st_size for path in place.rglob("*") if len(path.name) == 64)
    known = {"folder": str(place), "results": 3, "blobs": 4, "bytes": size, "hits": 0}
    assert found == {**known, "limit": 2 << 30, "remote": ""}
    lines = folder.run("cache", "stats").out.splitlines()
    assert [line.split() for line in lines] == [
        ["folder", str(place)],
        ["results", "3"],
        ["blobs", "4"],
        ["bytes", f"{size:,}", "of", "2,147,483,648"],
        ["hits", "0"],
    ]


@pytest.mark.usefixtures("place")
def test_stats_show_the_hits(folder: Folder) -> None:
    cache = open_cache(CacheSettings(), print)
    found = [cache.fetch(key) is not None for key in (*KEYS, KEYS[0], sha256(b"another"))]
    assert found == [True] * 4 + [False]
    assert folder.run("cache", "stats", "--format", "json").json["hits"] == 4
    assert folder.run("cache", "clear", "--format", "json").json["hits"] == 4
    assert folder.run("cache", "stats", "--format", "json").json["hits"] == 0


@pytest.mark.usefixtures("place")
def test_stats_show_what_the_project_file_says(folder: Folder) -> None:
    (folder.root / "sub").mkdir()
    folder.write("mlfbuild.yml", PROJECT)
    for words in ((), ("-C", "sub")):
        found = folder.run("cache", "stats", "--format", "json", *words).json
        assert (found["limit"], found["remote"]) == (5 << 20, "https://cache.example/mlf")
    lines = [line.split() for line in folder.run("cache", "stats").out.splitlines()]
    assert lines[-1] == ["server", "https://cache.example/mlf"]
    assert lines[3][2:] == ["of", "5,242,880"]
    folder.write("mlfbuild.yml", PROJECT.replace("5 MiB", "five"))
    assert "cache.limit" in folder.run("cache", "stats", status=2).err
    folder.run("cache", "clear")
    assert folder.run("cache", "verify").out.endswith("checked 0 files\n")


def test_a_cache_that_does_not_exist_is_empty(folder: Folder, tmp_path: Path) -> None:
    for action in ("stats", "verify", "clear"):
        found = folder.run("cache", action, "--folder", "none", "--format", "json").json
        assert found["folder"] == str(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_clear_removes_entries_and_nothing_else(folder: Folder, place: Path) -> None:
    size = sum(path.stat().st_size for path in place.rglob("*") if len(path.name) == 64)
    own = [place / "notes.txt", place / "ac/ab/notes.txt", place / "cas" / KEYS[0]]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    assert folder.run("cache", "clear").out == f"{place}: removed 3 results and 4 blobs, {size:,} bytes\n"
    assert all(path.read_text() == "mine" for path in own)
    found = folder.run("cache", "stats", "--format", "json").json
    assert (found["results"], found["blobs"], found["bytes"]) == (0, 0, 0)
    assert folder.run("cache", "clear", "-q").out == ""


def test_verify_finds_nothing_wrong(folder: Folder, place: Path) -> None:
    assert folder.run("cache", "verify").out == f"{place}: checked 7 files\n"
    found = folder.run("cache", "verify", "--format", "json").json
    assert found == {"folder": str(place), "checked": 7, "damaged": [], "incomplete": []}


def test_verify_removes_what_is_damaged(folder: Folder, place: Path) -> None:
    blob = sha256(b"0" * 1000)
    entry(place, "cas", blob).write_bytes(b"1" * 1000)
    entry(place, "ac", KEYS[1]).write_bytes(b"\xff")
    entry(place, "cas", sha256(b"2" * 1000)).unlink()
    done = folder.run("cache", "verify", "--format", "json", status=1)
    assert done.json == {
        "folder": str(place),
        "checked": 6,
        "damaged": sorted([f"cas/{blob}", f"ac/{KEYS[1]}"]),
        # Of the first one, the blob has just been removed.
        "incomplete": sorted([f"ac/{KEYS[0]}", f"ac/{KEYS[2]}"]),
    }
    assert not entry(place, "ac", KEYS[1]).exists()
    assert folder.run("cache", "verify").out == f"{place}: checked 2 files\n"


def test_verify_prints_what_it_removed(folder: Folder, place: Path) -> None:
    entry(place, "ac", KEYS[1]).write_bytes(b"\xff")
    entry(place, "cas", sha256(b"2" * 1000)).unlink()
    done = folder.run("cache", "verify", status=1)
    assert done.out.splitlines() == [
        f"ac/{KEYS[1]}: damaged, removed",
        f"ac/{KEYS[2]}: a blob is missing, removed",
        f"{place}: checked 6 files",
    ]
    assert done.err.startswith(f"mlfbuild: {place}: 2 files of the cache had to be removed; ")
