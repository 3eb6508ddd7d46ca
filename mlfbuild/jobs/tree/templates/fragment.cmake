{% include "head.cmake" %}
{% include "languages.cmake" %}
{% if modules | selectattr("blobs") | first is defined %}

# How graphs and parameters get into the image: "incbin" or "array". Set MLF_BLOBS to decide it yourself.
if(DEFINED MLF_BLOBS)
  set(_mlf_blobs "${MLF_BLOBS}")
elseif("ASM" IN_LIST _mlf_languages
       AND CMAKE_ASM_COMPILER_ID MATCHES "GNU|Clang"
       AND CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF")
  set(_mlf_blobs incbin)
else()
  set(_mlf_blobs array)
endif()
if(NOT _mlf_blobs MATCHES "^(incbin|array)$")
  message(FATAL_ERROR "MLF_BLOBS is \"${MLF_BLOBS}\"; it must be incbin or array")
endif()
{% endif %}
{% for part in modules %}
{% set target = "mlf_" ~ part.name %}
{% set scope = "PUBLIC" if part.files else "INTERFACE" %}

# ---- Module {{ part.name }} ----

if(TARGET mlf_{{ part.name }})
  message(FATAL_ERROR "${CMAKE_CURRENT_LIST_FILE}: another archive already defines the module {{ part.name }}; "
                      "rename one of the modules with mlfbuild convert")
endif()
{% if part.files %}
add_library(
  {{ target }} STATIC EXCLUDE_FROM_ALL
{% for path in part.files %}
  {{ path | here }}
{% endfor %}
)
{% else %}
add_library({{ target }} INTERFACE)
{% endif %}
add_library(mlf::{{ part.name }} ALIAS {{ target }})
{% for folder in part.include_dirs %}
target_include_directories({{ target }} {{ scope }} {{ folder | here_in_build }})
{% endfor %}
{% for folder in part.private_include_dirs %}
target_include_directories({{ target }} PRIVATE {{ folder | here }})
{% endfor %}
{% if part.options %}
# Its own optimisation level, also in Debug builds (optimize in the project file). Without link-time optimisation, the
# linker map shows its bytes, so that budgets can be checked. Warnings of C that mlfbuild did not write are off.
target_compile_options({{ target }} PRIVATE {% for language in (["C", "CXX"] if part.cxx else ["C"]) %}"$<$<COMPILE_LANG_AND_ID:{{ language }},GNU,Clang,AppleClang,ARMClang>:{{ part.options | join(";") }}>"{{ "" if loop.last else " " }}{% endfor %})
{% endif %}
{% if part.objects %}
set_source_files_properties(
{% for path in part.objects %}
  {{ path | here }}
{% endfor %}
  PROPERTIES EXTERNAL_OBJECT TRUE
)
set_target_properties({{ target }} PROPERTIES LINKER_LANGUAGE C)
{% endif %}
{% for need in part.needs %}

# {{ part.name }} needs {{ need.title }}
set(_mlf_needed "${CMAKE_CURRENT_LIST_DIR}/../dependencies/{{ need.name }}.cmake")
if(NOT EXISTS "${_mlf_needed}") # not in the target's folder, but possibly in the tree
  set(_mlf_needed "${CMAKE_CURRENT_LIST_DIR}/dependencies/{{ need.name }}.cmake")
endif()
include("${_mlf_needed}" OPTIONAL)
if(NOT TARGET mlf::dep::{{ need.name }})
  message(FATAL_ERROR "  ${CMAKE_CURRENT_LIST_FILE}: {{ part.name }} requires {{ need.title }}, which is missing: add {{ need.name }} to "
                      "dependencies in the project file, or define a target mlf::dep::{{ need.name }} before this include")
endif()
{% if part.files %}
get_target_property(_mlf_public mlf::dep::{{ need.name }} MLF_PUBLIC_HEADERS)
if(_mlf_public)
  target_link_libraries({{ target }} PUBLIC mlf::dep::{{ need.name }})
else()
  target_link_libraries({{ target }} PRIVATE mlf::dep::{{ need.name }})
endif()
target_include_directories(
  {{ target }} BEFORE PRIVATE "$<TARGET_PROPERTY:mlf::dep::{{ need.name }},INTERFACE_INCLUDE_DIRECTORIES>")
{% else %}
target_link_libraries({{ target }} INTERFACE mlf::dep::{{ need.name }})
{% endif %}
{% endfor %}
{% if part.libm %}
target_link_libraries({{ target }} {{ "PRIVATE" if part.files else "INTERFACE" }} "$<$<C_COMPILER_ID:GNU,Clang,AppleClang>:m>")
{% endif %}
{% if part.blobs %}

add_library({{ target }}_blobs STATIC EXCLUDE_FROM_ALL)
add_library(mlf::{{ part.name }}_blobs ALIAS {{ target }}_blobs)
target_include_directories({{ target }}_blobs PUBLIC {{ "blobs" | here_in_build }})
if(_mlf_blobs STREQUAL incbin)
  target_sources({{ target }}_blobs PRIVATE {{ part.blobs | map(attribute="assembler") | map("here") | join(" ") }})
  target_include_directories({{ target }}_blobs PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
{% for each in part.blobs %}
  set_property(
    SOURCE {{ each.assembler | here }}
    PROPERTY OBJECT_DEPENDS {{ each.reads | all_here }})
{% endfor %}
else()
  target_sources({{ target }}_blobs PRIVATE {{ part.blobs | map(attribute="array") | map("here") | join(" ") }})
endif()
target_link_libraries({{ target }} INTERFACE {{ target }}_blobs)
{% endif %}
{% for device in part.devices %}
{% include "device.cmake" %}
{% endfor %}
{% endfor %}
{% if alias %}

# ---- The project's name ----

{% if modules | length == 1 %}
add_library(mlf::{{ alias }} ALIAS mlf_{{ modules[0].name }})
{% if modules[0].blobs %}
add_library(mlf::{{ alias }}_blobs ALIAS mlf_{{ modules[0].name }}_blobs)
{% endif %}
{% else %}
add_library(mlf_{{ alias }} INTERFACE)
add_library(mlf::{{ alias }} ALIAS mlf_{{ alias }})
target_link_libraries(mlf_{{ alias }} INTERFACE {{ modules | map(attribute="name") | map("prefixed", "mlf::") | join(" ") }})
{% endif %}
{% endif %}
