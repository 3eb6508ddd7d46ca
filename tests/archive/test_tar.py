"""Tar files: reproducible bytes, and a reader for untrusted files."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.archive import tar
from mlfbuild.archive.tar import read
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import Content, LazyBytes
from support.errors import raises
from support.examples import examples
from support.steps import assert_linear, ends

FILES = {"metadata.json": b"{}", "codegen/host/src/a.c": b"int a;\n", "parameters/empty.params": b""}


def pack(files: Mapping[str, Content], mtime: int) -> bytes:
    return b"".join(tar.pack(files, mtime))


def unpack(data: bytes, where: str) -> dict[str, Content]:
    return tar.members(io.BytesIO(data), where)


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.size, header.linkname = kind, len(data), link
    return header


def archive(*members: tuple[str, bytes], dialect: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=dialect) as file:
        for name, data in members:
            file.addfile(member(name, data), io.BytesIO(data))
    return buffer.getvalue()


def with_member(header: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(header, io.BytesIO(bytes(header.size)))
    return buffer.getvalue()


def test_names_modes_and_owners_equal_those_of_tvm() -> None:
    with tarfile.open(fileobj=io.BytesIO(pack(FILES, 315532800))) as file:
        members = file.getmembers()
    assert [m.name for m in members] == [
        ".", "./codegen", "./codegen/host", "./codegen/host/src", "./codegen/host/src/a.c",
        "./metadata.json", "./parameters", "./parameters/empty.params",
    ]  # fmt: skip
    assert {m.mode for m in members if m.isdir()} == {0o755}
    assert {m.mode for m in members if m.isreg()} == {0o644}
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "root", "root", 315532800)}
    assert not any(m.pax_headers for m in members)


def test_equal_files_give_equal_bytes_in_any_order() -> None:
    assert pack(FILES, 0) == pack(dict(reversed(FILES.items())), 0)


def test_packed_files_are_unpacked() -> None:
    assert unpack(pack(FILES, 0), "a.tar") == FILES


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("dot", ["", "./", ".//"])
def test_all_dialects_with_and_without_dot(dialect: int, dot: str) -> None:
    long = "codegen/" + "x" * 90 + "/" + "y" * 90 + ".c"
    data = archive((f"{dot}metadata.json", b"{}"), (f"{dot}{long}", b"int y;"), dialect=dialect)
    assert unpack(data, "a.tar") == {"metadata.json": b"{}", long: b"int y;"}


@pytest.mark.parametrize("dialect", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names(dialect: int) -> None:
    long = "/".join(["d" * 60] * 8)
    assert unpack(archive((long, b"1"), dialect=dialect), "a.tar") == {long: b"1"}


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
def test_compression_is_recognised_by_content(compress) -> None:
    plain = pack(FILES, 0)
    assert unpack(compress(plain), "a.tar") == FILES
    halves = compress(plain[:700]) + compress(plain[700:])
    padding = b"" if compress is lzma.compress else bytes(512)  # padding of tapes, which tars in xz do not have
    assert unpack(halves + padding, "a.tar") == FILES


UNSAFE = {
    "drive": (archive(("./C:/x.c", b"")), "archive-member-name-unsafe", "'./C:/x.c'"),
    "absolute": (archive(("/etc/passwd", b"")), "archive-member-name-unsafe", "'/etc/passwd'"),
    "traversal": (archive(("./codegen/../../x.c", b"")), "archive-member-name-unsafe", "'./codegen/../../x.c'"),
    "backslashes": (archive(("..\\x.c", b"")), "archive-member-name-unsafe", "'..\\\\x.c'"),
    "line end": (archive(("a\nb", b"")), "archive-member-name-unsafe", "'a\\nb'"),
    "deep": (archive(("/".join("a" * 40), b"")), "archive-member-name-unsafe", f"'{'/'.join('a' * 40)}'"),
    "long": (archive(("a" * 300, b"")), "archive-member-name-unsafe", f"'{'a' * 120}'..."),
    **{
        f"git as {folder}": (archive((f"{folder}/hooks/x", b"")), "archive-member-name-unsafe", f"'{folder}/hooks/x'")
        for folder in ("codegen/.git", ".GIT", ".Git.", "git~1", "GIT~1 ", ".git::$INDEX_ALLOCATION")
    },
    "nameless": (with_member(member("./.")), "archive-member-name-unsafe", "'./.'"),
    "twice": (
        archive(("metadata.json", b"{}"), ("./metadata.json", b"{}")),
        "archive-member-conflict",
        "'./metadata.json'",
    ),
    "file as folder": (archive(("a", b""), ("a/b", b"")), "archive-member-conflict", "'a/b'"),
    "folder as file": (archive(("a/b", b""), ("a", b"")), "archive-member-conflict", "'a'"),
    "case": (archive(("src/a.c", b""), ("src/A.c", b"")), "archive-member-conflict", "'src/A.c'"),
    "case of a folder": (archive(("src/a", b""), ("SRC/b", b"")), "archive-member-conflict", "'SRC/b'"),
    "case of a file and a folder": (archive(("A", b""), ("a/b", b"")), "archive-member-conflict", "'a/b'"),
    "case beyond ASCII": (archive(("STRASSE", b""), ("straße", b"")), "archive-member-conflict", "'stra\\xdfe'"),
    "two forms of one letter": (archive(("\u00e9", b""), ("e\u0301", b"")), "archive-member-conflict", "'e\\u0301'"),
    "symbolic link": (
        with_member(member("x", kind=tarfile.SYMTYPE, link="/etc/passwd")),
        "archive-member-type-unsupported",
        "'x'",
    ),
    "hard link": (with_member(member("x", kind=tarfile.LNKTYPE, link="y")), "archive-member-type-unsupported", "'x'"),
    "character device": (with_member(member("x", kind=tarfile.CHRTYPE)), "archive-member-type-unsupported", "'x'"),
    "block device": (with_member(member("x", kind=tarfile.BLKTYPE)), "archive-member-type-unsupported", "'x'"),
    "pipe": (with_member(member("x", kind=tarfile.FIFOTYPE)), "archive-member-type-unsupported", "'x'"),
    "sparse": (with_member(member("x", kind=tarfile.GNUTYPE_SPARSE)), "archive-member-type-unsupported", "'x'"),
    "unknown type": (with_member(member("x", kind=b"Z")), "archive-member-type-unsupported", "'x'"),
    "link with a long target": (
        with_member(member("x", kind=tarfile.SYMTYPE, link="y" * 200)),
        "archive-member-type-unsupported",
        "'x'",
    ),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_members_are_refused(name: str) -> None:
    data, code, place = UNSAFE[name]
    with raises(InputFileError, code, at=f"kws.tar: {place}") as caught:
        unpack(data, "kws.tar")
    assert str(caught.value).isprintable()


def test_names_that_only_resemble_a_repository_are_read() -> None:
    names = [".gitignore", "src/git", "x.git/config", ".github/x"]
    assert sorted(unpack(archive(*((name, b"") for name in names)), "a.tar")) == sorted(names)


def test_a_bad_name_in_a_pax_header_is_refused() -> None:
    header = member("x")
    header.pax_headers = {"path": "../x"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(header)
    with raises(InputFileError, "archive-member-name-unsafe", at="a.tar: '../x'"):
        unpack(buffer.getvalue(), "a.tar")


@pytest.mark.parametrize("key", ["GNU.sparse.major", "path"])
def test_a_pax_header_for_all_members(key: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={key: "1"}) as file:
        file.addfile(member("x"))
    with raises(InputFileError, "archive-header-unsupported", at="a.tar"):
        unpack(buffer.getvalue(), "a.tar")


def test_comment_for_all_members_is_accepted() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "hello"}) as file:
        file.addfile(member("x"))
    assert unpack(buffer.getvalue(), "a.tar") == {"x": b""}


def test_names_with_different_letters_are_distinct() -> None:
    names = ["src/a.c", "src/b.c", "src/a.cc", "a.c", "srcs/a.c", "codegen/host/src/Aa.c"]
    assert list(unpack(archive(*((name, b"") for name in names)), "a.tar")) == names


def patched(offset: int, data: bytes) -> bytes:
    """Return a tar of a file ``x`` of two bytes with ``data`` at ``offset`` of its header and a correct checksum."""
    content = bytearray(archive(("x", b"ab")))
    content[offset : offset + len(data)] = data
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    return bytes(content)


PLAIN = pack(FILES, 0)
DAMAGED = {
    "empty": (b"", "archive-empty"),
    "zeros": (bytes(300), "archive-not-tar"),
    "random": (bytes(range(256)) * 40, "archive-not-tar"),
    "text": (b"hello, world\n" * 100, "archive-not-tar"),
    "cut in a header": (PLAIN[:2200], "archive-truncated"),
    "cut before the end mark": (PLAIN[: 512 * 10], "archive-truncated"),
    "cut in a file": (archive(("x", b"y" * 600))[:1000], "archive-truncated"),
    "changed header": (PLAIN[:600] + b"x" + PLAIN[601:], "archive-header-damaged"),
    "size of 8 GiB": (patched(124, b"77777777777\0"), "archive-truncated"),
    "binary size": (patched(124, b"\x80" + b"\xff" * 11), "archive-truncated"),
    "negative size": (patched(124, b"\xff" * 12), "archive-header-damaged"),
    "size in words": (patched(124, b"two        \0"), "archive-header-damaged"),
    "cut gzip": (gzip.compress(PLAIN)[:-20], "archive-compression-damaged"),
    "cut xz": (lzma.compress(PLAIN)[:-20], "archive-compression-damaged"),
    "damaged xz": (lzma.compress(PLAIN)[:20] + b"\xff" * 400, "archive-compression-damaged"),
    "cut bzip2": (bz2.compress(PLAIN)[:-20], "archive-compression-damaged"),
    "damaged gzip": (gzip.compress(PLAIN)[:-8] + b"\xff" * 8, "archive-compression-damaged"),
    "damaged bzip2": (bz2.compress(PLAIN)[:20] + b"\xff" * 400, "archive-compression-damaged"),
    "gzip of text": (gzip.compress(b"hello"), "archive-not-tar"),
    "garbage behind gzip": (gzip.compress(PLAIN) + b"garbage", "archive-compression-damaged"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused(name: str) -> None:
    data, code = DAMAGED[name]
    with raises(InputFileError, code, at="kws.tar") as caught:
        unpack(data, "kws.tar")
    assert str(caught.value).isprintable()


def test_valid_binary_size_is_read() -> None:
    assert unpack(patched(124, b"\x80" + bytes(10) + b"\x02"), "a.tar") == {"x": b"ab"}


@pytest.mark.parametrize(
    "record", [b"999 path=x\n", b"path=x\n", b"10 pathxx\n", b"0 =\n", b"-5 a=b\n", b"12 path=x..\0"]
)
def test_damaged_pax_headers(record: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(member("PaxHeader", record, kind=b"x"), io.BytesIO(record))
        file.addfile(member("x"))
    with raises(InputFileError, "archive-header-damaged", at="a.tar"):
        unpack(buffer.getvalue(), "a.tar")


def test_too_long_pax_header_is_refused() -> None:
    record = b"1048600 comment=" + b"x" * 1048583 + b"\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(member("PaxHeader", record, kind=b"x"), io.BytesIO(record))
    with raises(InputFileError, "archive-header-unsupported", at="a.tar"):
        unpack(buffer.getvalue(), "a.tar")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
def test_decompression_bomb_is_refused(compress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_INFLATED", 1 << 20)
    bomb = compress(archive(("x", bytes(1 << 20))))
    assert len(bomb) < 4096
    with raises(InputFileError, "archive-inflates-too-large", at="bomb.tar"):
        unpack(bomb, "bomb.tar")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_unpacking_needs_little_memory(compress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_IN_MEMORY", 1 << 20)
    packed = compress(archive(("x", bytes(64 << 20)), ("y", b"end")))
    tracemalloc.start()
    files = unpack(packed, "a.tar")
    assert len(files["x"]) == 64 << 20 and bytes(files["y"]) == b"end"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
def test_compressed_data_that_is_not_a_tar_is_not_decompressed(compress) -> None:
    with raises(InputFileError, "archive-not-tar"):
        # If it were decompressed, the missing end would be another error.
        unpack(compress(random.Random(0).randbytes(3 << 20))[:-20], "a.tar")


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_MEMBERS", 3)
    assert len(unpack(archive(*((f"{i}", b"") for i in range(3))), "a.tar")) == 3
    with raises(InputFileError, "archive-too-many-members"):
        unpack(archive(*((f"{i}", b"") for i in range(4))), "a.tar")


def test_million_members_are_refused_quickly() -> None:
    header = patched(124, b"%011o\0" % 0)[:512]
    names = (b"%07d" % number for number in range(100_001))
    others = sum(header[7:148]) + 8 * ord(" ") + sum(header[156:])
    blocks = [name + header[7:148] + b"%06o\0 " % (sum(name) + others) + header[156:] for name in names]
    with ends(), pytest.raises(InputFileError) as caught:
        unpack(b"".join(blocks) * 10, "a.tar")
    assert caught.value.code == "archive-too-many-members"


def test_many_tiny_gzip_streams_take_linear_time() -> None:
    def check(streams: int) -> None:
        with raises(InputFileError, "archive-empty"):
            unpack(gzip.compress(b"") * streams, "a.tar")

    assert_linear(check, 2_000)


# Where the bytes are


class Zeros(LazyBytes):
    """Zeros that are produced on demand."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read(self, offset: int, size: int) -> bytes:
        return bytes(min(size, self.size - offset))


