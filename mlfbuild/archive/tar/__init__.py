"""The container of an archive: a tar file, plain or compressed.

``members`` and ``dated_members`` read a file without trusting it: ``inflate`` decompresses it, ``read`` parses the
headers, and ``paths`` checks the names. ``pack`` writes the bytes of a tar file that depend only on its content::

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
