# add_firmware(NAME SCRIPT DEFINITION...): an executable of this example's sources, with board.c and the linker script
# SCRIPT in the folder of the CMakeLists.txt that calls it.
function(add_firmware NAME SCRIPT)
  set(_src ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(_script ${CMAKE_CURRENT_SOURCE_DIR}/${SCRIPT})
  add_executable(${NAME} ${_src}/main.c ${_src}/samples.c ${_src}/start.c board.c)
  target_include_directories(${NAME} PRIVATE ${_src})
  target_compile_definitions(${NAME} PRIVATE ${ARGN})
  target_compile_options(${NAME} PRIVATE -Wall -Wextra -Wshadow -Wconversion --specs=nano.specs)
  target_link_libraries(${NAME} PRIVATE mlf::digits)
  target_link_directories(${NAME} PRIVATE ${_src})
  target_link_options(${NAME} PRIVATE --specs=nano.specs -nostartfiles -T${_script} -Wl,--gc-sections)
  set_property(TARGET ${NAME} PROPERTY LINK_DEPENDS ${_src}/cortex-m.ld ${_script})
endfunction()
