# Cortex-M55 with MVE (Helium) for integers and floats
set(CMAKE_SYSTEM_PROCESSOR cortex-m55)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m55 -mthumb -mfloat-abi=hard)
set(MLFBUILD_ADVICE "set MLFBUILD_CLANG to the path of clang 14 or later, or use GCC 10 or later")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-clang.cmake")
