"""Dependencies that are archives to download, known by the SHA-256 of the file.

Nothing is unpacked before the hash of the whole file is right. What was received before a download was cut off is kept
beside the archives, and the next one asks for the rest.
"""

from __future__ import annotations

import base64
import http.client
import netrc
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mlfbuild import __version__
from mlfbuild.core import (
    InputFileError,
    NotFetchedError,
    ProcessFailedError,
    Tell,
    UsageError,
    file_sha256,
    make_folder,
    quoted,
    shown,
    storage_error,
    tell_nobody,
)
from mlfbuild.library import CHUNK
from mlfbuild.project import archive_problem
from mlfbuild.requirements.cache import Cache, put
from mlfbuild.requirements.trees import files_of, is_sound
from mlfbuild.requirements.unpack import unpack

MAX_SIZE = 1024 * 1024 * 1024
"""Bytes of an archive."""
TIMEOUT = 30.0
"""Seconds that a server may say nothing."""
_DIGEST = re.compile("[0-9a-f]{64}")
_AGAIN = "run `mlfbuild fetch` again: it goes on where this one stopped"
_RANGE_NOT_SATISFIABLE = 416


def fetch_url(url: str, digest: str, cache: Cache, tell: Tell = tell_nobody) -> bool:
    """Download the archive ``url`` and unpack it, unless the cache has it already: False then.

    ``digest`` is the SHA-256 that it must have, in lower case. Raises ``InputFileError`` where it has another one, or
    cannot be unpacked as ``unpack`` does; ``ProcessFailedError`` where the server does not give it, ``UsageError`` for
    an address or a hash that is none, and ``StorageError``.
    """
    problem = archive_problem(url)
    if problem is not None:
        raise UsageError(f"url: {problem}")
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"{shown(url)}: sha256 {quoted(digest)} is no SHA-256; write 64 hexadecimal digits")
    if _restored(url, digest, cache, tell) is not None:
        return False
    with cache.work(digest, tell) as work:
        if _sound(digest, cache) is None:
            part = cache.archive(digest).with_suffix(".part")
            make_folder(part.parent)
            _download_right(url, digest, part, tell)
            tell("unpacking", 0, 0)
            _unpack(url, digest, part, work, cache)
            put(part, cache.archive(digest))
    return True


def url_root(url: str, digest: str, cache: Cache) -> Path:
    """Return the folder with the files of the archive ``digest``, every one of which has been checked; offline.

    Raises ``NotFetchedError`` where the cache does not have it, and as ``fetch_url`` where it has to be unpacked again.
    """
    root = _restored(url, digest, cache, tell_nobody)
    if root is None:
        raise NotFetchedError(
            f"{shown(url)}: the archive {digest} is not in {cache.root}, or not whole; run `mlfbuild fetch`"
        )
    return root


def url_tree(digest: str, cache: Cache) -> str:
    """Return the hash of the tree that the archive ``digest`` holds; empty where it was not fetched."""
    return cache.recall("archive", digest).get("tree", "")


def _sound(digest: str, cache: Cache) -> Path | None:
    tree = url_tree(digest, cache)
    return files_of(cache.tree(tree)) if tree and is_sound(cache.tree(tree), tree) else None


def _restored(url: str, digest: str, cache: Cache, tell: Tell) -> Path | None:
    """Return the checked files of an archive, unpacked again where need be; ``None`` where it is not in the cache."""
    root = _sound(digest, cache)
    if root is None and cache.archive(digest).is_file():
        with cache.work(digest, tell) as work:
            root = _sound(digest, cache)
            if root is None and _hash_of(cache.archive(digest)) == digest:
                _unpack(url, digest, cache.archive(digest), work, cache)
                root = _sound(digest, cache)
    return root


def _unpack(url: str, digest: str, archive: Path, work: Path, cache: Cache) -> None:
    tree = unpack(archive, work / "tree", shown(url))
    if not is_sound(cache.tree(tree), tree):  # another archive may have the same, and builds read it now
        put(work / "tree", cache.tree(tree))
    cache.remember({"tree": tree}, "archive", digest)


def _hash_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_sha256(file)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise storage_error(path, error) from None


# Receiving -----------------------------------------------------------------------------------------------------------


