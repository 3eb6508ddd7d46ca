"""Requirements from archives on servers, identified by the SHA-256 of the file.

``fetch_archive`` downloads with pooch, checks the hash, keeps the file, and unpacks it, tar or zip, by the rules for
model archives. ``archive_root`` returns the files to builds; it does not access the network. The hash guarantees the
content, so that neither the server nor the connection has to be trusted; the limits below keep a server from filling
the disk or blocking a build machine.
"""

from __future__ import annotations

import shutil
import ssl
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from lzma import LZMAError
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from mlfbuild import __version__
from mlfbuild.archive.tar import MAX_INFLATED, MAX_MEMBERS, Paths, members, name_fault, plain_path
from mlfbuild.core import (
    SHA256,
    InputFileError,
    NotFetchedError,
    OnProgress,
    ProcessFailedError,
    UsageError,
    file_sha256,
    no_progress,
    open_binary,
    quoted,
    shown,
    storage_error,
)
from mlfbuild.library import CHUNK, Content, chunks, spooled
from mlfbuild.project import archive_problem
from mlfbuild.requirements.cache import Cache, put

_ZIP = b"PK\3\4"
_DAMAGES = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, LZMAError, OSError, ValueError,
    KeyError,
)  # fmt: skip
"""The exceptions of ``zipfile`` for files that are damaged or compressed with an unknown method."""
_Files = Mapping[str, Callable[[], Content]]
"""A function that reads each file, by path."""


def unpack(archive: Path, folder: Path, where: str) -> None:
    """Unpack the file ``archive`` into the new folder ``folder``.

    A single top folder such as ``CMSIS-NN-7.0.0`` is left out. ``where`` names the archive in messages. Raises
    ``InputFileError`` for a file that is not a tar or zip, is damaged, contains no files, unpacks to more than
    ``MAX_INFLATED`` bytes, or has a member that is absolute, leads out, is a link, a device or encrypted, or collides
    with another one; and ``OSError``.
    """
    with open_binary(archive, "archive") as file:
        files = _without_top(_zipped(file, where) if file.read(len(_ZIP)) == _ZIP else _tarred(archive, where))
        if not files:
            raise _refused("archive-without-files", where, "the archive contains no files")
        for path in sorted(files):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as out:
                out.writelines(chunks(files[path]()))


def _refused(code: str, where: str, reason: str) -> InputFileError:
    return InputFileError(code, place=where, reason=reason, hint="choose another archive of the library")


def _without_top(files: _Files) -> _Files:
    tops = {path.partition("/")[0] for path in files}
    top = f"{tops.pop()}/" if tops else ""
    if tops or not all(path.startswith(top) for path in files):
        return files
    return {path[len(top) :]: read for path, read in files.items()}


def _tarred(archive: Path, where: str) -> _Files:
    found = members(open_binary(archive, "archive"), where)
    return {path: partial(found.__getitem__, path) for path in found}


def _zipped(archive: BinaryIO, where: str) -> _Files:
    try:
        file = zipfile.ZipFile(archive)
        infos = file.infolist()
    except _DAMAGES as error:
        raise _damaged(where, error) from None
    if len(infos) > MAX_MEMBERS:
        raise _refused("zip-too-many-members", where, f"the archive has more than {MAX_MEMBERS} members")
    # zipfile reads no more of a member than the size that it states, so the sum is a limit.
    if sum(info.file_size for info in infos) > MAX_INFLATED:
        raise _refused("zip-too-large", where, f"the archive unpacks to more than {MAX_INFLATED >> 20} MiB")
    paths = Paths()
    for info in infos:
        fault = _fault(info) or (None if _is_folder(info) else paths.fault(plain_path(info.filename)))
        if fault is not None:
            raise _refused("zip-member-refused", f"{where}: member {quoted(info.orig_filename)}", f"the member {fault}")

    def reader(info: zipfile.ZipInfo) -> Callable[[], Content]:
        return lambda: spooled(_unzipped(file, info, where))

    return {plain_path(info.filename): reader(info) for info in infos if not _is_folder(info)}


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")  # is_dir fails for an empty name


