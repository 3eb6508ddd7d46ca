# Cortex-A9 with Neon
set(CMAKE_SYSTEM_PROCESSOR cortex-a9)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-a9 -mthumb -mfloat-abi=hard -mfpu=neon)
set(MLFBUILD_ADVICE "set MLFBUILD_ARM_NONE_EABI_GCC to the path of GCC 10 or later, or use clang 14 or later")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
