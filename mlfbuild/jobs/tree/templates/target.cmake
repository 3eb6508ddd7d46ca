{% include "head.cmake" %}

# Models for {{ cpu }}; mlf::<model> is one of them.
{% for model in models %}
include({{ (model ~ "/mlf.cmake") | here }})
{% endfor %}

add_library(mlf_models INTERFACE)
add_library(mlf::models ALIAS mlf_models)
{% for model in models %}
target_link_libraries(mlf_models INTERFACE mlf::{{ model }})
{% endfor %}
{% if board %}

set(MLF_BOARD {{ board }})
include({{ "board/board.cmake" | here }})
{% endif %}
{% if placed %}

include({{ "placement/placement.cmake" | here }})
{% endif %}
{% if budgeted %}

# This file cannot check a link: that needs mlfbuild. mlfbuild_tree() of mlfbuild's CMake package does.
if(NOT MLFBUILD_CHECKS_LINKS)
  message(STATUS "mlfbuild: this build does not check budgets; check each image with: mlfbuild report --elf <image> "
                 "--fail-over-budget --budgets ${CMAKE_CURRENT_LIST_DIR}/budgets.json")
endif()
{% endif %}
