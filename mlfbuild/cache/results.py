"""One interface to the two caches: what only the server has is kept on this machine as well."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mlfbuild.cache.action_result import EMPTY, MAX_BLOBS, ActionResult, OutputFile
from mlfbuild.cache.local import LocalCache
from mlfbuild.cache.settings import DISABLE_VARIABLE, TOKEN_VARIABLE, CacheSettings, remote_problem, results_folder
from mlfbuild.core import SHA256, StorageError, UsageError, sha256

if TYPE_CHECKING:
    from mlfbuild.cache.remote import HttpCache


@dataclass(frozen=True)
class CachedResult:
    """The outputs of an action that ran before, all of which were checked."""

    outputs: Mapping[str, bytes]
    """The content of each, by name."""
    where: Literal["local", "remote"]
    worker: str
    """Name of the machine that ran the action, as it was stored: untrusted, printable."""
    seconds: float
    """Time that the action took there."""


class ResultCache:
    """Results of actions; ``open_cache`` makes one.

    Several threads may use one. Processes that were forked may go on with that of their parent.
    """

    def __init__(self, local: LocalCache | None, remote: HttpCache | None) -> None:
        self._local = local
        self._remote = remote

    def fetch(self, key: str) -> CachedResult | None:
        """Return the result of the action ``key``, or ``None`` if no cache has all of its outputs.

        ``key`` is a SHA-256 as 64 lower-case hexadecimal digits. Compare the names of the outputs with those that the
        action should have: who may write results may also choose other names.
        """
        _check_digest(key)
        found = self._local.fetch(key) if self._local else None
        if found is not None:
            result, outputs = found
            return CachedResult(outputs, "local", result.worker, result.seconds)
        remote = self._remote.result(key) if self._remote else None
        if remote is None:
            return None
        outputs = {}
        for output in remote.outputs:
            content = self._found(output.sha256, output.size)
            if content is None:
                return None
            outputs[output.path] = content
        if self._local:
            self._local.store(key, remote, outputs)
        return CachedResult(outputs, "remote", remote.worker, remote.seconds)

    def store(self, key: str, outputs: Mapping[str, bytes], *, worker: str = "", seconds: float = 0.0) -> None:
        """Keep the ``outputs`` of the action ``key`` by name, and send them to the server if the settings say so.

        Names are relative paths with ``/``. ``worker`` is a name of this machine, which everyone who uses the server
        can read, and ``seconds`` how long the action took. Raises ``ValueError`` for a name that is not a plain
        relative path; outputs of more than 1 GiB are not kept.
        """
        _check_digest(key)
        if sum(map(len, outputs.values())) > MAX_BLOBS:
            return
        files = tuple(OutputFile(path, sha256(content), len(content)) for path, content in outputs.items())
        result = ActionResult(files, worker, seconds)
        if self._local:
            self._local.store(key, result, outputs)
        if self._remote and all(self._remote.put_blob(file.sha256, outputs[file.path]) for file in files):
            self._remote.put_result(key, result)

    def _found(self, digest: str, size: int | None = None) -> bytes | None:
        if digest == EMPTY:
            return b""
        content = self._local.blob(digest, size) if self._local else None
        if content is None and self._remote:
            content = self._remote.blob(digest, size)
            if content is not None and self._local:
                self._local.put_blob(digest, content)
        return content


def open_cache(settings: CacheSettings, notify: Callable[[str], None]) -> ResultCache:
    """Return the cache that ``settings`` and the environment describe; nothing is created or asked yet.

    ``notify`` gets a line if a cache fails, at most one or two for each. Raises ``UsageError`` for an address of a
    server, or a token in ``$MLFBUILD_CACHE_TOKEN``, that cannot be used.
    """
    problem = remote_problem(settings.remote)
    if problem is not None:
        raise problem.error("cache.remote")
    local = None
    if settings.limit > 0:
        try:
            local = LocalCache(settings.folder or results_folder(), settings.limit, notify)
        except StorageError as error:
            notify(f"cache: {error}")
    if not settings.remote:
        return ResultCache(local, None)
    from mlfbuild.cache.remote import HttpCache  # imports sockets and TLS

    return ResultCache(local, HttpCache(settings.remote, notify, token=_token(), push=settings.pushes))


@functools.cache
def _opened(settings: CacheSettings) -> tuple[ResultCache, list[str]]:
    notices: list[str] = []
    return open_cache(settings, notices.append), notices


def shared_cache(settings: CacheSettings, notify: Callable[[str], None]) -> ResultCache | None:
    """Return this process's cache for ``settings``; ``None`` if ``$MLFBUILD_CACHE_DISABLE`` is set.

    ``notify`` gets the lines about failures since the last call. Raises as ``open_cache``.
    """
    if os.environ.get(DISABLE_VARIABLE):
        return None
    # The folder is part of what is remembered: the variable with it may change, as in a notebook.
    with contextlib.suppress(StorageError):  # without a home folder, ``open_cache`` gives the notice
        settings = replace(settings, folder=settings.folder or results_folder())
    cache, notices = _opened(settings)
    while notices:
        notify(notices.pop(0))
    return cache


def _token() -> str:
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        reason = "the token has a character that no header can contain"
        raise UsageError("cache-token-invalid", place=TOKEN_VARIABLE, reason=reason, hint="set it to the token alone")
    return token


def _check_digest(digest: str) -> None:
    if not SHA256.fullmatch(digest):
        raise ValueError("a digest has 64 lower-case hexadecimal digits")
