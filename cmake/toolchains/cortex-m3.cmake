# Cortex-M3
set(CMAKE_SYSTEM_PROCESSOR cortex-m3)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m3 -mthumb)
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")
