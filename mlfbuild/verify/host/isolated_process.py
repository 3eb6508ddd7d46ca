"""Run a shared object for ``isolated.Child``: read requests from stdin, write answers to stdout.

It imports only the standard library and runs in Python's isolated mode, so that it starts quickly and does not depend
on the environment. Output of the model's code goes to stderr.
"""

from __future__ import annotations

import ctypes
import os
import sys
from itertools import chain


def main(path: str) -> None:
    """Answer requests until stdin ends.

    First come three lines with the sizes in bytes of the inputs, outputs and traced tensors, which follow as raw bytes.
    The answer to ``r`` and the inputs is the status and the outputs, that to ``t`` and the inputs the
    status, the outputs and the traced tensors, that to ``z`` the status of the reset.
    """
    # printf in the code of the model would otherwise end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    code = ctypes.CDLL(path)
    requests = sys.stdin.buffer
    # Sizes are fixed for the life of the process, so that requests contain no lengths.
    inputs, outputs, traced = ([int(size) for size in requests.readline().split()] for _ in range(3))
    while kind := requests.read(1):
        if kind in b"rt":
            values = [_buffer(requests.read(size)) for size in inputs]
            wanted = [outputs, traced] if kind == b"t" else [outputs]
            function = code.mlf_host_trace if kind == b"t" else code.mlf_host_run
            results = [[_buffer(bytes(size)) for size in sizes] for sizes in wanted]
            status = function(_pointers(values), *map(_pointers, results))
            answers.write(status.to_bytes(4, "little", signed=True))
            for size, result in zip(chain(*wanted), chain(*results), strict=True):
                answers.write(ctypes.string_at(_aligned(result), size))
        else:
            answers.write(code.mlf_host_reset().to_bytes(4, "little", signed=True))
        answers.flush()


# Bytes, as in verify_memory.h.
_ALIGNMENT = 64


def _buffer(data: bytes) -> ctypes.Array[ctypes.c_char]:
    """Return memory with ``data`` at its first aligned address."""
    memory = ctypes.create_string_buffer(len(data) + _ALIGNMENT)
    ctypes.memmove(_aligned(memory), data, len(data))
    return memory


def _aligned(memory: ctypes.Array[ctypes.c_char]) -> int:
    return -(-ctypes.addressof(memory) // _ALIGNMENT) * _ALIGNMENT


def _pointers(buffers: list[ctypes.Array[ctypes.c_char]]) -> ctypes.Array[ctypes.c_void_p]:
    # C has no empty arrays; a module without inputs gets one pointer that it does not read.
    return (ctypes.c_void_p * max(1, len(buffers)))(*(_aligned(memory) for memory in buffers))


if __name__ == "__main__":
    main(sys.argv[1])
