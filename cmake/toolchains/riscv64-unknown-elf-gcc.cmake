# Shared by the toolchain files in this folder: bare-metal RISC-V with GCC, which supports 32 and 64 bits.
#
# A file for one CPU sets CMAKE_SYSTEM_PROCESSOR, MLFBUILD_CPU_FLAGS and MLFBUILD_ADVICE (for users of another compiler)
# and includes this one. The C library is the compiler's own (newlib). If the compiler finds picolibc's specs
# file, as Debian's compiler does, which has no C library of its own, picolibc is used.
#
#   MLFBUILD_RISCV64_UNKNOWN_ELF_GCC  the compiler's name or path, as an environment or a cache variable

include("${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake")
mlfbuild_find_compiler(
  MLFBUILD_RISCV64_UNKNOWN_ELF_GCC "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf" riscv64-unknown-elf-gcc)
mlfbuild_check_compiler(MLFBUILD_RISCV64_UNKNOWN_ELF_GCC ${MLFBUILD_CPU_FLAGS})

string(REGEX REPLACE "gcc([^/]*)$" "g++\\1" _cxx "${MLFBUILD_RISCV64_UNKNOWN_ELF_GCC}")
set(CMAKE_C_COMPILER "${MLFBUILD_RISCV64_UNKNOWN_ELF_GCC}")
set(CMAKE_CXX_COMPILER "${_cxx}")
set(CMAKE_ASM_COMPILER "${MLFBUILD_RISCV64_UNKNOWN_ELF_GCC}")

# If GCC finds a file, it prints its path, otherwise only the name.
execute_process(
  COMMAND "${MLFBUILD_RISCV64_UNKNOWN_ELF_GCC}" -print-file-name=picolibc.specs
  OUTPUT_VARIABLE _specs
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(IS_ABSOLUTE "${_specs}")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:--specs=picolibc.specs>")
  add_link_options(--specs=picolibc.specs)
endif()

mlfbuild_finish_toolchain()
