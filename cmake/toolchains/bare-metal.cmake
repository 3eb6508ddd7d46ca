# Shared by the toolchain files beside it: what all bare-metal targets have in common. The file for one compiler
# includes this one first and calls mlfbuild_finish_toolchain() last. Messages are indented, or CMake would wrap them.
#
#   MLFBUILD_SOURCE_ROOT  the folder that is called /src in debug information, so that builds of the same sources in two
#                         places are identical; the project's folder unless it is set. The build folder is called
#                         /build. In GDB: set substitute-path /src <folder>

set(CMAKE_SYSTEM_NAME Generic)
# There is nothing to run on this machine, and without a linker script nothing to link either.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_EXECUTABLE_SUFFIX_C .elf)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .elf)

# Look for libraries and headers in the target's folders only, for programs on this machine only.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# Optimised and with debug information, which costs nothing on the device, unless the project asks for something else.
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo (default) or MinSizeRel")

# Set the cache variable VARIABLE to the path of the first program that there is: of what the environment variable of
# the same name says, or else of NAME and the further names. PACKAGES are Debian's.
macro(mlfbuild_find_compiler VARIABLE PACKAGES NAME)
  if(NOT ${VARIABLE})
    set(_names "$ENV{${VARIABLE}}")
    if(NOT _names)
      set(_names ${NAME} ${ARGN})
    endif()
    find_program(${VARIABLE} NAMES ${_names} DOC "A C compiler for bare metal")
    if(NOT ${VARIABLE})
      list(GET _names 0 _name)
      message(FATAL_ERROR "  ${_name}: program not found; install it (Debian: apt-get install ${PACKAGES}) "
                          "or set ${VARIABLE} to its path")
    endif()
  endif()
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${VARIABLE})
endmacro()

# Stop where the compiler in VARIABLE does not know the flags that follow: better here, by name, than in a compiler check.
function(mlfbuild_check_compiler VARIABLE)
  execute_process(
    COMMAND "${${VARIABLE}}" ${ARGN} -fsyntax-only "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/empty.c"
    RESULT_VARIABLE failed
    OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "  ${CMAKE_SYSTEM_PROCESSOR}: ${${VARIABLE}} cannot compile for it; ${MLFBUILD_ADVICE}")
  endif()
endfunction()

# As options of the directory, not as CMAKE_<LANG>_FLAGS_INIT: CMake uses those once and caches the result, so an edit
# of a toolchain file would change nothing, and -DCMAKE_C_FLAGS=... would take their place.
macro(mlfbuild_finish_toolchain)
  if(NOT MLFBUILD_SOURCE_ROOT)
    set(MLFBUILD_SOURCE_ROOT "${CMAKE_SOURCE_DIR}")
  endif()
  add_compile_options(
    ${MLFBUILD_CPU_FLAGS}
    -ffunction-sections
    -fdata-sections
    # Of two maps that fit the last one is used: the build folder is often inside the sources.
    "-ffile-prefix-map=${MLFBUILD_SOURCE_ROOT}=/src"
    "-ffile-prefix-map=${CMAKE_BINARY_DIR}=/build")
  if(MLFBUILD_LINK_FLAGS)
    add_link_options(${MLFBUILD_LINK_FLAGS})
  else()
    add_link_options(${MLFBUILD_CPU_FLAGS})
  endif()
  # <image>.map beside each image, from which `mlfbuild report` reads whose each byte is; GNU ld 2.35 and later.
  add_link_options(LINKER:-Map=%.map)
endmacro()
