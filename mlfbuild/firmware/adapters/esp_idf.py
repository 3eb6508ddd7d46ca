"""A component of ESP-IDF.

Files: https://docs.espressif.com/projects/esp-idf/en/latest/esp32/api-guides/build-system.html and, for the manifest,
https://docs.espressif.com/projects/idf-component-manager/en/latest/reference/manifest_file.html
"""

from __future__ import annotations

from collections.abc import Iterable

from mlfbuild.firmware.adapters.package import DESCRIPTION, NOTICE, VERSION, Package
from mlfbuild.firmware.cmake import lines

RESERVED: dict[str, str] = {}

_MANIFEST = f"""\
# {NOTICE}
version: {VERSION}
description: {DESCRIPTION}
dependencies:
  idf: ">=5.0"
"""
_CMAKE = """\
# {notice}
idf_component_register(
{arguments})
"""
_OBJECTS = """\
if(NOT CMAKE_BUILD_EARLY_EXPANSION)
  set_source_files_properties(
{objects}    PROPERTIES EXTERNAL_OBJECT TRUE
  )
endif()
"""


def files(package: Package) -> dict[str, str]:
    """Return the files of the component: path -> text."""
    models = package.models
    objects = [path for model in models for path in model.objects]
    arguments = (
        _argument("SRCS", [*(path for model in models for path in model.sources), *objects])
        + _argument("INCLUDE_DIRS", (path for model in models for path in model.include_dirs))
        + _argument("PRIV_INCLUDE_DIRS", (path for model in models for path in model.private_include_dirs))
    )
    text = _CMAKE.format(notice=NOTICE, arguments=arguments)
    if objects:
        text += _OBJECTS.format(objects=_quoted(objects))
    return {"CMakeLists.txt": text, "idf_component.yml": _MANIFEST}


def _argument(keyword: str, paths: Iterable[str]) -> str:
    values = _quoted(paths)
    return f"  {keyword}\n{values}" if values else ""


def _quoted(paths: Iterable[str]) -> str:
    return lines(f'  "{path}"' for path in paths)
