# mlf::board: startup code, semihosting and linker script of one QEMU board.
#
#   set(MLF_BOARD mps2-an386)
#   include(board/board.cmake)
#   target_link_libraries(app PRIVATE mlf::board)
#
# Link it directly to the executable: a library in between would not pass its objects on.
# MLF_STACK_SIZE (bytes) sets the size of the stack.
#
# For a device instead of a board that QEMU emulates:
#   MLF_LINKER_SCRIPT  linker script with its memory regions, which includes mlf_board.ld; MLF_BOARD is not used then
#   MLF_HOST_LINK      what replaces semihosting: debugger, or serial (add mlf_serial.c and your two functions)

if(MLF_LINKER_SCRIPT)
  set(_mlf_script "${MLF_LINKER_SCRIPT}")
elseif(DEFINED MLF_BOARD AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/${MLF_BOARD}.ld")
  set(_mlf_script "${CMAKE_CURRENT_LIST_DIR}/${MLF_BOARD}.ld")
else()
  message(FATAL_ERROR "MLF_BOARD is \"${MLF_BOARD}\"; set it to a board that has a linker script "
                      "in ${CMAKE_CURRENT_LIST_DIR} before this file is included")
endif()

add_library(mlf_board OBJECT)
add_library(mlf::board ALIAS mlf_board)

foreach(source IN ITEMS console.c mlf_bench.c semihosting.c startup.c syscalls.c)
  target_sources(mlf_board PRIVATE "${CMAKE_CURRENT_LIST_DIR}/${source}")
endforeach()
target_include_directories(mlf_board INTERFACE "${CMAKE_CURRENT_LIST_DIR}")
if(MLF_HOST_LINK)
  target_compile_definitions(mlf_board PRIVATE MLF_HOST_LINK=1)
endif()

# newlib's small C library: headers and libraries must match, so both the compiler and the linker get the option. clang
# does not support GCC's specs files; mlfbuild's toolchain files for clang set the folders of the headers. If the toolchain
# file selects picolibc, that is the C library.
get_directory_property(_mlf_options COMPILE_OPTIONS)
set(_mlf_specs --specs=nano.specs)
if("${CMAKE_C_FLAGS} ${_mlf_options}" MATCHES "--specs=picolibc")
  set(_mlf_specs)
endif()
target_compile_options(
  mlf_board PUBLIC "$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<C_COMPILER_ID:Clang>>>:${_mlf_specs}>")
target_include_directories(mlf_board SYSTEM PUBLIC ${MLFBUILD_NANO_INCLUDE_DIRS})
target_link_directories(mlf_board INTERFACE "${CMAKE_CURRENT_LIST_DIR}") # the folder of mlf_board.ld
target_link_options(
  mlf_board
  INTERFACE
  ${_mlf_specs}
  -nostartfiles
  "-T${_mlf_script}"
  -Wl,--gc-sections
  "$<$<BOOL:${MLF_STACK_SIZE}>:-Wl,--defsym=MLF_STACK_SIZE=${MLF_STACK_SIZE}>"
  "$<$<BOOL:${MLF_HOST_LINK}>:-Wl,--defsym=MLF_STACK_GUARD=256>")
set_property(
  TARGET mlf_board
  PROPERTY INTERFACE_LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/mlf_board.ld" "${_mlf_script}")
