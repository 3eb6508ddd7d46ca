"""The downloader that pooch calls: limited in size and time, without surprises in redirections."""

from __future__ import annotations

import base64
import hashlib
import http.client
import netrc
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from mlfbuild import __version__
from mlfbuild.core import InputFileError, OnProgress, ProcessFailedError, shown
from mlfbuild.library import CHUNK

MAX_SIZE = 1024 * 1024 * 1024
"""Bytes of an archive."""
SILENCE = 30.0
"""Seconds that a server may send nothing."""
TOTAL_TIME = 3600.0
"""Seconds that a download may take."""


class Downloader:
    """Writes what an ``https``, ``http`` or ``file`` address delivers to a file; pooch calls it once.

    User name and password of ``~/.netrc`` go to the host of the address only. Redirections to other schemes, and from
    https to http, are refused.
    """

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self.sha256 = ""
        """SHA-256 of the file that was written."""

    def __call__(self, url: str, output_file: str, _pooch: object) -> None:
        """Download ``url`` to ``output_file``; raises ``ProcessFailedError`` or ``InputFileError``."""
        digest = hashlib.sha256()
        try:
            with _open(url) as answer, Path(output_file).open("wb") as file:
                length = answer.headers.get("Content-Length", "")
                total = int(length) if length.isascii() and length.isdigit() else 0
                size = self._receive(url, answer, file, digest, total)
        except http.client.HTTPException as error:
            raise _failed(url, f"the connection broke: {error!r}") from None
        if size < total:
            raise _failed(url, f"the connection ended after {size} of {total} bytes")
        self._on_progress("checking", 0, 0)
        self.sha256 = digest.hexdigest()

    def _receive(self, url: str, answer: Any, file: IO[bytes], digest: Any, total: int) -> int:
        end = time.monotonic() + TOTAL_TIME
        size = next_report = 0
        _check_size(url, total)
        while chunk := _chunk(url, answer):
            size += len(chunk)
            _check_size(url, size)
            if time.monotonic() > end:
                raise _failed(url, f"the download took more than {TOTAL_TIME:g} s")
            file.write(chunk)
            digest.update(chunk)
            if size >= next_report:
                self._on_progress("receiving KiB", size >> 10, total >> 10)
                next_report = size + max(total // 50, CHUNK)
        return size


class _Redirections(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        scheme = newurl.partition(":")[0].lower()
        if scheme not in {"http", "https"} or (req.type == "https" and scheme != "https"):
            fp.close()
            raise urllib.error.URLError(f"the server redirects to {shown(newurl)}, which is not allowed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str) -> Any:
    headers = {"User-Agent": f"mlfbuild/{__version__}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - fetch_archive checked the scheme
    _authorise(request)
    opener = urllib.request.OpenerDirector()  # knows https, http and file, but not ftp and data
    for handler in (
        urllib.request.ProxyHandler(), urllib.request.UnknownHandler(), urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(), urllib.request.FileHandler(), urllib.request.HTTPDefaultErrorHandler(),
        _Redirections(), urllib.request.HTTPErrorProcessor(),
    ):  # fmt: skip
        opener.add_handler(handler)
    try:
        return opener.open(request, timeout=SILENCE)
    except urllib.error.HTTPError as error:
        error.close()
        raise _failed(url, f"HTTP {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise _failed(url, str(getattr(reason, "strerror", None) or reason)) from None


def _authorise(request: urllib.request.Request) -> None:
    """Add the user name and password that ``~/.netrc`` (or ``$NETRC``) has for the host; redirections lose them."""
    path = Path(os.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        found = netrc.netrc(path).authenticators(request.host.partition(":")[0]) if request.host else None
    except (OSError, netrc.NetrcParseError):
        return
    if found is not None:
        login = base64.b64encode(f"{found[0]}:{found[2]}".encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {login}")


def _chunk(url: str, answer: Any) -> bytes:
    try:
        chunk: bytes = answer.read1(CHUNK) if hasattr(answer, "read1") else answer.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _failed(url, f"the connection broke: {error}") from None
    return chunk


def _check_size(url: str, size: int) -> None:
    if size > MAX_SIZE:
        raise InputFileError(
            "download-too-large",
            place=shown(url),
            reason=f"the file has more than {MAX_SIZE >> 20} MiB",
            hint="choose a smaller archive",
        )


def _failed(url: str, reason: str) -> ProcessFailedError:
    return ProcessFailedError(
        "download-failed", place=shown(url), reason=reason, hint="check the address and the network, and try again"
    )
