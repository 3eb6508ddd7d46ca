# Cortex-M33 with DSP instructions, without an FPU
set(CMAKE_SYSTEM_PROCESSOR cortex-m33+nofp)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m33+nofp -mthumb -mfloat-abi=soft)
set(MLFBUILD_ADVICE "set MLFBUILD_ARM_NONE_EABI_GCC to the path of GCC 10 or later, or use clang 14 or later")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