def write(path: Path, parts: Iterator[bytes]) -> Path:
    """Write ``parts`` to ``path``, with holes for zeros."""
    with path.open("wb") as file:
        for part in parts:
            if part.count(0) == len(part):
                file.seek(len(part), os.SEEK_CUR)
            else:
                file.write(part)
        file.truncate()
    return path


def test_large_contents_stay_in_the_file(tmp_path: Path) -> None:
    size = 1536 << 20
    path = write(tmp_path / "big.tar", tar.pack({"metadata.json": b"{}", "big": Zeros(size), "z": b"end"}, 0))
    tracemalloc.start()
    files = tar.members(path.open("rb"), "big.tar")
    assert len(files["big"]) == size and bytes(files["z"]) == b"end"
    big = files["big"]
    assert isinstance(big, LazyBytes) and big.read(size - 2, 10) == b"\0\0"
    assert sum(len(chunk) for chunk in islice(tar.pack({"big": big}, 0), 64)) > 60 << 20
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_small_file_is_not_kept_open(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", tar.pack(FILES, 0))
    file = path.open("rb")
    files = tar.members(file, "a.tar")
    assert file.closed and files == FILES


def test_file_is_open_as_long_as_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", tar.pack({**FILES, "large": Zeros(2 << 20)}, 0))
    file = path.open("rb")
    files = tar.members(file, "a.tar")
    content = files["metadata.json"]
    path.unlink()
    del files
    assert bytes(content) == b"{}" and not file.closed
    del content
    assert file.closed


@pytest.mark.parametrize("data", [b"", gzip.compress(pack(FILES, 0)), bz2.compress(b"no tar" * 100)])
def test_file_is_closed_if_not_needed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(data)
    file = (tmp_path / "a.tar").open("rb")
    with contextlib.suppress(InputFileError):
        assert bytes(tar.members(file, "a.tar")["metadata.json"]) == b"{}"
    assert file.closed


def test_file_truncated_while_open_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", tar.pack({"x": b"abc" * 1_000_000}, 0))
    files = tar.members(path.open("rb"), "a.tar")
    os.truncate(path, 5000)
    with raises(InputFileError, "file-truncated", at="a.tar"):
        bytes(files["x"])


def test_full_disk_while_unpacking_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(gzip.compress(archive(("x", bytes(32 << 20)))))
    script = "\n".join(
        [
            "import resource",
            "from mlfbuild.archive import tar",
            "from mlfbuild.core.errors import StorageError",
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({20 << 20}, {20 << 20}))",
            "try:",
            "    tar.members(open('a.tgz', 'rb'), 'a.tgz')",
            "except StorageError as error:",
            "    print(error)",
        ]
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (
        f"{tmp_path}: cannot write: File too large; check free space and permissions\n", ""
    )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        (["../x"], r"'\.\./x'"),
        (["/x"], "'/x'"),
        (["a", "A"], "'A'"),
        (["a", "a/b"], "'a/b'"),
        (["x" * 300], "'x{300}'"),
    ],
)
def test_unreadable_paths_are_not_written(paths: list[str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        tar.pack(dict.fromkeys(paths, b""), 0)


def with_sound_checksums(data: bytearray) -> bytes:
    """Return the bytes with a correct checksum in each block that looks like a header."""
    for at in range(0, len(data), 512):
        block = data[at : at + 512]
        if block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            data[at + 148 : at + 156] = b"%06o\0 " % sum(block)
    return bytes(data)


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_mutated_archives_never_crash(data: st.DataObject) -> None:
    sound = data.draw(st.sampled_from([PLAIN, gzip.compress(PLAIN), archive(("y" * 120, b"1"), ("x", b"ab"))]))
    mutated = bytearray(sound)
    for _ in range(data.draw(st.integers(0, 6))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    whole = with_sound_checksums(mutated) if data.draw(st.booleans()) else bytes(mutated)
    with contextlib.suppress(InputFileError):
        for content in unpack(whole[: data.draw(st.integers(0, len(whole)))], "a.tar").values():
            bytes(content)