def _download_right(url: str, digest: str, part: Path, tell: Tell) -> None:
    """Download to ``part``, going on with what it has; raises ``InputFileError`` where the hash comes out wrong."""
    found = _hash_of(part)
    while found != digest:
        resumed = _size_of(part) > 0
        try:
            _download(url, part, tell)
        except InputFileError:
            part.unlink(missing_ok=True)
            raise
        tell("checking", 0, 0)
        found = _hash_of(part)
        if found != digest:
            part.unlink(missing_ok=True)
            if not resumed:  # else the beginning may have been of another file: all of it once more
                raise InputFileError(
                    f"{shown(url)}: has the SHA-256 {found}, but {digest} is wanted; nothing of it was kept: correct "
                    "sha256 if it was meant to change, else ask who publishes it"
                )


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _download(url: str, part: Path, tell: Tell) -> None:
    """Receive what is missing of ``part``, or all of it where the server gives no part."""
    have = _size_of(part)
    with _answer(url, have) as answer:
        begin = have if _begins_at(answer, have) else 0
        length = answer.headers.get("Content-Length", "")
        total = begin + int(length) if length.isascii() and length.isdigit() else 0
        _check_size(url, total)
        try:
            with part.open("r+b" if begin else "wb") as file:
                file.seek(begin)
                size = _receive(url, answer, file, total, tell)
        except OSError as error:
            raise storage_error(part, error) from None
    if size < total:
        raise ProcessFailedError(f"{shown(url)}: the connection ended after {size} of {total} bytes; {_AGAIN}")


def _receive(url: str, answer: Any, file: IO[bytes], total: int, tell: Tell) -> int:
    """Write what comes to ``file`` and return how large that is then."""
    told = 0
    for chunk in _chunks(url, answer):
        file.write(chunk)
        _check_size(url, file.tell())
        if file.tell() >= told:
            tell("receiving KiB", file.tell() >> 10, total >> 10)
            told = file.tell() + max(total // 50, CHUNK)
    file.truncate()
    return file.tell()


def _check_size(url: str, size: int) -> None:
    if size > MAX_SIZE:
        raise InputFileError(f"{shown(url)}: has more than {MAX_SIZE >> 20} MiB, refused; choose a smaller archive")


def _begins_at(answer: Any, offset: int) -> bool:
    """Whether the server answers with what follows the first ``offset`` bytes."""
    content_range = str(answer.headers.get("Content-Range", ""))
    return (
        offset > 0 and answer.status == http.HTTPStatus.PARTIAL_CONTENT and content_range.startswith(f"bytes {offset}-")
    )


def _answer(url: str, have: int) -> Any:
    """Return what the server answers, which is asked for all but the first ``have`` bytes."""
    headers = {"User-Agent": f"mlfbuild/{__version__}", "Accept-Encoding": "identity"}
    wanted = {"Range": f"bytes={have}-"} if have else {}
    request = urllib.request.Request(url, headers=headers | wanted)  # noqa: S310  # fetch_url looked at the scheme
    _authorise(request)
    try:
        return _opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if have and error.code == _RANGE_NOT_SATISFIABLE:
            return _answer(url, 0)
        raise ProcessFailedError(
            f"{shown(url)}: cannot be fetched: HTTP {error.code} {error.reason}; check the address"
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        reason = getattr(reason, "strerror", None) or reason
        raise ProcessFailedError(
            f"{shown(url)}: cannot be fetched: {reason}; check the address and the network"
        ) from None


def _authorise(request: urllib.request.Request) -> None:
    """Add what ``~/.netrc`` (or ``$NETRC``) has for the host, which no other host that it redirects to is told."""
    path = Path(os.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        found = netrc.netrc(path).authenticators(request.host.partition(":")[0]) if request.host else None
    except (OSError, netrc.NetrcParseError):
        return
    if found is not None:
        login = base64.b64encode(f"{found[0]}:{found[2]}".encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {login}")


def _chunks(url: str, answer: Any) -> Iterator[bytes]:
    while True:
        try:
            chunk = answer.read1(CHUNK) if hasattr(answer, "read1") else answer.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise ProcessFailedError(f"{shown(url)}: the connection broke: {error}; {_AGAIN}") from None
        if not chunk:
            return
        yield chunk


def _opener() -> urllib.request.OpenerDirector:
    """Return what opens https, http and file, through the proxies of the environment; no ftp and no data."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.FileHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener
