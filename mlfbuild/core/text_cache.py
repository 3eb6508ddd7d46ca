"""Texts in the user's cache, under the hash of all that they are made from."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

from mlfbuild.core.errors import StorageError
from mlfbuild.core.files import cache_folder, sha256, trusted_owners, write_atomic
from mlfbuild.core.package import package_fingerprint

_MOST_TEXTS = 32_768
"""Texts in the cache, about 80 MB. A build of 2,000 models has 6,000, and would make all of them each time
if there were room for fewer."""
_LOOKED_AT = "00"
"""Beginning of the hashes with which the size of the cache is looked at: listing it for each text takes longer."""


def cached_text(made_from: Iterable[bytes], make: Callable[[], str]) -> str:
    """Return the result of ``make``, which depends on this mlfbuild and the bytes ``made_from`` only.

    It is taken from the user's cache if it was made from equal bytes before.
    """
    try:
        kept = cache_folder("text") / sha256(itertools.chain([package_fingerprint().encode()], made_from))
    except StorageError:  # a home that is read-only
        return make()
    text = _kept(kept)
    if text is None:
        text = make()
        with contextlib.suppress(StorageError, OSError):
            if kept.name.startswith(_LOOKED_AT):
                _make_room(kept.parent)
            write_atomic(kept, f"{sha256(text.encode())}\n{text}".encode())
    return text


def _make_room(folder: Path) -> None:
    """Empty the cache if it is full: texts of older versions and deleted projects would stay for ever."""
    texts = list(folder.iterdir())
    if len(texts) >= _MOST_TEXTS:
        for text in texts:
            text.unlink(missing_ok=True)


def _kept(path: Path) -> str | None:
    """Return the text in the file ``path`` of the cache; ``None`` if it is missing, damaged, or of another user."""
    try:
        digest, _, text = path.read_bytes().partition(b"\n")
        mine = path.lstat().st_uid in trusted_owners()
    except OSError:
        return None
    return text.decode() if mine and sha256(text) == digest.decode("ascii", "replace") else None
