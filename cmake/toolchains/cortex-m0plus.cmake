# Cortex-M0+
set(CMAKE_SYSTEM_PROCESSOR cortex-m0plus)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m0plus -mthumb)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
