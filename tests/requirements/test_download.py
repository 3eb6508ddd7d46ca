"""Download and unpack archives from various servers."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mlfbuild.core import InputFileError, NotFetchedError, ProcessFailedError, UsageError
from mlfbuild.requirements import archives
from mlfbuild.requirements.archives import archive_root, fetch_archive
from mlfbuild.requirements.cache import Cache, tree_sha256
from support.errors import raises
from support.http_source import Source, serving

FILES = {"README.md": b"a library\n", "Include/lib.h": b"int f(void);\n", "Source/f.c": bytes(range(256)) * 2000}


@pytest.fixture
def source() -> Iterator[Source]:
    with serving() as source:
        yield source


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def tar(files: Mapping[str, bytes] = FILES, top: str = "lib-1.0/", **about: object) -> bytes:
    """Return a tar of files; ``about`` are attributes of the last member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(top + path)
            if path == list(files)[-1]:
                vars_of = {"type": tarfile.REGTYPE, **about}
                for key, value in vars_of.items():
                    setattr(member, key, value)
            member.size = len(data) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def zipped(files: Mapping[str, bytes] = FILES, top: str = "lib-1.0/", mode: int = 0) -> bytes:
    """Return a zip of files; ``mode`` is that of the last one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if top:
            archive.writestr(top, b"")
        for path, data in files.items():
            info = zipfile.ZipInfo(top + path)
            info.external_attr = (mode if path == list(files)[-1] else 0) << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def fetched(source: Source, data: bytes, cache: Cache, name: str = "a") -> dict[str, bytes]:
    """Return the unpacked files if the server has ``data``."""
    source.files[name] = data
    fetch_archive(source.url(name), digest_of(data), cache)
    return content(archive_root(source.url(name), digest_of(data), cache))


PACKED: dict[str, Callable[[], bytes]] = {
    "tar": tar, "tar.gz": lambda: gzip.compress(tar()), "tar.bz2": lambda: bz2.compress(tar()),
    "tar.xz": lambda: lzma.compress(tar()), "zip": zipped, "tar without a top folder": lambda: tar(top=""),
    "zip without a top folder": lambda: zipped(top=""),
}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
def test_every_kind_of_archive_unpacks_to_the_same_tree(source: Source, cache: Cache, kind: str) -> None:
    data = PACKED[kind]()
    assert fetched(source, data, cache) == FILES


def test_cached_archive_is_not_fetched_again(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    assert fetch_archive(source.url("a"), digest_of(data), cache) is True
    assert fetch_archive(source.url("a"), digest_of(data), cache) is False
    assert source.requests == [("a", None)]
    assert list((cache.root / "tmp").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user")
def test_a_hash_of_another_user_is_not_trusted(source: Source, cache: Cache) -> None:
    data = tar()
    fetched(source, data, cache)
    folder = cache.tree(digest_of(data))
    (folder / "README.md").write_bytes(b"poison")
    record = folder.with_name(f"{folder.name}.sha256")
    record.write_text(tree_sha256(folder))
    os.chown(record, 12345, 12345)
    assert content(archive_root(source.url("a"), digest_of(data), cache)) == FILES


def test_file_url_is_an_address(cache: Cache, tmp_path: Path) -> None:
    data = gzip.compress(tar())
    path = tmp_path / "lib.tar.gz"
    path.write_bytes(data)
    assert fetch_archive(path.as_uri(), digest_of(data), cache) is True
    path.unlink()
    assert content(archive_root(path.as_uri(), digest_of(data), cache)) == FILES
    with raises(ProcessFailedError, "download-failed", at=path.as_uri()):
        fetch_archive(path.as_uri(), "0" * 64, cache)


# Hashes --------------------------------------------------------------------------------------------------------------


def test_wrong_hash_is_refused(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    with raises(InputFileError, "archive-hash-wrong", at=source.url("a")) as error:
        fetch_archive(source.url("a"), "0" * 64, cache)
    assert digest_of(data) in error.value.reason
    assert source.requests == [("a", None)], "it is not tried again"
    assert [path for path in cache.root.rglob("*") if path.is_file() and path.parent.name != "locks"] == []


@pytest.mark.parametrize("digest", ["", "0" * 63, "0" * 65, "g" * 64, "A" * 64, "0" * 64 + "\n"])
def test_invalid_hash_is_refused(source: Source, cache: Cache, digest: str) -> None:
    with raises(UsageError, "sha256-invalid", at=source.url("a")):
        fetch_archive(source.url("a"), digest, cache)
    assert source.requests == []


@pytest.mark.parametrize("url", ["", "lib.tar", "ftp://host/a", "data:,x", "-o", "https://me:secret@host/a", "http://"])
def test_invalid_address_is_refused(cache: Cache, url: str) -> None:
    with raises(UsageError, "url-invalid", at="url") as error:
        fetch_archive(url, "0" * 64, cache)
    assert "secret" not in error.value.message


# Networks ------------------------------------------------------------------------------------------------------------


def test_interrupted_download_starts_again(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    source.cut_after = 100_000
    with raises(ProcessFailedError, "download-failed", at=source.url("a")):
        fetch_archive(source.url("a"), digest_of(data), cache)
    with pytest.raises(NotFetchedError):
        archive_root(source.url("a"), digest_of(data), cache)
    source.cut_after = None
    assert fetched(source, data, cache) == FILES
    assert source.requests == [("a", None), ("a", None)]


@pytest.mark.parametrize("limit", ["SILENCE", "TOTAL_TIME"])
def test_slow_server_times_out(source: Source, cache: Cache, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(archives, limit, 0.2 if limit == "SILENCE" else -1.0)
    data = source.files["a"] = tar()
    source.stall_after = 1000 if limit == "SILENCE" else None
    with raises(ProcessFailedError, "download-failed", at=source.url("a")):
        fetch_archive(source.url("a"), digest_of(data), cache)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a", "nothing"])
def test_missing_file_on_server(source: Source, cache: Cache, url: str) -> None:
    address = url if "://" in url else source.url(url)
    with raises(ProcessFailedError, "download-failed", at=address) as error:
        fetch_archive(address, "0" * 64, cache)
    assert error.value.exit_code == 7


# requests leaves the connection of a redirection that it refuses to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_redirections(source: Source, cache: Cache, tmp_path: Path) -> None:
    data = source.files["b"] = tar()
    (tmp_path / "x").write_bytes(data)
    source.redirects = {"a": source.url("b"), "local": (tmp_path / "x").as_uri(), "ftp": "ftp://127.0.0.1/x"}
    for name in ("local", "ftp"):
        with raises(ProcessFailedError, "download-failed", at=source.url(name)):
            fetch_archive(source.url(name), digest_of(data), cache)
    assert fetch_archive(source.url("a"), digest_of(data), cache) is True


def test_credentials_are_sent_only_to_their_host(
    source: Source, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    source.files["b"] = data = tar()
    source.redirects = {"a": source.url("b").replace("127.0.0.1", "localhost")}
    fetch_archive(source.url("a"), digest_of(data), cache)
    assert source.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"
    assert "Authorization" not in source.headers[1]


def test_too_large_download_is_refused(source: Source, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_SIZE", 1 << 10)
    data = source.files["a"] = tar()
    with raises(InputFileError, "download-too-large", at=source.url("a")):
        fetch_archive(source.url("a"), digest_of(data), cache)
    assert not list(cache.root.glob("archives/*")) and not list(cache.root.glob("tmp/*"))


def test_progress(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    seen: list[tuple[str, int, int]] = []
    fetch_archive(source.url("a"), digest_of(data), cache, lambda doing, done=0, of=0: seen.append((doing, done, of)))
    assert seen[0][0] == "receiving KiB" and seen[0][2] == len(data) >> 10
    assert [doing for doing, _, _ in seen[-2:]] == ["checking", "unpacking"]


# The cache -----------------------------------------------------------------------------------------------------------


def test_archive_that_was_not_fetched_is_refused(cache: Cache) -> None:
    with raises(NotFetchedError, "archive-not-fetched", at="https://host/a.tar"):
        archive_root("https://host/a.tar", "0" * 64, cache)
    assert not cache.root.exists()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "edited": lambda root: (root / "README.md").write_bytes(b"b library\n"),
    "missing": lambda root: (root / "README.md").unlink(),
    "another": lambda root: (root / "more.c").touch(),
    "no hash": lambda root: root.with_name(f"{root.name}.sha256").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_unpacked_again_offline(source: Source, cache: Cache, damage: str) -> None:
    data = tar()
    fetched(source, data, cache)
    DAMAGES[damage](archive_root(source.url("a"), digest_of(data), cache))
    assert content(archive_root(source.url("a"), digest_of(data), cache)) == FILES
    assert len(source.requests) == 1


def test_a_damaged_archive_is_fetched_again(source: Source, cache: Cache) -> None:
    data = tar()
    fetched(source, data, cache)
    os.truncate(cache.archive(digest_of(data)), 5000)
    assert content(archive_root(source.url("a"), digest_of(data), cache)) == FILES, "the unpacked files are intact"
    (archive_root(source.url("a"), digest_of(data), cache) / "README.md").unlink()
    with pytest.raises(NotFetchedError):
        archive_root(source.url("a"), digest_of(data), cache)
    assert fetched(source, data, cache) == FILES
    assert digest_of(cache.archive(digest_of(data)).read_bytes()) == digest_of(data)


# Refusals ------------------------------------------------------------------------------------------------------------

X = {"x.c": b"x", "y.c": b"y"}
UNSAFE: dict[str, tuple[bytes, str]] = {
    "tar: absolute": (tar(X, top="/"), ""),
    "tar: out": (tar({"../x.c": b"x"}), ""),
    "tar: link": (tar(X, type=tarfile.SYMTYPE, linkname="/etc/passwd"), ""),
    "tar: hard link": (tar(X, type=tarfile.LNKTYPE, linkname="lib-1.0/x.c"), ""),
    "tar: device": (tar(X, type=tarfile.CHRTYPE), ""),
    "tar: case": (tar({"a.c": b"", "A.c": b""}), ""),
    "tar: repository": (tar({".git/config": b"", "x": b""}), "archive-member-name-unsafe"),
    "tar: cut": (tar()[:3000], ""),
    "zip: absolute": (zipped(X, top="/"), "zip-member-refused"),
    "zip: out": (zipped({"../../x.c": b"x"}), "zip-member-refused"),
    "zip: drive": (zipped({"C:/x.c": b"x"}, top=""), "zip-member-refused"),
    "zip: backslash": (zipped({"..\\x.c": b"x"}), "zip-member-refused"),
    "zip: link": (zipped(X, mode=stat.S_IFLNK | 0o777), "zip-member-refused"),
    "zip: device": (zipped(X, mode=stat.S_IFCHR), "zip-member-refused"),
    "zip: case": (zipped({"a.c": b"", "A.c": b""}), "zip-member-refused"),
    "zip: in a file": (zipped({"a": b"", "a/b": b""}), "zip-member-refused"),
    "zip: cut": (zipped()[:-30], "zip-damaged"),
    "zip: damaged": (zipped()[:60] + bytes(40) + zipped()[100:], "zip-damaged"),
    "zip: nothing": (zipped({}), "archive-without-files"),
    "nothing": (b"", ""),
    "something else": (b"<html>moved</html>" * 100, ""),
}
"""Content and code of the error; the codes for tar files are those of ``mlfbuild.archive.tar``."""


@pytest.mark.parametrize("kind", UNSAFE)
def test_unsafe_archives_are_refused(source: Source, cache: Cache, kind: str) -> None:
    data, code = UNSAFE[kind]
    source.files["a"] = data
    with pytest.raises(InputFileError) as error:
        fetch_archive(source.url("a"), digest_of(data), cache)
    assert error.value.code == code or not code
    assert source.url("a") in error.value.message and "\n" not in error.value.message
    assert not list(cache.root.glob("trees/*")) and not list(cache.root.glob("tmp/*"))
    with pytest.raises(NotFetchedError):
        archive_root(source.url("a"), digest_of(data), cache)


def test_encrypted_members_are_refused(source: Source, cache: Cache) -> None:
    data = bytearray(zipped(X, top=""))
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + at] |= 1
    with raises(InputFileError, "zip-member-refused", at=f"{source.url('a')}: member 'x.c'"):
        fetched(source, bytes(data), cache)


def test_member_without_a_name_is_refused(source: Source, cache: Cache) -> None:
    data = bytearray(zipped({"x": b""}, top=""))
    at = data.index(b"PK\1\2") + 28
    assert data[at : at + 4] == b"\1\0\0\0"  # lengths of the name and of extra data
    data[at : at + 4] = b"\0\0\1\0"
    with raises(InputFileError, "zip-member-refused", at=f"{source.url('a')}: member ''"):
        fetched(source, bytes(data), cache)


def test_decompression_bombs_are_refused(source: Source, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"x": bytes(1 << 20)}
    monkeypatch.setattr("mlfbuild.archive.tar.read.MAX_INFLATED", 1 << 20)
    monkeypatch.setattr("mlfbuild.requirements.archives.MAX_INFLATED", (1 << 20) - 1)
    for data in (lzma.compress(tar(files)), zipped(files)):
        assert len(data) < 3000
        with pytest.raises(InputFileError):
            fetched(source, data, cache)
    monkeypatch.setattr("mlfbuild.requirements.archives.MAX_MEMBERS", 3)
    with raises(InputFileError, "zip-too-many-members", at=source.url("a")):
        fetched(source, zipped(), cache)


def test_zip_with_wrong_sizes_is_refused(source: Source, cache: Cache) -> None:
    data = bytearray(zipped({"x": bytes(100_000)}, top=""))
    at = data.index(b"PK\1\2") + 24
    assert int.from_bytes(data[at : at + 4], "little") == 100_000
    data[at : at + 4] = (10).to_bytes(4, "little")
    with raises(InputFileError, "zip-damaged", at=source.url("a")):
        fetched(source, bytes(data), cache)
