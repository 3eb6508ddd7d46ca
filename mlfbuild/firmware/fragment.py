"""The CMake fragment of a tree: one static library target for each module.

Targets carry sources and include folders, no flags: the toolchain file owns those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mlfbuild.firmware.blobs import blobs_choice, blobs_target
from mlfbuild.firmware.cmake import check_target_name, head, here, lines
from mlfbuild.library import Library, Module

_CXX_SUFFIXES = {".cc", ".cpp"}
_OBJECT_SUFFIXES = {".o"}
_SOURCE_SUFFIXES = {".c"} | _CXX_SUFFIXES | _OBJECT_SUFFIXES

_LANGUAGES = """
get_property(_mlf_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
foreach(_mlf_language IN ITEMS {languages})
  if(NOT _mlf_language IN_LIST _mlf_languages)
    message(FATAL_ERROR "${{CMAKE_CURRENT_LIST_FILE}} needs the language ${{_mlf_language}}: "
                        "project(<name> LANGUAGES {languages})")
  endif()
endforeach()
"""

_MODULE = """
# ---- Module {name} ----

if(TARGET mlf_{name})
  message(FATAL_ERROR "${{CMAKE_CURRENT_LIST_FILE}}: there is a target mlf_{name} already; "
                      "two archives with a module called {name} do not fit into one build")
endif()
"""


def library_fragment(library: Library, model: str | None = None) -> str:
    """Return the text of ``mlf.cmake`` for ``library``.

    It defines ``mlf::<module>`` for each module and, where no module is called so, ``mlf::<model>`` for all of them.
    Raises ``InputFileError`` for a module or file name that CMake's targets or build files cannot hold.
    """
    names = [module.name for module in library.modules]
    alias = model if model is not None and model not in names else None
    for name in (*names, *([alias] if alias else [])):
        check_target_name(name)
    return "".join(_text(library, alias))


def _text(library: Library, alias: str | None) -> Iterator[str]:
    yield head("<this folder>", [alias] if alias else [module.name for module in library.modules])
    cxx = any(file.path.suffix in _CXX_SUFFIXES for module in library.modules for file in module.codegen)
    yield _LANGUAGES.format(languages="C CXX" if cxx else "C")
    if any(module.graph_json is not None for module in library.modules):
        yield blobs_choice()
    runtime = any(file.path.is_relative_to("runtime/include") for file in library.other_files)
    for module in library.modules:
        yield from _module(module, runtime)
        if module.graph_json is not None:
            yield blobs_target(module.name)
    if alias:
        yield from _alias(alias, library.modules)


def _module(module: Module, runtime: bool) -> Iterator[str]:
    target = f"mlf_{module.name}"
    paths = [PurePosixPath("codegen") / file.path for file in module.codegen]
    sources = [path for path in paths if path.suffix in _SOURCE_SUFFIXES]
    objects = [path for path in sources if path.suffix in _OBJECT_SUFFIXES]
    include_dirs = sorted(
        {"/".join(path.parts[:3]) for path in paths if len(path.parts) > 3 and path.parts[2] == "include"}
    )
    yield _MODULE.format(name=module.name)
    if sources:
        yield f"add_library(\n  {target} STATIC EXCLUDE_FROM_ALL\n{lines(here(path) for path in sources)})\n"
    else:
        yield f"add_library({target} INTERFACE)\n"
    yield f"add_library(mlf::{module.name} ALIAS {target})\n"
    for folder in include_dirs:
        yield f"target_include_directories({target} {'PUBLIC' if sources else 'INTERFACE'} {here(folder)})\n"
    if sources and runtime:
        yield f"target_include_directories({target} PRIVATE {here('runtime/include')})\n"
    if objects:  # they were compiled when the archive was exported
        object_lines = lines(here(path) for path in objects)
        yield f"set_source_files_properties(\n{object_lines}  PROPERTIES EXTERNAL_OBJECT TRUE\n)\n"
        yield f"set_target_properties({target} PROPERTIES LINKER_LANGUAGE C)\n"


def _alias(alias: str, modules: Sequence[Module]) -> Iterator[str]:
    """Yield the project's own name for what the archive calls otherwise."""
    yield "\n# ---- The project's name ----\n\n"
    if len(modules) == 1:
        name = modules[0].name
        yield f"add_library(mlf::{alias} ALIAS mlf_{name})\n"
        if modules[0].graph_json is not None:
            yield f"add_library(mlf::{alias}_blobs ALIAS mlf_{name}_blobs)\n"
    else:
        targets = " ".join(f"mlf::{module.name}" for module in modules)
        yield f"add_library(mlf_{alias} INTERFACE)\n"
        yield f"add_library(mlf::{alias} ALIAS mlf_{alias})\n"
        yield f"target_link_libraries(mlf_{alias} INTERFACE {targets})\n"
