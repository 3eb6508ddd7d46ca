# Cortex-A9 with Neon
set(CMAKE_SYSTEM_PROCESSOR cortex-a9)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-a9 -mthumb -mfloat-abi=hard -mfpu=neon)
set(MLFBUILD_ADVICE "set MLFBUILD_CLANG to the path of clang 14 or later, or use GCC 10 or later")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-clang.cmake")
