"""`mlfbuild merge`."""

from mlfbuild.archive import pack_archive
from support.command import Folder
from support.libraries import native_library


def test_merged_modules(archives: Folder) -> None:
    ended = archives.run("merge", "tiny.tar", "net.tar", "both.tar", "-o", "all.tar")
    size = (archives.root / "all.tar").stat().st_size
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == f"all.tar: 4 modules (net, one, tiny, two), {size:,} bytes\n"
    result = archives.run("merge", "tiny.tar", "net.tar", "-o", "two.tar", "--format", "json").json
    assert (result["archive"], result["modules"]) == ("two.tar", ["net", "tiny"])
    comparison = archives.run("compare", "tiny.tar", "two.tar", "--format", "json").json
    assert [(entry["what"], entry["name"]) for entry in comparison["differences"]] == [("module", "net")]


def test_modules_of_the_same_name_conflict(archives: Folder) -> None:
    archives.write("again.tar", pack_archive(native_library("tiny")))
    ended = archives.run("merge", "tiny.tar", "again.tar", "-o", "out.tar")
    assert (ended.status, ended.out) == (1, "")
    assert "tiny.tar" in ended.err and "again.tar" in ended.err and ended.err.count("\n") == 1
    assert not (archives.root / "out.tar").exists()
