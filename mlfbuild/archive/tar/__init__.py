"""The container of an archive: a tar file, plain or compressed, that nobody vouches for.

``members`` reads one (``read``, behind ``inflate`` and with the names that ``paths`` takes), ``pack`` writes one.
"""

from mlfbuild.archive.tar.read import members
from mlfbuild.archive.tar.sniff import is_plain_tar, looks_like_archive
from mlfbuild.archive.tar.write import pack

__all__ = ["is_plain_tar", "looks_like_archive", "members", "pack"]
