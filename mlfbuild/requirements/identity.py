"""The identity of a library: everything that decides its object code."""

from __future__ import annotations

import hashlib
import json

from mlfbuild.library import ResolvedLibrary, chunks


def content_hash(source: ResolvedLibrary) -> str:
    """Return the SHA-256 of all names, contents and settings of ``source``, the same on every machine."""
    settings = {key: value for key, value in vars(source).items() if key != "files"}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path, content in sorted(source.files.items()):
        digest.update(json.dumps([path, len(content)]).encode())
        for chunk in chunks(content):
            digest.update(chunk)
    return digest.hexdigest()
