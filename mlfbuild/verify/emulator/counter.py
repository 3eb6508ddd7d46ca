"""The QEMU plugin that counts instructions: compiled with this machine's compiler, kept in the cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from mlfbuild.core import cache_folder, find_tool, make_once, read_bytes, run, sha256

_SOURCE = Path(__file__).with_name("counter.c")
_FLAGS = ("-O2", "-shared", "-fPIC")


def counting_plugin() -> Path:
    """Return the shared object of ``counter.c``; compile it if it is not cached.

    Raises ``ToolNotFoundError`` without a C compiler, ``StorageError`` if the cache cannot be written.
    """
    compiler = find_tool("gcc", os.environ.get("CC") or None)
    key = sha256(read_bytes(_SOURCE, "plugin") + run([compiler, "--version"]).encode())
    return make_once(cache_folder("counter") / f"{key}.so", lambda folder: _compiled(compiler, folder))


def _compiled(compiler: Path, folder: Path) -> Path:
    made = folder / "counter.so"
    run([compiler, *_FLAGS, _SOURCE, "-o", made])
    return made
