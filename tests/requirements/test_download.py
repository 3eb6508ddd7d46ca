"""What is downloaded and unpacked, from servers and networks of every kind."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError, MlfError, NotFetchedError, ProcessFailedError, UsageError
from mlfbuild.requirements import download
from mlfbuild.requirements.cache import Cache
from mlfbuild.requirements.download import fetch_url, url_root, url_tree
from support.git_remote import Remote
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
    """A tar of files; ``about`` is set at the last member."""
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
    """A zip of files; ``mode`` is that of the last one."""
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
    """What is unpacked where the server has ``data``."""
    source.files[name] = data
    fetch_url(source.url(name), digest_of(data), cache)
    return content(url_root(source.url(name), digest_of(data), cache))


def told(error: pytest.ExceptionInfo[MlfError]) -> str:
    text = error.value.message
    assert "\n" not in text
    return text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> str:
    """The hash that Git has for the tree, in a repository with SHA-256."""
    tool("git")
    repository = Remote(tmp_path_factory.mktemp("git") / "sha256", hashes="sha256")
    repository.commit(FILES)
    return repository.hash_of("main^{tree}")


PACKED: dict[str, Callable[[], bytes]] = {
    "tar": tar,
    "tar.gz": lambda: gzip.compress(tar()),
    "tar.bz2": lambda: bz2.compress(tar()),
    "tar.xz": lambda: lzma.compress(tar()),
    "zip": zipped,
    "tar without a top folder": lambda: tar(top=""),
    "zip without a top folder": lambda: zipped(top=""),
}


@pytest.mark.parametrize("kind", PACKED)
def test_every_kind_of_archive_holds_the_same_tree(source: Source, cache: Cache, tree: str, kind: str) -> None:
    data = PACKED[kind]()
    assert fetched(source, data, cache) == FILES
    assert url_tree(digest_of(data), cache) == tree


def test_what_is_there_is_not_fetched_again(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    assert fetch_url(source.url("a"), digest_of(data), cache) is True
    assert fetch_url(source.url("a"), digest_of(data), cache) is False
    assert source.requests == [("a", None)]
    assert list((cache.root / "tmp").iterdir()) == []


def test_a_file_is_an_address(cache: Cache, tmp_path: Path) -> None:
    data = gzip.compress(tar())
    path = tmp_path / "lib.tar.gz"
    path.write_bytes(data)
    assert fetch_url(path.as_uri(), digest_of(data), cache) is True
    path.unlink()
    assert content(url_root(path.as_uri(), digest_of(data), cache)) == FILES
    with pytest.raises(ProcessFailedError, match="cannot be fetched: No such file or directory; check the address and"):
        fetch_url(path.as_uri(), "0" * 64, cache)


# Hashes --------------------------------------------------------------------------------------------------------------


def test_another_hash(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    with pytest.raises(InputFileError) as error:
        fetch_url(source.url("a"), "0" * 64, cache)
    assert told(error) == (
        f"{source.url('a')}: has the SHA-256 {digest_of(data)}, but {'0' * 64} is wanted; nothing of it was kept: "
        "correct sha256 if it was meant to change, else ask who publishes it"
    )
    assert source.requests == [("a", None)], "once is enough"
    assert [path for path in cache.root.rglob("*") if path.is_file() and path.parent.name != "locks"] == []


@pytest.mark.parametrize("digest", ["", "0" * 63, "0" * 65, "g" * 64, "A" * 64, "0" * 64 + "\n"])
def test_no_hash(source: Source, cache: Cache, digest: str) -> None:
    with pytest.raises(UsageError, match="is no SHA-256; write 64 hexadecimal digits"):
        fetch_url(source.url("a"), digest, cache)
    assert source.requests == []


@pytest.mark.parametrize("url", ["", "lib.tar", "ftp://host/a", "data:,x", "-o", "https://me:secret@host/a", "http://"])
def test_no_address(cache: Cache, url: str) -> None:
    with pytest.raises(UsageError, match=r"^url: ") as error:
        fetch_url(url, "0" * 64, cache)
    assert "secret" not in told(error)


# Networks ------------------------------------------------------------------------------------------------------------


def test_a_download_that_was_cut_off_goes_on(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    source.cut_after = 100_000
    with pytest.raises(ProcessFailedError) as error:
        fetch_url(source.url("a"), digest_of(data), cache)
    assert told(error) == (
        f"{source.url('a')}: the connection ended after 100000 of {len(data)} bytes; run `mlfbuild fetch` again: it "
        "goes on where this one stopped"
    )
    with pytest.raises(NotFetchedError):
        url_root(source.url("a"), digest_of(data), cache)
    source.cut_after = None
    assert fetched(source, data, cache) == FILES
    assert source.requests == [("a", None), ("a", "bytes=100000-")]


def test_a_server_that_gives_no_parts(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    source.ranges, source.cut_after = False, 100_000
    with pytest.raises(ProcessFailedError, match="the connection ended after 100000"):
        fetch_url(source.url("a"), digest_of(data), cache)
    source.cut_after = None
    assert fetched(source, data, cache) == FILES
    assert source.requests == [("a", None), ("a", "bytes=100000-")]


@pytest.mark.parametrize("left", [b"of another archive", b"x" * 600_000], ids=["shorter", "longer"])
def test_what_was_left_is_of_another_file(source: Source, cache: Cache, left: bytes) -> None:
    data = tar()
    part = cache.archive(digest_of(data)).with_suffix(".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    assert fetched(source, data, cache) == FILES
    assert source.requests[-1] == ("a", None), "all of it once more"
    assert not part.exists()


def test_what_was_left_is_all_of_it(source: Source, cache: Cache) -> None:
    data = tar()
    part = cache.archive(digest_of(data)).with_suffix(".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(data)
    assert fetched(source, data, cache) == FILES
    assert source.requests == []


def test_a_server_that_says_nothing(source: Source, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    data = source.files["a"] = tar()
    source.stall_after = 1000
    with pytest.raises(ProcessFailedError, match=r"the connection broke: timed out; run `mlfbuild fetch` again"):
        fetch_url(source.url("a"), digest_of(data), cache)


def test_what_servers_answer(source: Source, cache: Cache) -> None:
    with pytest.raises(ProcessFailedError) as error:
        fetch_url(source.url("nothing"), "0" * 64, cache)
    assert told(error) == f"{source.url('nothing')}: cannot be fetched: HTTP 404 Not Found; check the address"
    assert error.value.exit_code == 7
    with pytest.raises(ProcessFailedError, match="cannot be fetched: Connection refused; check the address and the"):
        fetch_url("http://127.0.0.1:1/a", "0" * 64, cache)


def test_a_redirection(source: Source, cache: Cache, tmp_path: Path) -> None:
    data = source.files["b"] = tar()
    source.redirects = {"a": source.url("b"), "local": (tmp_path / "x").as_uri(), "ftp": "ftp://127.0.0.1/x"}
    assert fetch_url(source.url("a"), digest_of(data), cache) is True
    for name in ("local", "ftp"):
        with pytest.raises(ProcessFailedError, match="cannot be fetched"):
            fetch_url(source.url(name), "0" * 64, cache)


def test_credentials_go_to_their_host_alone(
    source: Source, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    source.files["b"] = data = tar()
    source.redirects = {"a": source.url("b").replace("127.0.0.1", "localhost")}
    fetch_url(source.url("a"), digest_of(data), cache)
    assert source.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"
    assert "Authorization" not in source.headers[1]


def test_too_large_a_download(source: Source, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "MAX_SIZE", 1 << 10)
    data = source.files["a"] = tar()
    with pytest.raises(InputFileError, match="has more than 0 MiB, refused; choose a smaller archive"):
        fetch_url(source.url("a"), digest_of(data), cache)
    assert list((cache.root / "archives").iterdir()) == []


def test_progress_is_told(source: Source, cache: Cache) -> None:
    data = source.files["a"] = tar()
    seen: list[tuple[str, int, int]] = []
    fetch_url(source.url("a"), digest_of(data), cache, lambda doing, done=0, of=0: seen.append((doing, done, of)))
    assert seen[0][0] == "receiving KiB" and seen[0][2] == len(data) >> 10
    assert [doing for doing, _, _ in seen[-2:]] == ["checking", "unpacking"]


# The cache -----------------------------------------------------------------------------------------------------------


def test_what_was_not_fetched(cache: Cache) -> None:
    with pytest.raises(NotFetchedError) as error:
        url_root("https://host/a.tar", "0" * 64, cache)
    assert told(error) == (
        f"https://host/a.tar: the archive {'0' * 64} is not in {cache.root}, or not whole; run `mlfbuild fetch`"
    )
    assert not cache.root.exists()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "edited": lambda root: (root / "README.md").write_bytes(b"b library\n"),
    "gone": lambda root: (root / "README.md").unlink(),
    "more": lambda root: (root / "more.c").touch(),
    "no record": lambda root: [path.unlink() for path in root.parents[2].glob("found/*")],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_tree_is_unpacked_again_offline(source: Source, cache: Cache, damage: str) -> None:
    data = tar()
    fetched(source, data, cache)
    DAMAGES[damage](url_root(source.url("a"), digest_of(data), cache))
    assert content(url_root(source.url("a"), digest_of(data), cache)) == FILES
    assert len(source.requests) == 1


def test_a_damaged_archive_is_fetched_again(source: Source, cache: Cache) -> None:
    data = tar()
    fetched(source, data, cache)
    os.truncate(cache.archive(digest_of(data)), 5000)
    assert content(url_root(source.url("a"), digest_of(data), cache)) == FILES, "the tree is sound"
    (url_root(source.url("a"), digest_of(data), cache) / "README.md").unlink()
    with pytest.raises(NotFetchedError, match="or not whole; run `mlfbuild fetch`"):
        url_root(source.url("a"), digest_of(data), cache)
    assert fetched(source, data, cache) == FILES
    assert digest_of(cache.archive(digest_of(data)).read_bytes()) == digest_of(data)


# What is refused -----------------------------------------------------------------------------------------------------

X = {"x.c": b"x", "y.c": b"y"}
UNSAFE: dict[str, tuple[bytes, str]] = {
    "tar: absolute": (tar(X, top="/"), "'/x.c': the member has an absolute path"),
    "tar: out": (tar({"../x.c": b"x"}), r"'lib-1.0/../x.c': the member leads out of the archive"),
    "tar: link": (tar(X, type=tarfile.SYMTYPE, linkname="/etc/passwd"), "'lib-1.0/y.c': the member is a symbolic link"),
    "tar: hard link": (tar(X, type=tarfile.LNKTYPE, linkname="lib-1.0/x.c"), "is a hard link, refused"),
    "tar: device": (tar(X, type=tarfile.CHRTYPE), "is a character device, refused"),
    "tar: case": (tar({"a.c": b"", "A.c": b""}), "differs from 'lib-1.0/a.c' only in case, refused"),
    "tar: repository": (tar({".git/config": b"", "x": b""}), "'.git/config': would be taken for a Git repository"),
    "tar: cut": (tar()[:3000], "ends early|claims"),
    "zip: absolute": (zipped(X, top="/"), "member '/': has an absolute path, refused"),
    "zip: out": (zipped({"../../x.c": b"x"}), "member 'lib-1.0/../../x.c': leads out of the archive, refused"),
    "zip: drive": (zipped({"C:/x.c": b"x"}, top=""), "is an absolute path, refused"),
    "zip: backslash": (zipped({"..\\x.c": b"x"}), "control characters, backslashes"),
    "zip: link": (zipped(X, mode=stat.S_IFLNK | 0o777), "member 'lib-1.0/y.c': is a symbolic link, refused"),
    "zip: device": (zipped(X, mode=stat.S_IFCHR), "is a device, a pipe or a socket, refused"),
    "zip: case": (zipped({"a.c": b"", "A.c": b""}), "differs from 'lib-1.0/a.c' only in case, refused"),
    "zip: in a file": (zipped({"a": b"", "a/b": b""}), "is inside 'lib-1.0/a', which is a file, refused"),
    "zip: cut": (zipped()[:-30], "is no sound zip archive: .*; choose another archive"),
    "zip: damaged": (zipped().replace(b"PK\3\4", b"PK\3\4", 1)[:60] + bytes(40) + zipped()[100:], "is no sound zip"),
    "zip: nothing": (zipped({}), "holds no files; choose another archive of it"),
    "nothing": (b"", "is empty, not an archive"),
    "something else": (b"<html>moved</html>" * 100, "is not a tar file"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNSAFE)
def test_archives_that_are_refused(source: Source, cache: Cache, kind: str) -> None:
    data, reason = UNSAFE[kind]
    source.files["a"] = data
    with pytest.raises(InputFileError) as error:
        fetch_url(source.url("a"), digest_of(data), cache)
    assert re.search(reason, told(error)) and told(error).startswith(f"{source.url('a')}: ")
    assert not list(cache.root.glob("trees/*")) and not list(cache.root.glob("tmp/*"))
    with pytest.raises(NotFetchedError):
        url_root(source.url("a"), digest_of(data), cache)


def test_encrypted_members(source: Source, cache: Cache) -> None:
    data = bytearray(zipped(X, top=""))
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + at] |= 1
    with pytest.raises(InputFileError, match=r"member 'x.c': is encrypted, refused"):
        fetched(source, bytes(data), cache)


def test_a_member_without_a_name(source: Source, cache: Cache) -> None:
    data = bytearray(zipped({"x": b""}, top=""))
    at = data.index(b"PK\1\2") + 28
    assert data[at : at + 4] == b"\1\0\0\0"  # bytes of the name, and of what is extra
    data[at : at + 4] = b"\0\0\1\0"
    with pytest.raises(InputFileError, match="member '': has no name, refused"):
        fetched(source, bytes(data), cache)


def test_bombs(source: Source, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"x": bytes(1 << 20)}
    monkeypatch.setattr("mlfbuild.archive.tar.inflate.MAX_INFLATED", 1 << 20)
    monkeypatch.setattr("mlfbuild.requirements.unpack.MAX_INFLATED", (1 << 20) - 1)
    for data in (lzma.compress(tar(files)), zipped(files)):
        assert len(data) < 3000
        with pytest.raises(InputFileError, match=r"(unpacks|decompresses) to more than . MiB"):
            fetched(source, data, cache)
    monkeypatch.setattr("mlfbuild.requirements.unpack.MAX_MEMBERS", 3)
    with pytest.raises(InputFileError, match="has more than 3 members, refused"):
        fetched(source, zipped(), cache)


def test_a_zip_that_lies_about_sizes(source: Source, cache: Cache) -> None:
    data = bytearray(zipped({"x": bytes(100_000)}, top=""))
    at = data.index(b"PK\1\2") + 24
    assert int.from_bytes(data[at : at + 4], "little") == 100_000
    data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(InputFileError, match="is no sound zip archive: Bad CRC-32"):
        fetched(source, bytes(data), cache)
