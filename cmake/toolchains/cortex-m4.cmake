# Cortex-M4 with its single-precision FPU
set(CMAKE_SYSTEM_PROCESSOR cortex-m4)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
