"""Run a graph archive like TVM's graph executors, without sharing code with the writer of the archive.

It reads the tar, the graph's JSON and the parameters itself, loads the compiled C, finds packed functions by their
names in the registry of the system library, and gives each storage id one buffer, as large as its largest tensor.
Buffers are not zero before the first call, and guards around them and around each workspace detect writes outside.
"""

import ctypes
import json
import math
import struct
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.targets import RUNTIME

Array = npt.NDArray[Any]

C99 = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wpedantic")
GUARD = 64
PATTERN = 0x5A
_CPU = 1
_TENSOR_HANDLE = 7
_CODES = {"int": 0, "uint": 1, "float": 2}

_PLATFORM = r"""
#include "tvm/runtime/crt/module.h"

#include <stdlib.h>
#include <string.h>

/* What remains before an allocation fails; what was lent out last. */
int64_t allocations_left = -1, allocations_open;
uint64_t largest_allocation;
int damaged;

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int code_hint, int bits_hint)
{
    const size_t size = (size_t)nbytes;
    unsigned char *block;
    (void)code_hint, (void)bits_hint;
    if (device_type != 1 || device_id != 0 || allocations_left == 0) {
        return NULL;
    }
    allocations_left--;
    allocations_open++;
    largest_allocation = nbytes > largest_allocation ? nbytes : largest_allocation;
    block = malloc(size + 2 * GUARD);
    memset(block, PATTERN, size + 2 * GUARD);
    memcpy(block, &size, sizeof size);
    return block + GUARD;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
    unsigned char *const block = (unsigned char *)ptr - GUARD;
    size_t size;
    memcpy(&size, block, sizeof size);
    for (size_t i = 0; i < GUARD; i++) {
        damaged |= block[GUARD + size + i] != PATTERN || (i >= sizeof size && block[i] != PATTERN);
    }
    allocations_open--;
    free(block);
    return device_type == 1 && device_id == 0 ? 0 : -1;
}

const TVMModule *system_library(void)
{
    return TVMSystemLibEntryPoint();
}
"""


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("dtype", _DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Registry(ctypes.Structure):
    _fields_ = [("names", ctypes.POINTER(ctypes.c_ubyte)), ("functions", ctypes.POINTER(ctypes.c_void_p))]


class _Module(ctypes.Structure):
    _fields_ = [("registry", ctypes.POINTER(_Registry))]


_PACKED = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int32),
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
)


