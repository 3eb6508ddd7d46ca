# RISC-V, 32 bits: integers, multiplication, compressed instructions
set(CMAKE_SYSTEM_PROCESSOR rv32imc)
set(MLFBUILD_CPU_FLAGS -march=rv32imc -mabi=ilp32)
set(MLFBUILD_ADVICE "set MLFBUILD_RISCV64_UNKNOWN_ELF_GCC to the path of GCC 10 or later")
include("${CMAKE_CURRENT_LIST_DIR}/riscv64-unknown-elf-gcc.cmake")
