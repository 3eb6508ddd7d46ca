#!/bin/sh
# Machine A, with the model and mlfbuild: sh a.sh PROJECT OUT
# Writes OUT/firmware.tar for machine B, OUT/digits.mlfbundle for machine C, and OUT/a.sha256 for both.
set -eu
mkdir -p "$2/firmware"
out=$(cd "$2" && pwd)
cd "$1"

mlfbuild build -q --tree "$out/firmware/mlf" --target nucleo
mlfbuild bundle --target nucleo -o "$out/digits.mlfbundle"
cp -R nucleo-f446re src "$(mlfbuild cmake-dir)/toolchains" "$out/firmware"

cd "$out/firmware"
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
cd "$out"
tar --sort=name --mtime=@315532800 --owner=0 --group=0 --numeric-owner -cf firmware.tar firmware
sha256sum firmware.tar digits.mlfbundle | tee a.sha256