class Interpreter:
    """The only module of an archive, compiled for this machine."""

    def __init__(self, archive: Path, folder: Path, flags: Sequence[str] = ("-O1",)) -> None:
        with tarfile.open(archive) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar):  # Python 3.11.2 has no extractall(filter=...)
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())
        (graph,) = (folder / "executor-config/graph").iterdir()
        (params,) = (folder / "parameters").iterdir()
        self.graph = json.loads(graph.read_text())
        self.params = read_params(params.read_bytes())
        self._library = _compile(folder, flags)
        self.functions = _functions(self._library)

    @property
    def storage_size(self) -> int:
        """Bytes of all storage ids except those of inputs and parameters."""
        arguments = {self._attr("storage_id")[self._entry(node, 0)] for node in self.graph["arg_nodes"]}
        return sum(size for number, size in self._storage_sizes().items() if number not in arguments)

    @property
    def largest_workspace(self) -> int:
        """Bytes of the largest allocation of workspace so far."""
        return int(ctypes.c_uint64.in_dll(self._library, "largest_allocation").value)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs in order; ``inputs`` are the graph's arguments without parameters, in order."""
        status, outputs = self.status(inputs)
        assert status == 0
        return outputs

    def status(self, inputs: Sequence[Array], allocations: int = -1) -> tuple[int, list[Array]]:
        """Run, and also return the status of the first function that failed, or 0.

        Allocations of workspace fail after the first ``allocations``; -1 is no limit.
        """
        self._count("allocations_left").value = allocations
        buffers = {number: _guarded(size) for number, size in self._storage_sizes().items()}
        arguments = self._fill(buffers, inputs)
        status = self._call_all(buffers)
        assert self._count("allocations_open").value == 0
        assert ctypes.c_int.in_dll(self._library, "damaged").value == 0, "written outside a workspace"
        for number, buffer in buffers.items():
            assert not (buffer[:GUARD] != PATTERN).any(), f"written before storage {number}"
            assert not (buffer[-GUARD:] != PATTERN).any(), f"written behind storage {number}"
        for number, content in arguments.items():
            assert bytes(buffers[number][GUARD : GUARD + len(content)]) == content, f"argument in {number} has changed"
        return status, [self._value(buffers, self._entry(node, index)) for node, index, _ in self.graph["heads"]]

    def _call_all(self, buffers: dict[int, Array]) -> int:
        for number, node in enumerate(self.graph["nodes"]):
            if node["op"] == "null":
                continue
            outputs = [self._entry(number, index) for index in range(int(node["attrs"]["num_outputs"]))]
            entries = [*(self._entry(source, index) for source, index, _ in node["inputs"]), *outputs]
            assert int(node["attrs"]["num_inputs"]) == len(node["inputs"])
            assert node["attrs"]["flatten_data"] == "0"
            tensors = [self._tensor(buffers, entry) for entry in entries]
            values = (ctypes.c_void_p * len(tensors))(*(ctypes.addressof(tensor) for tensor in tensors))
            codes = (ctypes.c_int32 * len(tensors))(*[_TENSOR_HANDLE] * len(tensors))
            function = _PACKED(self.functions[node["attrs"]["func_name"]])
            status = function(values, codes, len(tensors), None, None, None)
            if status != 0:
                return int(status)
        return 0

    def _fill(self, buffers: dict[int, Array], inputs: Sequence[Array]) -> dict[int, bytes]:
        """Fill the buffers of arguments, and return their content by storage id."""
        waiting = list(inputs)
        filled: dict[int, bytes] = {}
        for node in self.graph["arg_nodes"]:
            name, entry = self.graph["nodes"][node]["name"], self._entry(node, 0)
            value = self.params[name] if name in self.params else waiting.pop(0)
            assert value.nbytes == self._size(entry), name
            if name in self.params:
                assert list(value.shape) == self._attr("shape")[entry]
                assert value.dtype.name == self._attr("dltype")[entry]
            storage = self._attr("storage_id")[entry]
            assert storage not in filled, "two arguments share a storage"
            filled[storage] = value.tobytes()
            buffers[storage][GUARD : GUARD + value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
        assert not waiting
        return filled

    def _tensor(self, buffers: dict[int, Array], entry: int) -> _Tensor:
        shape, dtype = self._attr("shape")[entry], self._attr("dltype")[entry]
        kind = dtype.rstrip("0123456789")
        data = buffers[self._attr("storage_id")[entry]].ctypes.data + GUARD
        extents = (ctypes.c_int64 * len(shape))(*shape)
        types = _DataType(_CODES[kind], int(dtype.removeprefix(kind)), 1)
        return _Tensor(data, _CPU, 0, len(shape), types, extents, None, 0)

    def _value(self, buffers: dict[int, Array], entry: int) -> Array:
        content = buffers[self._attr("storage_id")[entry]][GUARD : GUARD + self._size(entry)]
        dtype = np.dtype(self._attr("dltype")[entry])
        value: Array = np.frombuffer(content.tobytes(), dtype).reshape(self._attr("shape")[entry])
        return value

    def _storage_sizes(self) -> dict[int, int]:
        sizes: dict[int, int] = {}
        for entry, storage in enumerate(self._attr("storage_id")):
            sizes[storage] = max(sizes.get(storage, 0), self._size(entry))
        return sizes

    def _size(self, entry: int) -> int:
        elements: int = math.prod(self._attr("shape")[entry])
        return elements * int(np.dtype(self._attr("dltype")[entry]).itemsize)

    def _attr(self, name: str) -> list[Any]:
        values = self.graph["attrs"][name][1]
        assert len(values) == self.graph["node_row_ptr"][-1]
        return list(values)

    def _entry(self, node: int, index: int) -> int:
        return int(self.graph["node_row_ptr"][node]) + index

    def _count(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.in_dll(self._library, name)


def read_params(data: bytes) -> dict[str, Array]:
    """Return the arrays of a ``.params`` file by name."""
    magic, _, count = struct.unpack_from("<QQQ", data)
    assert magic == 0xF7E58D4F05049CB7
    at, names = 24, []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        names.append(data[at + 8 : at + 8 + length].decode())
        at += 8 + length
    assert struct.unpack_from("<Q", data, at) == (count,)
    at += 8
    arrays = {}
    for name in names:
        magic, _, device, _, ndim, code, bits, lanes = struct.unpack_from("<QQiiiBBH", data, at)
        assert (magic, device, lanes) == (0xDD5E40F096B4A13F, _CPU, 1)
        *shape, size = struct.unpack_from(f"<{ndim + 1}q", data, at + 32)
        at += 32 + 8 * (ndim + 1)
        dtype = np.dtype(f"<{'iuf'[code]}{bits // 8}")
        arrays[name] = np.frombuffer(data[at : at + size], dtype).reshape(shape)
        at += size
    assert at == len(data)
    return arrays


def _compile(folder: Path, flags: Sequence[str]) -> ctypes.CDLL:
    (folder / "platform.c").write_text(_PLATFORM)
    includes = [f"-I{folder / 'codegen/host/include'}", f"-I{RUNTIME / 'tvm'}"]
    sources = [*sorted((folder / "codegen/host/src").glob("*.c")), folder / "platform.c"]
    defines = ["-DMLF_MODULE=interpreted", f"-DGUARD={GUARD}", f"-DPATTERN={PATTERN}"]
    command: list[str | Path] = ["gcc", *C99, *flags, "-shared", "-fPIC", *defines, *includes, *sources]
    done = subprocess.run([*command, "-o", folder / "m.so", "-lm"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "m.so"))


def _functions(library: ctypes.CDLL) -> dict[str, int]:
    """Return the addresses of functions by their names in the registry."""
    library.system_library.restype = ctypes.POINTER(_Module)
    registry = library.system_library().contents.registry.contents
    count = registry.names[0] + (registry.names[1] << 8)
    names, at = [], 2
    for _ in range(count):
        end = at
        while registry.names[end]:
            end += 1
        names.append(bytes(registry.names[at:end]).decode())
        at = end + 1
    assert registry.names[at] == 0
    return {name: int(registry.functions[index] or 0) for index, name in enumerate(names)}


def _guarded(size: int) -> Array:
    """Return a buffer with guards before and after ``size`` bytes, with TVM's alignment."""
    block = np.full(size + 2 * GUARD + 64, PATTERN, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + size + 2 * GUARD]
