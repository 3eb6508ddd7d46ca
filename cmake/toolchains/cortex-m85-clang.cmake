# Cortex-M85 with MVE (Helium) for integers and floats
set(CMAKE_SYSTEM_PROCESSOR cortex-m85)
set(MLFBUILD_CPU_FLAGS -mcpu=cortex-m85 -mthumb -mfloat-abi=hard)
set(MLFBUILD_LINK_FLAGS -mcpu=cortex-m55 -mthumb -mfloat-abi=hard)
set(MLFBUILD_ADVICE "set MLFBUILD_CLANG to the path of clang 15 or later (Debian 12: apt-get install clang-19), or use GCC 13 or later")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-clang.cmake")
