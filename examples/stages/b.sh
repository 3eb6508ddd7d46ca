#!/bin/sh
# Machine B, with CMake, Ninja and a cross compiler, but without Python: sh b.sh FOLDER
# FOLDER has firmware.tar and a.sha256 of machine A. Writes nucleo.elf and b.sha256 for machine C.
set -eu
cd "$1"
grep ' firmware.tar$' a.sha256 | sha256sum -c
[ -d firmware ] || tar -xf firmware.tar
(cd firmware && sha256sum --quiet -c SHA256SUMS)

here=$(pwd)
{
    cmake -S firmware/nucleo-f446re -B build -G Ninja "-DMLF_TREE=$here/firmware/mlf" \
        "-DCMAKE_TOOLCHAIN_FILE=$here/firmware/toolchains/cortex-m4.cmake" -DCMAKE_BUILD_TYPE=MinSizeRel
    cmake --build build
} >build.log 2>&1 || { cat build.log >&2 && exit 1; }
cp build/nucleo.elf .
sha256sum nucleo.elf | tee b.sha256
grep -aoE 'mlf:[A-Za-z0-9_]+:[0-9a-f]{64}' nucleo.elf # the models in the image, by the hashes of their files
