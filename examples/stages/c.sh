#!/bin/sh
# Machine C, with the device and mlfbuild, but without project, archive or tree: sh c.sh FOLDER [OPTION...]
# FOLDER has digits.mlfbundle and a.sha256 of machine A, and nucleo.elf and b.sha256 of machine B.
# OPTION is how the device is reached: --runner gdb=localhost:3333
set -eu
cd "$1"
shift
grep ' digits.mlfbundle$' a.sha256 | sha256sum -c
sha256sum -c b.sha256
mlfbuild flash -q --bundle digits.mlfbundle --elf nucleo.elf "$@"
mlfbuild verify --bundle digits.mlfbundle --in nucleo.elf "$@"
