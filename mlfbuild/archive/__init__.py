"""Archives: a library as a Model Library Format ``.tar``, and back.

The way in: ``load`` opens the file, ``tar`` takes it apart without trusting it, ``read`` makes a ``Library`` of its
members (``codegen`` says whose each generated file is, ``interface`` how a module is called). The way out: ``layout``
says which member holds what, in the version that ``convert`` brings the library to, and ``tar`` packs the members.

What is done with libraries and archives, each in a room of its own: ``describe`` tells what one holds,
``validate`` what is wrong with one, ``compare`` in what two differ, ``merge`` makes one of many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.archive.conversion import convert as convert
    from mlfbuild.archive.epoch import source_date as source_date
    from mlfbuild.archive.layout import archive_files as archive_files
    from mlfbuild.archive.load import (
        open_archive as open_archive,
        open_archive_with_id as open_archive_with_id,
        pack_archive as pack_archive,
        read_archive as read_archive,
        write_archive as write_archive,
    )
    from mlfbuild.archive.paths import graph_path as graph_path, params_path as params_path
    from mlfbuild.archive.read import read_files as read_files
    from mlfbuild.archive.rename import NEW_NAME as NEW_NAME, rename_modules as rename_modules
else:
    __getattr__ = lazy_attributes(__name__)
