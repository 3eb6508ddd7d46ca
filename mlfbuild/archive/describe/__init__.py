"""Describe the content of a library: as JSON-ready data, as text for people, and as the archive's ``README.md``.

``facts`` collects the data (``describe``), ``library_text`` prints it in tables (``describe_text``), and ``readme``
writes the page that each archive contains::

    print(describe_text(open_archive(Path("kws.tar"))))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.describe.facts import describe
    from mlfbuild.archive.describe.library_text import describe_text, interface_text
    from mlfbuild.archive.describe.readme import is_written_archive
else:
    __getattr__ = lazy_attributes(__name__)
