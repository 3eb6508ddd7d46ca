"""Print the CMake fragment of a tree: one static library target for each module.

Targets have sources, include folders and an optimisation level; all other flags are left to the toolchain file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.jobs.tree.blobs import blobs_choice, blobs_target
from mlfbuild.jobs.tree.cmake import CHECKED_LANGUAGES, head, here, here_in_build, lines
from mlfbuild.jobs.tree.device_cmake import device_targets
from mlfbuild.jobs.tree.parts import Part, Parts
from mlfbuild.library import Requirement

_MODULE = """
# ---- Module {name} ----

if(TARGET mlf_{name})
  message(FATAL_ERROR "${{CMAKE_CURRENT_LIST_FILE}}: another archive already defines the module {name}; "
                      "rename one of the modules with mlfbuild convert")
endif()
"""

_OWN_OPTIONS = """\
# Its own optimisation level, also in Debug builds (optimize in the project file). Without link-time optimisation, the
# linker map shows its bytes, so that budgets can be checked. Warnings of C that mlfbuild did not write are off.
target_compile_options({target} PRIVATE {options})
"""
_OF_LANGUAGE = '"$<$<COMPILE_LANG_AND_ID:{language},GNU,Clang,AppleClang,ARMClang>:{options}>"'
_LIBM = """\
target_link_libraries({target} {scope} "$<$<C_COMPILER_ID:GNU,Clang,AppleClang>:m>")
"""
_NEED = """
# {module} needs {title}
set(_mlf_needed "${{CMAKE_CURRENT_LIST_DIR}}/../dependencies/{name}.cmake")
if(NOT EXISTS "${{_mlf_needed}}") # not in the target's folder, but possibly in the tree
  set(_mlf_needed "${{CMAKE_CURRENT_LIST_DIR}}/dependencies/{name}.cmake")
endif()
include("${{_mlf_needed}}" OPTIONAL)
if(NOT TARGET mlf::dep::{name})
  message(FATAL_ERROR "  ${{CMAKE_CURRENT_LIST_FILE}}: {module} requires {title}, which is missing: add {name} to "
                      "dependencies in the project file, or define a target mlf::dep::{name} before this include")
endif()
"""
_LINK_NEED = """\
get_target_property(_mlf_public mlf::dep::{name} MLF_PUBLIC_HEADERS)
if(_mlf_public)
  target_link_libraries({target} PUBLIC mlf::dep::{name})
else()
  target_link_libraries({target} PRIVATE mlf::dep::{name})
endif()
target_include_directories(
  {target} BEFORE PRIVATE "$<TARGET_PROPERTY:mlf::dep::{name},INTERFACE_INCLUDE_DIRECTORIES>")
"""


def library_fragment(parts: Parts) -> str:
    """Return the text of ``mlf.cmake`` for the modules ``parts`` of a tree.

    It defines ``mlf::<module>`` for each module, and ``mlf::<model>`` for all if the project's name is different.
    """
    return "".join(_text(parts))


def _text(parts: Parts) -> Iterator[str]:
    yield head("<this folder>", parts.example)
    yield CHECKED_LANGUAGES.format(languages="C CXX" if any(part.cxx for part in parts.modules) else "C")
    if any(part.blobs for part in parts.modules):
        yield blobs_choice()
    for part in parts.modules:
        yield from _module(part)
        if part.blobs:
            yield blobs_target(part.name, part.blobs)
        yield from device_targets(part.devices)
    if parts.alias:
        yield from _alias(parts.alias, parts.modules)


def _module(part: Part) -> Iterator[str]:
    target = f"mlf_{part.name}"
    yield _MODULE.format(name=part.name)
    if part.files:
        yield f"add_library(\n  {target} STATIC EXCLUDE_FROM_ALL\n{lines(here(path) for path in part.files)})\n"
    else:
        yield f"add_library({target} INTERFACE)\n"
    yield f"add_library(mlf::{part.name} ALIAS {target})\n"
    for folder in part.include_dirs:
        scope = "PUBLIC" if part.files else "INTERFACE"
        yield f"target_include_directories({target} {scope} {here_in_build(folder)})\n"
    for folder in part.private_include_dirs:
        yield f"target_include_directories({target} PRIVATE {here(folder)})\n"
    if part.options:
        languages = ("C", "CXX") if part.cxx else ("C",)
        words = ";".join(part.options)
        options = (_OF_LANGUAGE.format(language=language, options=words) for language in languages)
        yield _OWN_OPTIONS.format(target=target, options=" ".join(options))
    if part.objects:  # compiled when the archive was exported
        object_lines = lines(here(path) for path in part.objects)
        yield f"set_source_files_properties(\n{object_lines}  PROPERTIES EXTERNAL_OBJECT TRUE\n)\n"
        yield f"set_target_properties({target} PROPERTIES LINKER_LANGUAGE C)\n"
    for need in part.needs:
        yield from _need(part, need, target)
    if part.libm:
        yield _LIBM.format(target=target, scope="PRIVATE" if part.files else "INTERFACE")


def _need(part: Part, need: Requirement, target: str) -> Iterator[str]:
    yield _NEED.format(module=part.name, title=need.title, name=need.name)
    if part.files:
        yield _LINK_NEED.format(target=target, name=need.name)
    else:
        yield f"target_link_libraries({target} INTERFACE mlf::dep::{need.name})\n"


def _alias(alias: str, modules: Sequence[Part]) -> Iterator[str]:
    """Yield the target ``mlf::<alias>`` for all modules."""
    yield "\n# ---- The project's name ----\n\n"
    if len(modules) == 1:
        name = modules[0].name
        yield f"add_library(mlf::{alias} ALIAS mlf_{name})\n"
        if modules[0].blobs:
            yield f"add_library(mlf::{alias}_blobs ALIAS mlf_{name}_blobs)\n"
    else:
        targets = " ".join(f"mlf::{part.name}" for part in modules)
        yield f"add_library(mlf_{alias} INTERFACE)\n"
        yield f"add_library(mlf::{alias} ALIAS mlf_{alias})\n"
        yield f"target_link_libraries(mlf_{alias} INTERFACE {targets})\n"
