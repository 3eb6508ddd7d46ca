"""``metadata.json`` of Model Library Format to and from the fields of ``Module``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.library.metadata.extension import Extension as Extension
    from mlfbuild.library.metadata.read import (
        ModuleRecord as ModuleRecord,
        read_document as read_document,
        read_format as read_format,
        read_modules as read_modules,
    )
    from mlfbuild.library.metadata.versions import (
        CURRENT as CURRENT,
        FORMATS as FORMATS,
        Format as Format,
        written_format as written_format,
    )
    from mlfbuild.library.metadata.write import metadata_json as metadata_json
else:
    __getattr__ = lazy_attributes(__name__)
