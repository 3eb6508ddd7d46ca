#!/bin/sh
# All stages of ../boards in three folders of OUT that stand for three machines; QEMU is the device: sh run.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/a" "$1/b" "$1/c"
cd "$1"
echo "A: compile and export"
sh "$here/a.sh" "$here/../boards" a
cp a/firmware.tar a/a.sha256 b
echo "B: unpack and build"
sh "$here/b.sh" b
cp a/digits.mlfbundle a/a.sha256 b/nucleo.elf b/b.sha256 c
echo "C: flash and verify"
sh "$here/c.sh" c --runner gdb=localhost:3333 \
    --runner 'start=[qemu-system-arm, -M, netduinoplus2, -S, -gdb, "tcp:127.0.0.1:3333", -display, none]'
