"""``metadata.json`` of Model Library Format to and from the fields of ``Module``."""

from mlfbuild.library.metadata.extension import Extension
from mlfbuild.library.metadata.read import ModuleRecord, read_document, read_format, read_modules
from mlfbuild.library.metadata.versions import CURRENT, FORMATS, Format, written_format
from mlfbuild.library.metadata.write import metadata_json

__all__ = [
    "CURRENT",
    "FORMATS",
    "Extension",
    "Format",
    "ModuleRecord",
    "metadata_json",
    "read_document",
    "read_format",
    "read_modules",
    "written_format",
]
