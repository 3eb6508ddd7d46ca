"""Archives: a library as a Model Library Format ``.tar``, and back.

The way in: ``load`` opens the file, ``tar`` takes it apart without trusting it, ``read`` makes a ``Library`` of its
members (``codegen`` says whose each generated file is, ``interface`` how a module is called). The way out: ``layout``
says which member holds what, in the version that ``convert`` brings the library to, and ``tar`` packs the members.

What is done with libraries and archives, each in a room of its own: ``describe`` tells what one holds,
``validate`` what is wrong with one, ``compare`` in what two differ, ``merge`` makes one of many.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlfbuild.archive.layout import archive_files
    from mlfbuild.archive.load import open_archive, open_archive_with_id, pack_archive, read_archive, write_archive

__all__ = [
    "archive_files",
    "open_archive",
    "open_archive_with_id",
    "pack_archive",
    "read_archive",
    "write_archive",
]


def __getattr__(name: str) -> Any:
    """Import a function when it is first asked for: build systems often start mlfbuild, and seldom read an archive."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "layout" if name == "archive_files" else "load"
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
