"""Run a shared object for ``isolated.Child``: read requests from stdin, write answers to stdout.

It imports only the standard library and runs in Python's isolated mode, so that it starts quickly and does not depend
on the environment. Output of the model's code goes to stderr.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO


def main(path: str) -> None:
    """Answer requests until stdin ends.

    First come three lines with the sizes in bytes of the inputs, outputs and traced tensors, which follow as raw bytes.
    The answer to ``r`` and the inputs is the status and the outputs, that to ``t`` and the inputs the
    status, the outputs and the traced tensors, that to ``z`` the status of the reset. ``b`` and a number of cases
    precede each input of all of these cases; the answer is the status, the cases done, and each output of all.
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
        elif kind == b"b":
            for piece in _cases(code, requests, inputs, outputs):
                answers.write(piece)
        else:
            answers.write(code.mlf_host_reset().to_bytes(4, "little", signed=True))
        answers.flush()


def _cases(code: ctypes.CDLL, requests: BinaryIO, inputs: list[int], outputs: list[int]) -> Iterator[Any]:
    """Run the cases of a request; yield the pieces of the answer."""
    cases = int.from_bytes(requests.read(8), "little")
    values, results = ([(ctypes.c_char * (cases * size))() for size in sizes] for sizes in (inputs, outputs))
    for value in values:
        # Into the memory that C reads: a batch has megabytes.
        requests.readinto(value)  # type: ignore[attr-defined]  # of the buffered reader that stdin is
    done = ctypes.c_uint64()
    groups = ((ctypes.c_void_p * (len(group) + 1))(*map(ctypes.addressof, group)) for group in (values, results))
    status = code.mlf_host_run_cases(*groups, ctypes.c_uint64(cases), ctypes.byref(done))
    yield status.to_bytes(4, "little", signed=True)
    yield done.value.to_bytes(8, "little")
    yield from results


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
