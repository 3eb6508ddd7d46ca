"""Requirements from archives on servers, identified by the SHA-256 of the file.

``fetch_archive`` downloads with pooch, which checks the hash and keeps the file, and unpacks. ``archive_root`` returns
the files to builds; it does not access the network.
"""

from __future__ import annotations

import re
from pathlib import Path

from mlfbuild.core import (
    InputFileError,
    NotFetchedError,
    OnProgress,
    UsageError,
    file_sha256,
    no_progress,
    quoted,
    shown,
    storage_error,
)
from mlfbuild.project import archive_problem
from mlfbuild.requirements.cache import Cache, put
from mlfbuild.requirements.unpack import unpack

_DIGEST = re.compile("[0-9a-f]{64}")


def fetch_archive(url: str, digest: str, cache: Cache, on_progress: OnProgress = no_progress) -> bool:
    """Download the archive ``url`` and unpack it; returns False if the cache has it already.

    ``digest`` is its SHA-256 in lower case. Raises ``InputFileError`` if the file has another hash or cannot be
    unpacked, ``ProcessFailedError`` if the server does not deliver it, ``UsageError`` for an invalid address or hash,
    and ``StorageError``.
    """
    problem = archive_problem(url)
    if problem is not None:
        raise UsageError("url-invalid", place="url", reason=problem.reason, hint=problem.hint)
    if not _DIGEST.fullmatch(digest):
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


def _download(url: str, digest: str, folder: Path, on_progress: OnProgress) -> None:
    import pooch  # only `fetch` and `lock` need it

    from mlfbuild.requirements.download import Downloader

    pooch.get_logger().setLevel("ERROR")
    downloader = Downloader(on_progress)
    try:
        pooch.retrieve(url, f"sha256:{digest}", fname=digest, path=folder, downloader=downloader)
    except ValueError:
        raise InputFileError(
            "archive-hash-wrong",
            place=shown(url),
            reason=f"the file has the SHA-256 {downloader.sha256}, but the project file states {digest}",
            hint="correct sha256 if the file was meant to change, otherwise ask its publisher",
        ) from None
    except OSError as error:
        raise storage_error(folder, error) from None
