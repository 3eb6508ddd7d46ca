# mlf::placement: places sections of models in memory regions of the firmware's linker script.
#
#   target_link_libraries(app PRIVATE mlf::kws mlf::placement)
#
# GNU ld must read mlf_placement.ld after that script, which defines the regions. Therefore it is listed among the
# libraries, which come after all options of the link line.

add_library(mlf_placement INTERFACE)
add_library(mlf::placement ALIAS mlf_placement)
target_link_directories(mlf_placement INTERFACE "${CMAKE_CURRENT_LIST_DIR}")
target_link_libraries(mlf_placement INTERFACE -Tmlf_placement.ld)
set_property(TARGET mlf_placement PROPERTY INTERFACE_LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/mlf_placement.ld")

include("${CMAKE_CURRENT_LIST_DIR}/params_binary.cmake")
