"""Archives: a library as a Model Library Format ``.tar``, and back.

``archive_files`` gives the members by name, which is also what an unpacked tree holds; ``write_archive`` and
``open_archive`` put them into a tar file and take them out of one that nobody vouches for.
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
