"""`mlfbuild split`: one archive for each module."""

import pytest

from mlfbuild.archive import open_archive, pack_archive, tar
from mlfbuild.library import Library
from support.command import Folder
from support.libraries import native_library


def test_each_module_gets_an_archive(archives: Folder) -> None:
    ended = archives.run("split", "both.tar", "-o", "parts")
    sizes = {name: (archives.root / f"parts/{name}.tar").stat().st_size for name in ("one", "two")}
    lines = [f"parts/{name}.tar: module {name}, {size:,} bytes" for name, size in sizes.items()]
    assert (ended.status, ended.out.splitlines(), ended.err) == (0, lines, "")
    for module in native_library("one", "two").modules:
        assert (archives.root / f"parts/{module.name}.tar").read_bytes() == pack_archive(Library((module,)))
    archives.run("merge", "parts/one.tar", "parts/two.tar", "-o", "again.tar")
    assert (archives.root / "again.tar").read_bytes() == (archives.root / "both.tar").read_bytes()


def test_one_module_is_written_to_a_file(archives: Folder) -> None:
    facts = archives.run("split", "both.tar", "--model", "two", "-o", "second.tar", "--format", "json").json
    size = (archives.root / "second.tar").stat().st_size
    assert facts == {"archives": [{"module": "two", "archive": "second.tar", "size": size}]}
    assert [module.name for module in open_archive(archives.root / "second.tar").modules] == ["two"]
    assert archives.run("split", "both.tar", "--model", "one", "--model", "two", "-o", "parts", "-q").out == ""
    assert (archives.root / "parts/two.tar").read_bytes() == (archives.root / "second.tar").read_bytes()


def test_an_archive_of_one_module(archives: Folder) -> None:
    assert archives.run("split", "tiny.tar", "-o", "parts").status == 0
    assert (archives.root / "parts/tiny.tar").read_bytes() == (archives.root / "tiny.tar").read_bytes()


def test_archives_of_an_earlier_split_are_replaced(archives: Folder) -> None:
    archives.write("parts/one.tar", pack_archive(native_library("tiny")))
    assert archives.run("split", "both.tar", "-o", "parts").status == 0
    assert [module.name for module in open_archive(archives.root / "parts/one.tar").modules] == ["one"]


@pytest.mark.parametrize("content", [b"notes", b"", b"".join(tar.pack({"x.txt": b"x"}, 0))])
def test_files_that_mlfbuild_did_not_write_stay(archives: Folder, content: bytes) -> None:
    place = archives.write("parts/two.tar", content)
    before = archives.files()
    assert archives.refused("split", "both.tar", "-o", "parts") == (6, "output-of-another-kind", "parts/two.tar")
    assert (place.read_bytes(), archives.files()) == (content, before)


def test_outputs_that_cannot_be_written(archives: Folder) -> None:
    archives.write("file", b"x")
    archives.write("parts/one.tar/x", b"x")
    before = archives.files()
    assert archives.refused("split", "both.tar", "-o", "file") == (6, "output-not-a-folder", "file")
    assert archives.refused("split", "both.tar", "-o", "parts") == (2, "output-is-folder", "parts/one.tar")
    (archives.root / "one.tar").write_bytes((archives.root / "both.tar").read_bytes())
    assert archives.refused("split", "one.tar", "-o", ".") == (6, "output-is-input", "one.tar")
    assert archives.refused("split", "both.tar", "--model", "one", "-o", "both.tar") == (
        6, "output-is-input", "both.tar",
    )  # fmt: skip
    assert archives.files() == before | {"one.tar"}


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("both.tar", "--model", "three"), 2, "unknown-module"),
        (("junk.tar",), 5, "archive-not-tar"),
        (("none.tar",), 5, "no-such-input"),
    ],
)
def test_a_failed_split_leaves_nothing(archives: Folder, arguments: tuple[str, ...], status: int, code: str) -> None:
    assert archives.refused("split", *arguments, "-o", "parts")[:2] == (status, code)
    assert not (archives.root / "parts").exists()


def test_an_error_while_writing_leaves_nothing(archives: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlfbuild.usecases import split as usecase

    def failing(*arguments: object) -> None:
        written.append(arguments)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    written: list[object] = []
    monkeypatch.setattr(usecase, "write_archive", failing)
    assert archives.refused("split", "both.tar", "-o", "parts") == (8, "cannot-write", "parts")
    assert not (archives.root / "parts").exists()
