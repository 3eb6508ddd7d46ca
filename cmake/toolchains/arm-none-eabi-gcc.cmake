# Shared by the toolchain files in this folder: bare-metal Arm with GCC.
#
# A file for one CPU sets CMAKE_SYSTEM_PROCESSOR, MLFBUILD_CPU_FLAGS and MLFBUILD_ADVICE (for users of another compiler)
# and includes this one.
#
#   MLFBUILD_ARM_NONE_EABI_GCC  the compiler's name or path, as an environment or a cache variable

include("${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake")
mlfbuild_find_compiler(MLFBUILD_ARM_NONE_EABI_GCC "gcc-arm-none-eabi libnewlib-arm-none-eabi" arm-none-eabi-gcc)
mlfbuild_check_compiler(MLFBUILD_ARM_NONE_EABI_GCC ${MLFBUILD_CPU_FLAGS})

string(REGEX REPLACE "gcc([^/]*)$" "g++\\1" _cxx "${MLFBUILD_ARM_NONE_EABI_GCC}")
set(CMAKE_C_COMPILER "${MLFBUILD_ARM_NONE_EABI_GCC}")
set(CMAKE_CXX_COMPILER "${_cxx}")
set(CMAKE_ASM_COMPILER "${MLFBUILD_ARM_NONE_EABI_GCC}")

mlfbuild_finish_toolchain()
