"""Tar files: bytes that depend on the content alone, and a reader that trusts none of them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import tarfile
import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlfbuild.archive import inflate, tar
from mlfbuild.errors import InputFileError
from mlfbuild.library import Content

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


def test_names_modes_and_owners_are_tvms() -> None:
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


def test_what_is_packed_is_unpacked() -> None:
    assert unpack(pack(FILES, 0), "a.tar") == FILES


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("dot", ["", "./", ".//"])
def test_all_dialects_with_and_without_dot(dialect: int, dot: str) -> None:
    long = "codegen/" + "x" * 90 + "/" + "y" * 90 + ".c"
    data = archive((f"{dot}metadata.json", b"{}"), (f"{dot}{long}", b"int y;"), dialect=dialect)
    assert unpack(data, "a.tar") == {"metadata.json": b"{}", long: b"int y;"}


@pytest.mark.parametrize("dialect", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_of_more_than_a_header_holds(dialect: int) -> None:
    long = "/".join(["d" * 60] * 8)
    assert unpack(archive((long, b"1"), dialect=dialect), "a.tar") == {long: b"1"}


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_compression_is_told_by_content(compress) -> None:
    plain = pack(FILES, 0)
    assert unpack(compress(plain), "a.tar") == FILES
    halves = compress(plain[:700]) + compress(plain[700:])
    assert unpack(halves + bytes(512), "a.tar") == FILES


UNSAFE = {
    "absolute": (archive(("/etc/passwd", b"")), "member '/etc/passwd': is an absolute path, refused"),
    "traversal": (archive(("./codegen/../../x.c", b"")), "member './codegen/../../x.c': leads out of the archive"),
    "backslashes": (archive(("..\\x.c", b"")), "control characters, backslashes or bad UTF-8"),
    "line end": (archive(("a\nb", b"")), r"member 'a\nb': has a name with control characters"),
    "deep": (archive(("/".join("a" * 40), b"")), "has too long a name"),
    "long": (archive(("a" * 300, b"")), "has too long a name"),
    "nameless": (with_member(member("./.")), "has no name"),
    "twice": (archive(("metadata.json", b"{}"), ("./metadata.json", b"{}")), "stands twice in the archive"),
    "file as folder": (archive(("a", b""), ("a/b", b"")), "member 'a/b': lies in 'a', which is a file"),
    "symbolic link": (with_member(member("x", kind=tarfile.SYMTYPE, link="/etc/passwd")), "member 'x': is a symbolic"),
    "hard link": (with_member(member("x", kind=tarfile.LNKTYPE, link="y")), "is a hard link, refused"),
    "character device": (with_member(member("x", kind=tarfile.CHRTYPE)), "is a character device, refused"),
    "block device": (with_member(member("x", kind=tarfile.BLKTYPE)), "is a block device, refused"),
    "pipe": (with_member(member("x", kind=tarfile.FIFOTYPE)), "is a pipe, refused"),
    "sparse": (with_member(member("x", kind=tarfile.GNUTYPE_SPARSE)), "is a sparse file, refused"),
    "unknown type": (with_member(member("x", kind=b"Z")), "has the unknown type b'Z', refused"),
    "link with a long target": (
        with_member(member("x", kind=tarfile.SYMTYPE, link="y" * 200)), "member 'x': is a symbolic link, refused"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_members_are_refused_by_name(name: str) -> None:
    data, reason = UNSAFE[name]
    with pytest.raises(InputFileError) as caught:
        unpack(data, "kws.tar")
    assert str(caught.value).startswith("kws.tar: member ")
    assert reason in str(caught.value) and str(caught.value).isprintable()


def test_a_bad_name_in_a_pax_header_is_refused() -> None:
    header = member("x")
    header.pax_headers = {"path": "../x"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(header)
    with pytest.raises(InputFileError, match="leads out of the archive"):
        unpack(buffer.getvalue(), "a.tar")


@pytest.mark.parametrize(("key", "reason"), [("GNU.sparse.major", "holds a sparse file"), ("path", "one name or size")])
def test_a_pax_header_for_all_members(key: str, reason: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={key: "1"}) as file:
        file.addfile(member("x"))
    with pytest.raises(InputFileError, match=reason):
        unpack(buffer.getvalue(), "a.tar")


def test_a_comment_for_all_members_is_no_reason_to_refuse() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "hello"}) as file:
        file.addfile(member("x"))
    assert unpack(buffer.getvalue(), "a.tar") == {"x": b""}


def patched(offset: int, data: bytes) -> bytes:
    """A tar of one file ``x`` of two bytes with ``data`` at ``offset`` of its header, and a checksum that fits."""
    content = bytearray(archive(("x", b"ab")))
    content[offset : offset + len(data)] = data
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    return bytes(content)


PLAIN = pack(FILES, 0)
DAMAGED = {
    "empty": (b"", "is empty, not an archive"),
    "zeros": (bytes(300), "is not a tar file"),
    "random": (bytes(range(256)) * 40, "is not a tar file"),
    "text": (b"hello, world\n" * 100, "is not a tar file"),
    "cut in a header": (PLAIN[:2200], "ends early"),
    "cut before the end mark": (PLAIN[: 512 * 10], r"ends early \(no end-of-archive mark\)"),
    "cut in a file": (archive(("x", b"y" * 600))[:1000], "member 'x': claims 600 bytes, but the file ends before"),
    "changed header": (PLAIN[:600] + b"x" + PLAIN[601:], "damaged header at byte 512"),
    "size of 8 GiB": (patched(124, b"77777777777\0"), "member 'x': claims 8589934591 bytes, but the file ends before"),
    "binary size": (patched(124, b"\x80" + b"\xff" * 11), "member 'x': claims 309485009821345068724781055 bytes, but"),
    "negative size": (patched(124, b"\xff" * 12), "member 'x': its size is not sound"),
    "size in words": (patched(124, b"two        \0"), "member 'x': its size is not sound"),
    "cut gzip": (gzip.compress(PLAIN)[:-20], "the gzip data ends early"),
    "cut bzip2": (bz2.compress(PLAIN)[:-20], "the bzip2 data ends early"),
    "damaged gzip": (gzip.compress(PLAIN)[:-8] + b"\xff" * 8, "the gzip data is damaged"),
    "damaged bzip2": (bz2.compress(PLAIN)[:20] + b"\xff" * 400, "the bzip2 data is damaged"),
    "gzip of text": (gzip.compress(b"hello"), "is not a tar file"),
    "garbage behind gzip": (gzip.compress(PLAIN) + b"garbage", "the gzip data is damaged"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_give_one_clear_line(name: str) -> None:
    data, reason = DAMAGED[name]
    with pytest.raises(InputFileError, match=reason) as caught:
        unpack(data, "kws.tar")
    assert str(caught.value).startswith("kws.tar: ") and "\n" not in str(caught.value)


def test_a_binary_size_that_is_true_is_read() -> None:
    assert unpack(patched(124, b"\x80" + bytes(10) + b"\x02"), "a.tar") == {"x": b"ab"}


@pytest.mark.parametrize(
    "record", [b"999 path=x\n", b"path=x\n", b"10 pathxx\n", b"0 =\n", b"-5 a=b\n", b"12 path=x..\0"]
)
def test_damaged_pax_headers(record: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(member("PaxHeader", record, kind=b"x"), io.BytesIO(record))
        file.addfile(member("x"))
    with pytest.raises(InputFileError, match="a pax header is damaged"):
        unpack(buffer.getvalue(), "a.tar")


def test_an_absurdly_long_pax_header() -> None:
    record = b"1048600 comment=" + b"x" * 1048583 + b"\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(member("PaxHeader", record, kind=b"x"), io.BytesIO(record))
    with pytest.raises(InputFileError, match="an extended header is too long"):
        unpack(buffer.getvalue(), "a.tar")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_a_bomb_is_refused_before_it_goes_off(compress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflate, "MAX_INFLATED", 1 << 20)
    bomb = compress(archive(("x", bytes(1 << 20))))
    assert len(bomb) < 4096
    with pytest.raises(InputFileError, match="unpacks to more than 1 MiB, refused"):
        unpack(bomb, "bomb.tar")


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar, "MAX_MEMBERS", 3)
    with pytest.raises(InputFileError, match="more than 3 members"):
        unpack(archive(*((f"{i}", b"") for i in range(4))), "a.tar")


def test_many_tiny_gzip_streams_take_no_ages() -> None:
    started = time.process_time()
    with pytest.raises(InputFileError, match="is empty, not an archive"):
        unpack(gzip.compress(b"") * 20_000, "a.tar")
    assert time.process_time() - started < 5


def with_sound_checksums(data: bytearray) -> bytes:
    """The same bytes with the checksum of each block that looks like a header put right."""
    for at in range(0, len(data), 512):
        block = data[at : at + 512]
        if block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            data[at + 148 : at + 156] = b"%06o\0 " % sum(block)
    return bytes(data)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_mutated_archives_never_crash(data: st.DataObject) -> None:
    sound = data.draw(st.sampled_from([PLAIN, gzip.compress(PLAIN), archive(("y" * 120, b"1"), ("x", b"ab"))]))
    mutated = bytearray(sound)
    for _ in range(data.draw(st.integers(0, 6))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    whole = with_sound_checksums(mutated) if data.draw(st.booleans()) else bytes(mutated)
    with contextlib.suppress(InputFileError):
        unpack(whole[: data.draw(st.integers(0, len(whole)))], "a.tar")
