# Shared by the toolchain files in this folder: bare-metal Arm with clang, together with an arm-none-eabi-gcc.
#
# clang compiles. Headers and libraries are GCC's (newlib, libgcc, libstdc++), and GCC's driver links, because it
# selects the libraries that fit the CPU, and supports newlib's --specs=...
#
# A file for one CPU sets CMAKE_SYSTEM_PROCESSOR, MLFBUILD_CPU_FLAGS and MLFBUILD_ADVICE (for users of another
# compiler), and MLFBUILD_LINK_FLAGS for a CPU that GCC may not support; then it includes this one.
#
#   MLFBUILD_CLANG              the compiler's name or path, as an environment or a cache variable
#   MLFBUILD_ARM_NONE_EABI_GCC  the same for GCC
#
# Sets MLFBUILD_NANO_INCLUDE_DIRS, the headers that belong to --specs=nano.specs.

include("${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake")
mlfbuild_find_compiler(MLFBUILD_ARM_NONE_EABI_GCC "gcc-arm-none-eabi libnewlib-arm-none-eabi" arm-none-eabi-gcc)
mlfbuild_find_compiler(
  MLFBUILD_CLANG clang clang clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
mlfbuild_check_compiler(MLFBUILD_CLANG --target=arm-none-eabi ${MLFBUILD_CPU_FLAGS})

string(REGEX REPLACE "clang([^/]*)$" "clang++\\1" _cxx "${MLFBUILD_CLANG}")
foreach(_language IN ITEMS C CXX ASM)
  set(CMAKE_${_language}_COMPILER "${MLFBUILD_CLANG}")
  set(CMAKE_${_language}_COMPILER_TARGET arm-none-eabi)
endforeach()
set(CMAKE_CXX_COMPILER "${_cxx}")

# ---- Headers ----

if(NOT MLFBUILD_LINK_FLAGS)
  set(MLFBUILD_LINK_FLAGS ${MLFBUILD_CPU_FLAGS})
endif()

# Set VARIABLE to the folders that GCC searches for headers with the options in ARGN, without the compiler's own.
function(_mlfbuild_include_dirs VARIABLE)
  execute_process(
    COMMAND "${MLFBUILD_ARM_NONE_EABI_GCC}" ${MLFBUILD_LINK_FLAGS} ${ARGN} -v -E "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/empty.c"
    OUTPUT_QUIET
    ERROR_VARIABLE listing)
  string(REGEX REPLACE ".*#include <[^\n]*\n" "" listing "${listing}")
  string(REGEX REPLACE "\nEnd of search list.*" "" listing "${listing}")
  string(REGEX MATCHALL "[^ \n][^\n]*" listing "${listing}")
  set(found)
  foreach(folder IN LISTS listing)
    get_filename_component(folder "${folder}" ABSOLUTE)
    if(NOT folder MATCHES "/lib/gcc/.*/include(-fixed)?$")
      list(APPEND found "${folder}")
    endif()
  endforeach()
  set(${VARIABLE} "${found}" PARENT_SCOPE)
endfunction()

_mlfbuild_include_dirs(_c_dirs)
_mlfbuild_include_dirs(_cxx_dirs -x c++)
_mlfbuild_include_dirs(MLFBUILD_NANO_INCLUDE_DIRS --specs=nano.specs)
list(REMOVE_ITEM MLFBUILD_NANO_INCLUDE_DIRS ${_c_dirs})
# After all others, so that newlib-nano's headers, which are passed as system headers, come before newlib's.
foreach(_folder IN LISTS _c_dirs)
  add_compile_options("$<$<NOT:$<COMPILE_LANGUAGE:CXX>>:SHELL:-idirafter \"${_folder}\">")
endforeach()
foreach(_folder IN LISTS _cxx_dirs)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter \"${_folder}\">")
endforeach()

# ---- Link ----

# The flags of the project are for clang and are not passed to GCC.
string(REGEX REPLACE "gcc([^/]*)$" "g++\\1" _gxx "${MLFBUILD_ARM_NONE_EABI_GCC}")
set(_arguments "<CMAKE_@LANG@_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
foreach(_language IN ITEMS C CXX)
  string(REPLACE "@LANG@" ${_language} _words "${_arguments}")
  set(_linker "${MLFBUILD_ARM_NONE_EABI_GCC}")
  if(_language STREQUAL CXX)
    set(_linker "${_gxx}")
  endif()
  set(CMAKE_${_language}_LINK_EXECUTABLE "\"${_linker}\" ${_words}")
endforeach()

# clang's objects are marked as needing no executable stack; the linker warns of objects in GCC's libraries without a
# mark.
add_link_options(-Wl,-z,noexecstack)

# GCC's default for this ABI: an enum takes as few bytes as its values require.
add_compile_options(-fshort-enums)
mlfbuild_finish_toolchain()
