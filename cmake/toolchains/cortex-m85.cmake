# Cortex-M85 with MVE (Helium) for integers and floats
set(CMAKE_SYSTEM_PROCESSOR cortex-m85)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m85 -mthumb -mfloat-abi=hard)
set(MLFBUILD_ADVICE "set MLFBUILD_ARM_NONE_EABI_GCC to the path of GCC 13 or later, or use clang 15 or later (Debian 12: apt-get install clang-19)")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
