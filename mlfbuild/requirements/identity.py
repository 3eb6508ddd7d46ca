"""What makes two sources of a library the same."""

from __future__ import annotations

import hashlib
import json

from mlfbuild.library import chunks
from mlfbuild.requirements.types import Source


def content_hash(source: Source) -> str:
    """Return the SHA-256 of everything in ``source``: names, contents and settings, whatever machine they lie on."""
    settings = {key: value for key, value in vars(source).items() if key != "files"}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path, content in sorted(source.files.items()):
        digest.update(json.dumps([path, len(content)]).encode())
        for chunk in chunks(content):
            digest.update(chunk)
    return digest.hexdigest()