def _fault(info: zipfile.ZipInfo) -> str | None:
    """Return why a member of a zip is refused, ``None`` for a plain file or folder."""
    kind = stat.S_IFMT(info.external_attr >> 16)  # of Unix; 0 if another system packed it
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "is a symbolic link" if kind == stat.S_IFLNK else "is a device, a pipe or a socket"
    if info.flag_bits & 1:
        return "is encrypted"
    # The original name: zipfile cuts the other one at a zero byte.
    return name_fault(info.orig_filename, folder=_is_folder(info))


def _unzipped(file: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Iterator[bytes]:
    try:
        with file.open(info) as member:
            while chunk := member.read(CHUNK):
                yield chunk
    except _DAMAGES as error:
        raise _damaged(where, error) from None


def _damaged(where: str, error: Exception) -> InputFileError:
    return _refused("zip-damaged", where, f"the zip archive is damaged: {error}")


MAX_SIZE = 1024 * 1024 * 1024
"""Bytes of an archive."""
SILENCE = 30.0
"""Seconds that a server may send nothing."""
TOTAL_TIME = 3600.0
"""Seconds that a download may take."""


def fetch_archive(url: str, digest: str, cache: Cache, on_progress: OnProgress = no_progress) -> bool:
    """Download the archive ``url`` and unpack it; returns False if the cache has it already.

    ``digest`` is its SHA-256 in lower case. Raises ``InputFileError`` if the file has another hash or cannot be
    unpacked, ``ProcessFailedError`` if the server does not deliver it, ``UsageError`` for an invalid address or hash,
    and ``StorageError``.
    """
    problem = archive_problem(url)
    if problem is not None:
        raise UsageError("url-invalid", place="url", reason=problem.reason, hint=problem.hint)
    if not SHA256.fullmatch(digest):
        raise UsageError(
            "sha256-invalid",
            place=shown(url),
            reason=f"sha256 {quoted(digest)} is not a SHA-256",
            hint="write 64 hexadecimal digits",
        )
    if _restored(url, digest, cache, on_progress):
        return False
    with cache.work(digest, on_progress) as work:
        if not cache.is_intact(digest, cache.written_hash(digest)):
            _download(url, digest, work, on_progress)
            on_progress("unpacking", 0, 0)
            unpack(work / digest, work / "tree", shown(url))
            # The archive before its files: if the process ends in between, `_restored` unpacks it without the network.
            put(work / digest, cache.archive(digest))
            cache.put_tree(work / "tree", digest)
    return True


def archive_root(url: str, digest: str, cache: Cache) -> Path:
    """Return the folder with the files of the archive ``digest``; all of them are hashed. Uses no network.

    Raises ``NotFetchedError`` if the cache does not have it, and as ``fetch_archive`` if it has to be unpacked again.
    """
    if not _restored(url, digest, cache, no_progress):
        raise NotFetchedError(
            "archive-not-fetched",
            place=shown(url),
            reason=f"the archive {digest} is missing or damaged in {cache.root}",
            hint="run `mlfbuild fetch`",
        )
    return cache.tree(digest)


def _restored(url: str, digest: str, cache: Cache, on_progress: OnProgress) -> bool:
    """Return whether the cache has intact files of the archive; unpack damaged ones again if the archive is intact."""
    if cache.is_intact(digest, cache.written_hash(digest)):
        return True
    if not cache.archive(digest).is_file():
        return False
    with cache.work(digest, on_progress) as work:
        if cache.is_intact(digest, cache.written_hash(digest)):
            return True
        # The file may have been damaged, or changed by another user, since it was downloaded.
        if _sha256(cache.archive(digest)) != digest:
            return False
        unpack(cache.archive(digest), work / "tree", shown(url))
        cache.put_tree(work / "tree", digest)
        return True


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_sha256(file)
    except OSError as error:
        raise storage_error(path, error) from None


class _Progress:
    """The progress bar that pooch updates after each part of a file; it also enforces the limits of a download."""

    total = 0
    """Bytes that the server announces; 0 if it announces none."""

    def __init__(self, url: str, on_progress: OnProgress) -> None:
        self._url = url
        self._on_progress = on_progress
        self._end = time.monotonic() + TOTAL_TIME
        self._size = self._next_report = 0

    def update(self, size: int) -> None:
        """Count ``size`` bytes; raises ``InputFileError`` for too large files and ``TimeoutError`` for slow servers."""
        self._size += size
        if max(self._size, self.total) > MAX_SIZE:
            raise InputFileError(
                "download-too-large",
                place=shown(self._url),
                reason=f"the file has more than {MAX_SIZE >> 20} MiB",
                hint="choose a smaller archive",
            )
        if time.monotonic() > self._end:
            raise TimeoutError(f"the download took more than {TOTAL_TIME:g} s")
        if self._size >= self._next_report:
            self._on_progress("receiving KiB", min(self._size, self.total or self._size) >> 10, self.total >> 10)
            self._next_report = self._size + max(self.total // 50, CHUNK)  # fifty events for large files

    def reset(self) -> None:
        """Begin again, as pooch does before it reports the whole file."""
        self._size = self._next_report = 0

    def close(self) -> None:
        """Report what follows the download."""
        self._on_progress("checking", 0, 0)


def _close_refusal(response: Any, **_: Any) -> None:
    """Close the connection of a ``requests.Response`` that is an error, which pooch leaves to the garbage collector."""
    if not response.ok:
        response.close()


def _download(url: str, digest: str, folder: Path, on_progress: OnProgress) -> None:
    """Download ``url`` to the file ``digest`` in ``folder``, and check its hash.

    pooch takes proxies from the environment and passwords from ``~/.netrc``, which it sends to the host of the address
    only. It follows redirections to http and https, not to files of this machine.
    """
    import pooch  # only `fetch` and `lock` need it

    path = folder / digest
    progress = _Progress(url, on_progress)
    # identity: the length that the server announces is then that of the file, with which it is compared below.
    headers = {"User-Agent": f"mlfbuild/{__version__}", "Accept-Encoding": "identity"}
    # requests would trust only the authorities that it bundles, not those that an administrator added to the system
    trusted = ssl.get_default_verify_paths()
    web = pooch.HTTPDownloader(
        progressbar=progress,
        chunk_size=CHUNK,
        headers=headers,
        timeout=SILENCE,
        verify=trusted.cafile or trusted.capath or True,
        hooks={"response": _close_refusal},
    )
    try:
        if url.lower().startswith("file:"):
            # It loads http.client and email, which builds with nothing to do never need.
            from urllib.request import url2pathname

            local = Path(url2pathname(urlsplit(url).path))
            if not local.is_file():
                raise _failed(url, "no such file")
            progress.update(local.stat().st_size)
            shutil.copyfile(local, path)
            progress.close()
        else:
            web(url, str(path), None)
        if path.stat().st_size < progress.total:
            raise _failed(url, f"the connection ended after {path.stat().st_size} of {progress.total} bytes")
    except OSError as error:
        if error.errno is not None:
            raise storage_error(folder, error) from None
        # requests' errors are OSErrors without a number; the last part of their texts is the cause
        status = str(error).partition(" for url: ")
        raise _failed(url, f"HTTP {status[0]}" if status[1] else str(error).rpartition(": ")[2].rstrip("')")) from None
    found = _sha256(path)
    if found != digest:
        raise InputFileError(
            "archive-hash-wrong",
            place=shown(url),
            reason=f"the file has the SHA-256 {found}, but the project file states {digest}",
            hint="correct sha256 if the file was meant to change, otherwise ask its publisher",
        )


def _failed(url: str, reason: str) -> ProcessFailedError:
    return ProcessFailedError(
        "download-failed", place=shown(url), reason=reason, hint="check the address and the network, and try again"
    )
