"""Find the models in a firmware image by the ID that the generated code of each model stores in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(rb"mlf:([A-Za-z]\w{0,126}):([0-9a-f]{64})(?::([0-9A-Za-z.+-]{1,40}))?\0", re.ASCII)


@dataclass(frozen=True)
class Identity:
    """The ID of a model in an image."""

    model: str
    sha256: str
    """Hash of the model file."""
    version: str
    """Version of mlfbuild that compiled the model; empty in IDs without one."""

    def __str__(self) -> str:
        return f"mlf:{self.model}:{self.sha256}:{self.version}"


def identities(data: bytes) -> list[Identity]:
    """Return the different IDs in ``data``, the bytes of an image in any file format, sorted by model.

    An ID that occurs several times in the file is returned once.
    """
    found = {Identity(*(part.decode() for part in match.groups(b""))) for match in _TEXT.finditer(data)}
    return sorted(found, key=lambda identity: (identity.model, identity.sha256, identity.version))
