"""Archives: a library as a Model Library Format ``.tar``, and back.

The way in: ``load`` opens the file, ``tar`` takes it apart without trusting it, ``read`` makes a ``Library`` of its
members (``codegen`` says whose each generated file is, ``interface`` how a module is called). The way out: ``layout``
says which member holds what, in the version that ``convert`` brings the library to, and ``tar`` packs the members.

What is done with libraries and archives, each in a room of its own: ``describe`` tells what one holds,
``validate`` what is wrong with one, ``compare`` in what two differ, ``merge`` makes one of many.
"""

from mlfbuild.archive.describe import describe, describe_text
from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.load import open_archive, open_archive_with_id, pack_archive, read_archive, write_archive

__all__ = [
    "archive_files",
    "describe",
    "describe_text",
    "open_archive",
    "open_archive_with_id",
    "pack_archive",
    "read_archive",
    "write_archive",
]
