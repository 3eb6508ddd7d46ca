"""Archives of ``net`` (see ``aot_archives``) whose kernel calls code for another device, in ``codegen/accel``."""

from collections.abc import Mapping

from mlfbuild.archive import tar
from support.aot_archives import aot_files

COMMANDS = bytes(range(251)) + b"end"
"""A command stream with a length that is no multiple of its alignment."""
_SCALE = """\
#include "accel.h"
#ifndef ACCEL
#error "compiled without the flags of the device"
#endif
#ifdef HOST_ONLY
#error "compiled with the flags of the host"
#endif

int accel_flavour(void) { return ACCEL; }
void tvmgen_net_accel_scale(float *values, int count)
{
    for (int i = 0; i < count; i++) {
        values[i] = values[i] * FACTOR;
    }
}
"""
DEVICE_FILES: Mapping[str, bytes] = {
    "codegen/accel/include/accel.h": b"#define FACTOR 2.0f\n",
    "codegen/accel/src/net_lib0.c": _SCALE.encode(),
    "codegen/accel/lib/net_commands.bin": COMMANDS,
}
CALL = "extern void tvmgen_net_accel_scale(float *, int); tvmgen_net_accel_scale(sum, 4);"
"""The statement of the host's kernel that calls the device's code: the result is y = 2 (a + w) b."""


def device_files(files: Mapping[str, bytes] = DEVICE_FILES, statement: str = CALL) -> dict[str, bytes]:
    """Return the files of the archive of ``net`` with ``files`` and a kernel with ``statement``."""
    return {**aot_files(statement=statement), **files}


def device_archive(files: Mapping[str, bytes] = DEVICE_FILES, statement: str = CALL) -> bytes:
    """Return the archive of ``device_files``."""
    return b"".join(tar.pack(device_files(files, statement), 0))
