
# ---- Device {{ device.name }}: code of module {{ device.module }} for another compiler ----

# The compiler and the options of the device; those of this build are never used.
set(_mlf_names {% if device.tools.variable %}${{ "{" ~ device.tools.variable ~ "}" }} $ENV{{ "{" ~ device.tools.variable ~ "}" }}{{ " " if device.tools.compiler else "" }}{% endif %}{% if device.tools.compiler %}{{ device.tools.compiler | cmake_quoted }}{% endif %})
set(_mlf_flags {{ device.flags | map("cmake_quoted") | join("\n               ") }})
if({{ device.variable }}_COMPILER)
  set(_mlf_names "${{ "{" ~ device.variable }}_COMPILER}")
endif()
if(DEFINED {{ device.variable }}_FLAGS)
  set(_mlf_flags ${{ "{" ~ device.variable }}_FLAGS})
endif()
unset(_mlf_compiler)
if(_mlf_names)
  find_program(_mlf_compiler NAMES ${_mlf_names} NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
endif()
if(NOT _mlf_compiler)
  message(FATAL_ERROR "  ${CMAKE_CURRENT_LIST_FILE}: codegen/{{ device.name }} is code for the device {{ device.name }}, {{ "whose compiler " ~ device.tools.compiler ~ " is missing" if device.tools.compiler else "without a compiler" }}: "
                      "set {{ device.variable }}_COMPILER, and its options in {{ device.variable }}_FLAGS")
endif()
execute_process(
  COMMAND "${_mlf_compiler}" -print-prog-name=ar
  OUTPUT_VARIABLE _mlf_ar
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT _mlf_ar)
  set(_mlf_ar "${CMAKE_AR}")
endif()

set(_mlf_folder "${CMAKE_CURRENT_BINARY_DIR}/mlf_{{ device.target }}.dir")
set(_mlf_library "${CMAKE_CURRENT_BINARY_DIR}/libmlf_{{ device.target }}.a")
set(_mlf_map "-ffile-prefix-map=${CMAKE_CURRENT_LIST_DIR}=/{{ device.module }}") # the same objects in every folder
file(WRITE "${_mlf_folder}/empty.c" "")
execute_process(
  COMMAND "${_mlf_compiler}" ${_mlf_map} -fsyntax-only "${_mlf_folder}/empty.c"
  RESULT_VARIABLE _mlf_status
  OUTPUT_QUIET ERROR_QUIET)
if(_mlf_status) # an old compiler
  set(_mlf_map)
endif()
set(_mlf_command "${_mlf_compiler}" ${_mlf_flags} ${_mlf_map}{% for folder in device.include_dirs %} "-I${CMAKE_CURRENT_LIST_DIR}/{{ folder }}"{% endfor %})
file(CONFIGURE OUTPUT "${_mlf_folder}/command" CONTENT "${_mlf_command}\n" @ONLY)
set(_mlf_objects)
foreach(
  _mlf_source IN ITEMS
  {{ device.sources | map("in_quotes") | join("\n  ") }})
  string(REPLACE "/" "-" _mlf_object "${_mlf_source}")
  set(_mlf_object "${_mlf_folder}/${_mlf_object}.o")
  add_custom_command(
    OUTPUT "${_mlf_object}"
    COMMAND ${_mlf_command} -MD -MQ "${_mlf_object}" -MF "${_mlf_object}.d" -o "${_mlf_object}" -c
            "${CMAKE_CURRENT_LIST_DIR}/${_mlf_source}"
    DEPENDS "${CMAKE_CURRENT_LIST_DIR}/${_mlf_source}" "${_mlf_folder}/command"
    DEPFILE "${_mlf_object}.d"
    COMMENT "Building ${_mlf_source} for {{ device.name }}"
    VERBATIM)
  list(APPEND _mlf_objects "${_mlf_object}")
endforeach()
{% if device.objects %}
list(APPEND _mlf_objects
{% for path in device.objects %}
  {{ path | here }}
{% endfor %}
)
{% endif %}
add_custom_command(
  OUTPUT "${_mlf_library}"
  COMMAND "${CMAKE_COMMAND}" -E rm -f "${_mlf_library}"
  COMMAND "${_mlf_ar}" rcs "${_mlf_library}" ${_mlf_objects}
  DEPENDS ${_mlf_objects}
  COMMENT "Linking libmlf_{{ device.target }}.a for {{ device.name }}"
  VERBATIM)
add_custom_target(mlf_{{ device.target }}_library DEPENDS "${_mlf_library}")
add_library(mlf_{{ device.target }} STATIC IMPORTED GLOBAL)
add_library(mlf::{{ device.target }} ALIAS mlf_{{ device.target }})
set_target_properties(mlf_{{ device.target }} PROPERTIES IMPORTED_LOCATION "${_mlf_library}")
add_dependencies(mlf_{{ device.target }} mlf_{{ device.target }}_library)
set_property(TARGET mlf_{{ device.module }} APPEND PROPERTY MLF_DEVICE_TARGETS mlf_{{ device.target }})
set_property(TARGET mlf_{{ device.module }} APPEND PROPERTY MLF_DEVICE_LIBRARIES "${_mlf_library}")
{% if device.tools.linked %}
target_link_libraries(mlf_{{ device.module }} INTERFACE mlf_{{ device.target }})
{% else %}
# Images of this build do not link it: $<TARGET_FILE:mlf::{{ device.target }}> is its path for the device's own image.
add_dependencies(mlf_{{ device.module }} mlf_{{ device.target }}_library)
{% endif %}
