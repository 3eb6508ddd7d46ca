"""The container of an archive: a tar file, plain or compressed.

``read`` reads a file without trusting it: ``members`` returns the contents by path, and ``dated_members`` also the
times of the members. A compressed file is first decompressed into a temporary one. ``paths`` checks the names: they
must be valid and distinct on all file systems, so that an archive can be unpacked on every machine or on none.
``write`` makes the bytes of a tar file, which depend only on its content and one date::

    files = members(path.open("rb"), str(path))  # path -> content
    data = b"".join(pack(files, mtime=0))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.tar.paths import Paths, name_fault, plain_path
    from mlfbuild.archive.tar.read import (
        MAX_INFLATED, MAX_MEMBERS, dated_members, is_plain_tar, looks_like_archive, members,
    )
    from mlfbuild.archive.tar.write import pack
else:
    __getattr__ = lazy_attributes(__name__)
