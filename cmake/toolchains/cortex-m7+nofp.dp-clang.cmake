# Cortex-M7 with the single-precision FPU
set(CMAKE_SYSTEM_PROCESSOR cortex-m7+nofp.dp)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m7+nofp.dp -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16)
set(MLFBUILD_ADVICE "set MLFBUILD_CLANG to the path of clang 14 or later, or use GCC 10 or later")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-clang.cmake")
