# Shared by the toolchain files in this folder: settings of all bare-metal targets. The file for one compiler includes
# this one first and calls mlfbuild_finish_toolchain() last. Messages are indented, because CMake would wrap them
# otherwise.
#
#   MLFBUILD_SOURCE_ROOT  the folder that debug information calls /src, so that builds of the same sources in different
#                         places are identical; by default the project's folder. The build folder is called /build. In
#                         GDB: set substitute-path /src <folder>

set(CMAKE_SYSTEM_NAME Generic)
# This machine cannot run the programs, and without a linker script they cannot be linked either.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_EXECUTABLE_SUFFIX_C .elf)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .elf)
# GNU's ar and LLVM's write the index of an archive themselves; ranlib would write it again.
foreach(language IN ITEMS ASM C CXX)
  set(CMAKE_${language}_ARCHIVE_FINISH "")
endforeach()

# Search libraries and headers only in the target's folders, and programs only on this machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# Optimised and with debug information, which costs nothing on the device, unless the project sets another build type.
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo (default) or MinSizeRel")

# Set the cache variable VARIABLE to the path of the first program that exists: the one that the environment variable of
# the same name contains, or else one of NAME and the names in ARGN. PACKAGES are Debian's.
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

# Stop if the compiler in VARIABLE does not support the flags in ARGN. CMake's own compiler check would not name the
# CPU. CMake reads a toolchain file four times for each configuration; the first time is enough.
function(mlfbuild_check_compiler VARIABLE)
  get_property(checking GLOBAL PROPERTY IN_TRY_COMPILE)
  get_property(checked GLOBAL PROPERTY MLFBUILD_COMPILER_CHECKED)
  if(checking OR checked STREQUAL "${${VARIABLE}}")
    return()
  endif()
  execute_process(
    COMMAND "${${VARIABLE}}" ${ARGN} -fsyntax-only "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/empty.c"
    RESULT_VARIABLE failed
    OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "  ${CMAKE_SYSTEM_PROCESSOR}: ${${VARIABLE}} cannot compile for it; ${MLFBUILD_ADVICE}")
  endif()
  set_property(GLOBAL PROPERTY MLFBUILD_COMPILER_CHECKED "${${VARIABLE}}")
endfunction()

# These are options of the directory, not CMAKE_<LANG>_FLAGS_INIT: CMake uses the latter only once and caches the
# result, so that an edit of a toolchain file would have no effect, and -DCMAKE_C_FLAGS=... would replace them.
macro(mlfbuild_finish_toolchain)
  if(NOT MLFBUILD_SOURCE_ROOT)
    set(MLFBUILD_SOURCE_ROOT "${CMAKE_SOURCE_DIR}")
  endif()
  add_compile_options(
    ${MLFBUILD_CPU_FLAGS}
    -ffunction-sections
    -fdata-sections
    # If two maps match, the last one is used: the build folder is often inside the sources.
    "-ffile-prefix-map=${MLFBUILD_SOURCE_ROOT}=/src"
    "-ffile-prefix-map=${CMAKE_BINARY_DIR}=/build")
  if(MLFBUILD_LINK_FLAGS)
    add_link_options(${MLFBUILD_LINK_FLAGS})
  else()
    add_link_options(${MLFBUILD_CPU_FLAGS})
  endif()
  # Write <image>.map beside each image; `mlfbuild report` reads the origin of each byte from it. GNU ld 2.35 and later.
  add_link_options(LINKER:-Map=%.map)
endmacro()
