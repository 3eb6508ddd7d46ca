"""Archives: read and write a library as a Model Library Format ``.tar``.

Reading: ``load`` opens the file, ``tar`` reads its members without trusting it, and ``read`` makes a ``Library`` of
them (``codegen`` assigns generated files to modules, ``interface`` finds inputs and outputs). Writing: ``conversion``
converts the library to a version of the format, ``layout`` assigns its parts to members, and ``tar`` packs them::

    library = open_archive(Path("kws.tar"))
    write_archive(library, Path("kws-5.tar"), version=5)

Seven packages use libraries and archives: ``describe`` shows the content, ``program`` finds the C functions of its
operators, ``validate`` checks it, ``repair`` corrects what exporters wrote wrongly, ``compare`` finds the differences
of two, ``merge`` makes one of several, and ``split`` several of one. Compilers and unpacked trees are in other rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.conversion import convert
    from mlfbuild.archive.epoch import source_date
    from mlfbuild.archive.layout import PARAMS_FORMS, archive_files, moved_fields
    from mlfbuild.archive.load import (
        open_archive, open_archive_with_id, open_dated_archive, pack_archive, read_archive, write_archive,
    )
    from mlfbuild.archive.paths import graph_path, params_path
    from mlfbuild.archive.read import read_files
    from mlfbuild.archive.rename import NEW_NAME, rename_modules
else:
    __getattr__ = lazy_attributes(__name__)
