"""Read and write ``metadata.json`` of Model Library Format, versions 1 to 7.

``versions`` is the table of differences between versions, ``read`` makes modules of a document, ``write`` the text of a
library, and ``extension`` is the key ``mlfbuild``, which holds facts that TVM's keys cannot::

    document = read_document(data, "metadata.json")
    records = read_modules(document, read_format(document))

Files other than the metadata are not read here; see ``mlfbuild.archive``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.metadata.extension import EXTENSION, KEPT_FACTS, Extension
    from mlfbuild.library.metadata.read import ModuleRecord, read_document, read_format, read_modules, read_unknown
    from mlfbuild.library.metadata.versions import CURRENT, FORMATS, Format, written_format
    from mlfbuild.library.metadata.write import metadata_json
else:
    __getattr__ = lazy_attributes(__name__)
