"""Archives: read and write a library as a Model Library Format ``.tar``.

Reading: ``load`` opens the file, ``tar`` reads its members without trusting it, and ``read`` makes a ``Library`` of
them (``codegen`` assigns generated files to modules, ``interface`` finds inputs and outputs). Writing: ``conversion``
converts the library to a version of the format, ``layout`` assigns its parts to members, and ``tar`` packs them::

    library = open_archive(Path("kws.tar"))
    write_archive(library, Path("kws-5.tar"), version=5)

The data has three forms, and each step changes one into the next:

1. bytes of the ``.tar``: ``tar`` turns them into ``dict[str, Content]``, relative path -> content, and back
2. members: ``read.read_files`` turns them into a ``Library``, ``layout.archive_files`` back
3. ``Library``: modules with typed fields, and ``other_files``, which mlfbuild does not understand and keeps

The rules:

- A ``Library`` does not depend on the version that it was read from. What a version cannot express is in the key
  ``mlfbuild`` of the metadata, so that writing and reading again gives an equal library. If the version has no place
  for a module or a target at all, writing raises ``UsageError`` and never drops it.
- Members are untrusted. No name of a member is used as a path of the disk here, and sizes, links and counts in the
  file are checked against its length before memory is reserved. Mistakes are ``InputFileError`` with the member in
  ``place``.
- Equal libraries give equal bytes: members are sorted, and owners, modes and dates are fixed.
- Contents may be larger than memory. A ``Content`` is ``bytes`` or a slice of the open file, which is read when it is
  used; code here never joins several contents.

For example, version 5 stores the graph as ``executor-config/graph/graph.json`` and has no ``modules``. ``read`` finds
the graph at the place of the version, or at that of another version if it is the only one; ``layout`` writes it to
``executor-config/graph/kws.graph`` in version 7. ``plan.json`` is an extension: its content is in the operators of the
modules' networks, and a file of this name from another tool is one of ``other_files``.

Seven packages use libraries and archives: ``describe`` shows the content, ``program`` finds the C functions of its
operators, ``validate`` checks it, ``repair`` corrects what exporters wrote wrongly, ``compare`` finds the differences
of two, ``merge`` makes one of several, and ``split`` several of one. Compilers and unpacked trees are in other rooms:
nothing here compiles code, lays out a tree for a build, or accesses the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.conversion import NEW_NAME, convert, rename_modules
    from mlfbuild.archive.epoch import EPOCH, source_date
    from mlfbuild.archive.layout import PARAMS_FORMS, archive_files, moved_fields
    from mlfbuild.archive.load import (
        open_archive, open_archive_with_id, open_dated_archive, pack_archive, read_archive, write_archive,
    )
    from mlfbuild.archive.paths import graph_path, params_path
    from mlfbuild.archive.read import read_files
else:
    __getattr__ = lazy_attributes(__name__)
