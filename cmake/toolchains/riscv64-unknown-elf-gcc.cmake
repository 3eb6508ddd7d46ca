# Shared by the toolchain files beside it: bare-metal RISC-V with GCC, which compiles for 32 bits as well as for 64.
#
# A file for one CPU sets CMAKE_SYSTEM_PROCESSOR, MLFBUILD_CPU_FLAGS and MLFBUILD_ADVICE (for who has another compiler)
# and includes this one. The C library is the compiler's own (newlib), or picolibc where the compiler comes without one
# and finds picolibc's specs file, as Debian's does.
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

# GCC prints the path of a file that it finds, and the bare name of one that it does not.
execute_process(
  COMMAND "${MLFBUILD_RISCV64_UNKNOWN_ELF_GCC}" -print-file-name=picolibc.specs
  OUTPUT_VARIABLE _specs
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(IS_ABSOLUTE "${_specs}")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:--specs=picolibc.specs>")
  add_link_options(--specs=picolibc.specs)
endif()

mlfbuild_finish_toolchain()
