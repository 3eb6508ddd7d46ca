# Shared by the toolchain files beside it: bare-metal Arm with GCC.
#
# A file for one CPU sets CMAKE_SYSTEM_PROCESSOR and MLFBUILD_CPU_FLAGS and includes this one.
#
#   MLFBUILD_ARM_NONE_EABI_GCC  the compiler's name or path, as an environment or a cache variable
#   MLFBUILD_SOURCE_ROOT        the folder that is called /src in debug information, so that builds of the same sources
#                               in two places are identical; the project's folder unless it is set. The build folder
#                               is called /build. In GDB: set substitute-path /src <folder>

set(CMAKE_SYSTEM_NAME Generic)
# There is nothing to run on this machine, and without a linker script nothing to link either.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_EXECUTABLE_SUFFIX_C .elf)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .elf)

# ---- Compiler ----

if(NOT MLFBUILD_ARM_NONE_EABI_GCC)
  set(_name "$ENV{MLFBUILD_ARM_NONE_EABI_GCC}")
  if(NOT _name)
    set(_name arm-none-eabi-gcc)
  endif()
  find_program(MLFBUILD_ARM_NONE_EABI_GCC "${_name}" DOC "The C compiler for bare-metal Arm")
  if(NOT MLFBUILD_ARM_NONE_EABI_GCC)
    message(FATAL_ERROR "${_name}: program not found; install it (Debian: apt-get install gcc-arm-none-eabi "
                        "libnewlib-arm-none-eabi) or set MLFBUILD_ARM_NONE_EABI_GCC to its path")
  endif()
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MLFBUILD_ARM_NONE_EABI_GCC)
string(REGEX REPLACE "gcc([^/]*)$" "g++\\1" _cxx "${MLFBUILD_ARM_NONE_EABI_GCC}")
set(CMAKE_C_COMPILER "${MLFBUILD_ARM_NONE_EABI_GCC}")
set(CMAKE_CXX_COMPILER "${_cxx}")
set(CMAKE_ASM_COMPILER "${MLFBUILD_ARM_NONE_EABI_GCC}")

# Look for libraries and headers in the target's folders only, for programs on this machine only.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# ---- Flags ----

if(NOT MLFBUILD_SOURCE_ROOT)
  set(MLFBUILD_SOURCE_ROOT "${CMAKE_SOURCE_DIR}")
endif()

# As options of the directory, not as CMAKE_<LANG>_FLAGS_INIT: CMake uses those once and caches the result, so an edit
# here would change nothing, and -DCMAKE_C_FLAGS=... would take their place.
add_compile_options(
  ${MLFBUILD_CPU_FLAGS}
  -ffunction-sections
  -fdata-sections
  # Of two maps that fit the last one is used: the build folder is often inside the sources.
  "-ffile-prefix-map=${MLFBUILD_SOURCE_ROOT}=/src"
  "-ffile-prefix-map=${CMAKE_BINARY_DIR}=/build")
add_link_options(${MLFBUILD_CPU_FLAGS})

# Optimised and with debug information, which costs nothing on the device, unless the project asks for something else.
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo (default) or MinSizeRel")
