"""The kernel headers as files of an archive, in a folder named by the hash of all of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mlfbuild.core import sha256

_FOLDER = Path(__file__).parent


@cache
def kernel_headers() -> dict[str, bytes]:
    """Return all kernel headers by file name, in alphabetical order."""
    return {path.name: path.read_bytes() for path in sorted(_FOLDER.glob("*.h"))}


@cache
def kernel_folder() -> str:
    """Return the folder's name, ``mlfbuild-`` and 12 digits: archives with equal kernels share it, others never do."""
    content = b"".join(f"{name} {len(data)}\n".encode() + data for name, data in kernel_headers().items())
    return f"mlfbuild-{sha256(content)[:12]}"
