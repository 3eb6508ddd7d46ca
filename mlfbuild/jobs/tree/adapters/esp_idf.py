"""Make the files of a component of ESP-IDF.

Files: https://docs.espressif.com/projects/esp-idf/en/latest/esp32/api-guides/build-system.html and, for the manifest,
https://docs.espressif.com/projects/idf-component-manager/en/latest/reference/manifest_file.html
"""

from __future__ import annotations

from collections.abc import Iterable

from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NOTICE, Package
from mlfbuild.jobs.tree.build_text import lines
from mlfbuild.jobs.tree.link_checks import CMAKE_CHECK

RESERVED: dict[str, str] = {}

_MANIFEST = f"""\
# {NOTICE}
version: "{{version}}"
description: {DESCRIPTION}
dependencies:
  idf: ">=5.0"
"""
_CMAKE = """\
# {notice}
idf_component_register(
{arguments})
"""
_CHECK = f"""\
# {NOTICE}
#
# The build includes this file before it defines the executable, which the deferred function then knows.
set(_mlf_check "${{CMAKE_CURRENT_LIST_DIR}}/{CMAKE_CHECK}")

function(_mlf_check_link)
  idf_build_get_property(executable EXECUTABLE)
  add_custom_command(
    TARGET ${{executable}}
    POST_BUILD
    COMMAND "${{CMAKE_COMMAND}}" "-DIMAGE=$<TARGET_FILE:${{executable}}>"
            "-DMAP=${{CMAKE_BINARY_DIR}}/${{CMAKE_PROJECT_NAME}}.map" -P "${{_mlf_check}}"
    VERBATIM)
endfunction()

cmake_language(DEFER DIRECTORY "${{CMAKE_SOURCE_DIR}}" CALL _mlf_check_link)
"""
_OBJECTS = """\
if(NOT CMAKE_BUILD_EARLY_EXPANSION)
  set_source_files_properties(
{objects}    PROPERTIES EXTERNAL_OBJECT TRUE
  )
endif()
"""
_OPTIONS = """\
if(NOT CMAKE_BUILD_EARLY_EXPANSION)
  set_source_files_properties(
{sources}    PROPERTIES COMPILE_OPTIONS "{options}"
  )
endif()
"""


def files(package: Package) -> dict[str, str]:
    """Return the files of the component: path -> text."""
    models = package.models
    libraries = package.libraries
    objects = [path for model in models for path in model.objects]
    sources = [path for library in libraries for path in library.sources]
    public = [library for library in libraries if library.public]
    private = [library for library in libraries if not library.public]
    arguments = (
        _argument("SRCS", [*(path for model in models for path in model.sources), *sources, *objects])
        + _argument(
            "INCLUDE_DIRS",
            [path for model in models for path in model.include_dirs]
            + [path for library in public for path in library.include_dirs],
        )
        + _argument(
            "PRIV_INCLUDE_DIRS",
            [path for model in models for path in model.private_include_dirs]
            + [path for library in private for path in library.include_dirs],
        )
    )
    text = _CMAKE.format(notice=NOTICE, arguments=arguments)
    if objects:
        text += _OBJECTS.format(objects=_quoted(objects))
    for model in models:
        text += (
            _OPTIONS.format(sources=_quoted(model.sources), options=";".join(model.options)) if model.options else ""
        )
    for library in libraries:
        options = ";".join(library.options).replace("\\", "\\\\").replace('"', '\\"')
        text += _OPTIONS.format(sources=_quoted(library.sources), options=options) if library.sources else ""
    manifest = _MANIFEST.format(version=package.version)
    project = {"project_include.cmake": _CHECK} if package.budgeted else {}
    return {"CMakeLists.txt": text, "idf_component.yml": manifest, **project}


def _argument(keyword: str, paths: Iterable[str]) -> str:
    values = _quoted(paths)
    return f"  {keyword}\n{values}" if values else ""


def _quoted(paths: Iterable[str]) -> str:
    return lines(f'  "{path}"' for path in paths)
