"""Print the part of the CMake fragment that builds the code of other devices.

CMake has one C compiler for a build. Therefore custom commands compile each source, with the compiler and the options
of its device and nothing else. Compilers list the headers that they read, and each object depends on a file with its
command, so that Ninja and Make compile again exactly if one of these changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.jobs.tree.cmake import here, lines, quoted
from mlfbuild.jobs.tree.devices import DevicePart

_DEVICE = """
# ---- Device {name}: code of module {module} for another compiler ----

# The compiler and the options of the device; those of this build are never used.
set(_mlf_names {compilers})
set(_mlf_flags {flags})
if({variable}_COMPILER)
  set(_mlf_names "${{{variable}_COMPILER}}")
endif()
if(DEFINED {variable}_FLAGS)
  set(_mlf_flags ${{{variable}_FLAGS}})
endif()
unset(_mlf_compiler)
if(_mlf_names)
  find_program(_mlf_compiler NAMES ${{_mlf_names}} NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
endif()
if(NOT _mlf_compiler)
  message(FATAL_ERROR "  ${{CMAKE_CURRENT_LIST_FILE}}: codegen/{name} is code for the device {name}, {missing}: "
                      "set {variable}_COMPILER, and its options in {variable}_FLAGS")
endif()
execute_process(
  COMMAND "${{_mlf_compiler}}" -print-prog-name=ar
  OUTPUT_VARIABLE _mlf_ar
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT _mlf_ar)
  set(_mlf_ar "${{CMAKE_AR}}")
endif()

set(_mlf_folder "${{CMAKE_CURRENT_BINARY_DIR}}/mlf_{target}.dir")
set(_mlf_library "${{CMAKE_CURRENT_BINARY_DIR}}/libmlf_{target}.a")
set(_mlf_map "-ffile-prefix-map=${{CMAKE_CURRENT_LIST_DIR}}=/{module}") # the same objects in every folder
file(WRITE "${{_mlf_folder}}/empty.c" "")
execute_process(
  COMMAND "${{_mlf_compiler}}" ${{_mlf_map}} -fsyntax-only "${{_mlf_folder}}/empty.c"
  RESULT_VARIABLE _mlf_status
  OUTPUT_QUIET ERROR_QUIET)
if(_mlf_status) # an old compiler
  set(_mlf_map)
endif()
set(_mlf_command "${{_mlf_compiler}}" ${{_mlf_flags}} ${{_mlf_map}}{includes})
file(CONFIGURE OUTPUT "${{_mlf_folder}}/command" CONTENT "${{_mlf_command}}\\n" @ONLY)
set(_mlf_objects)
foreach(
  _mlf_source IN ITEMS
{sources})
  string(REPLACE "/" "-" _mlf_object "${{_mlf_source}}")
  set(_mlf_object "${{_mlf_folder}}/${{_mlf_object}}.o")
  add_custom_command(
    OUTPUT "${{_mlf_object}}"
    COMMAND ${{_mlf_command}} -MD -MQ "${{_mlf_object}}" -MF "${{_mlf_object}}.d" -o "${{_mlf_object}}" -c
            "${{CMAKE_CURRENT_LIST_DIR}}/${{_mlf_source}}"
    DEPENDS "${{CMAKE_CURRENT_LIST_DIR}}/${{_mlf_source}}" "${{_mlf_folder}}/command"
    DEPFILE "${{_mlf_object}}.d"
    COMMENT "Building ${{_mlf_source}} for {name}"
    VERBATIM)
  list(APPEND _mlf_objects "${{_mlf_object}}")
endforeach()
{objects}add_custom_command(
  OUTPUT "${{_mlf_library}}"
  COMMAND "${{CMAKE_COMMAND}}" -E rm -f "${{_mlf_library}}"
  COMMAND "${{_mlf_ar}}" rcs "${{_mlf_library}}" ${{_mlf_objects}}
  DEPENDS ${{_mlf_objects}}
  COMMENT "Linking libmlf_{target}.a for {name}"
  VERBATIM)
add_custom_target(mlf_{target}_library DEPENDS "${{_mlf_library}}")
add_library(mlf_{target} STATIC IMPORTED GLOBAL)
add_library(mlf::{target} ALIAS mlf_{target})
set_target_properties(mlf_{target} PROPERTIES IMPORTED_LOCATION "${{_mlf_library}}")
add_dependencies(mlf_{target} mlf_{target}_library)
set_property(TARGET mlf_{module} APPEND PROPERTY MLF_DEVICE_TARGETS mlf_{target})
set_property(TARGET mlf_{module} APPEND PROPERTY MLF_DEVICE_LIBRARIES "${{_mlf_library}}")
{linked}"""
_LINKED = "target_link_libraries(mlf_{module} INTERFACE mlf_{target})\n"
_NOT_LINKED = """\
# Images of this build do not link it: $<TARGET_FILE:mlf::{target}> is its path for the device's own image.
add_dependencies(mlf_{module} mlf_{target}_library)
"""


def device_targets(devices: tuple[DevicePart, ...]) -> Iterator[str]:
    """Yield the part of a fragment that defines ``mlf::<module>.<device>`` for each of ``devices``."""
    for part in devices:
        yield _DEVICE.format(
            module=part.module,
            name=part.name,
            target=part.target,
            variable=part.variable,
            compilers=_compilers(part),
            flags="\n               ".join(map(quoted, part.flags)),
            missing=f"whose compiler {part.tools.compiler} is missing" if part.tools.compiler else "without a compiler",
            includes="".join(f' "-I${{CMAKE_CURRENT_LIST_DIR}}/{folder}"' for folder in part.include_dirs),
            sources="\n".join(f'  "{path}"' for path in part.sources),
            objects=f"list(APPEND _mlf_objects\n{lines(map(here, part.objects))})\n" if part.objects else "",
            linked=(_LINKED if part.tools.linked else _NOT_LINKED).format(module=part.module, target=part.target),
        )


def _compilers(part: DevicePart) -> str:
    """Return the names of the compiler: a path in a cache or environment variable, or its usual name."""
    variable = part.tools.variable
    chosen = [f"${{{variable}}} $ENV{{{variable}}}"] if variable else []
    return " ".join((*chosen, *filter(None, [quoted(part.tools.compiler) if part.tools.compiler else ""])))
