"""Print what large archives cost: peak memory of reading and writing one, and the time to inspect many modules.

    python benchmarks/archive.py [--mebibytes N] [--modules N] [--runs N] [--folder DIR]

The archives are made on the fly. Memory is that of a whole process beyond what importing mlfbuild.archive takes and
the largest member it hands out, each as `bytes` and each parameter as an array. The time is that of
`mlfbuild inspect --format json`, whole process, beside a Python process that does nothing but list the members with
`tarfile` and parse the metadata. Exits with 1 where a figure is over its limit: 64 MiB, and 2 s.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

import numpy as np
from whole_process import measure

import mlfbuild
from mlfbuild.library import (
    CodegenFile,
    LazyBytes,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    OperatorFunction,
    StorageEntry,
    TensorInfo,
)

MEMORY_LIMIT = 64
"""MiB beyond the largest member."""
TIME_LIMIT = 2.0
"""Seconds."""
MEMBERS = 8
"""Large members of the large archive: parameters, and objects."""


# Archives ------------------------------------------------------------------------------------------------------------


class Noise(LazyBytes):
    """Bytes that do not repeat for a while and are made when they are asked for."""

    _PERIOD = bytes(np.random.default_rng(0).integers(0, 256, 1_000_003, np.uint8))

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        size = max(0, min(size, self._size - offset))
        begin = offset % len(self._PERIOD)
        return (self._PERIOD * (2 + size // len(self._PERIOD)))[begin : begin + size]


def graph_json(name: str) -> bytes:
    """Return the graph of one operator on an input and a parameter of two floats."""
    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "p0", "inputs": []},
            {
                "op": "tvm_op",
                "name": "add",
                "attrs": {
                    "func_name": f"tvmgen_{name}_add",
                    "num_inputs": "2",
                    "num_outputs": "1",
                    "flatten_data": "0",
                },
                "inputs": [[0, 0, 0], [1, 0, 0]],
            },
        ],
        "arg_nodes": [0, 1],
        "heads": [[2, 0, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32"] * 3],
            "storage_id": ["list_int", [0, 1, 2]],
            "shape": ["list_shape", [[1, 2]] * 3],
        },
        "node_row_ptr": [0, 1, 2, 3],
    }
    return json.dumps(graph, indent=2).encode()


def module(name: str, code: bytes | LazyBytes, params: dict[str, np.ndarray]) -> Module:
    """Return a graph-executor module with one kernel file, as small as they come but for what it is given."""
    kernel = f"int tvmgen_{name}_add(void);\nint tvmgen_{name}_add(void)\n{{\n    return 0;\n}}\n".encode()
    return Module(
        name=name,
        executor="graph",
        targets=(ModuleTarget("c -keys=cpu "),),
        main=(MainMemory(0, 8, 16),),
        operator_functions=(OperatorFunction(f"tvmgen_{name}_add", ((1, 0),)),),
        codegen=(
            CodegenFile(PurePosixPath(f"host/src/{name}_lib0.c"), b"typedef int mlf_nothing;\n"),
            CodegenFile(PurePosixPath(f"host/src/{name}_lib1.c"), kernel),
            CodegenFile(PurePosixPath(f"host/lib/{name}_lib0.o"), code),
        ),
        inputs=(TensorInfo("x", "float32", 8),),
        outputs=(TensorInfo("output", "float32", 8),),
        params={"p0": np.ones((1, 2), np.float32), **params},
        graph_json=graph_json(name),
        storage=(StorageEntry(0, 8, "x"), StorageEntry(1, 8, "p0"), StorageEntry(2, 8)),
        source_text=b"def @main\n",
    )


def write_large(path: Path, mebibytes: int) -> None:
    """Write an archive of ``mebibytes``, half of them parameters and half of them objects."""
    size = (mebibytes << 20) // MEMBERS
    modules = [
        module(f"net{index}", Noise(size), {"w": np.full(size // 4, index, np.int32)}) for index in range(MEMBERS // 2)
    ]
    mlfbuild.write_archive(Library(tuple(modules)), path)


def write_many(path: Path, count: int) -> None:
    """Write an archive of ``count`` small modules, which has about six members a module."""
    modules = [module(f"net{index}", b"\x7fELF" + bytes(60), {}) for index in range(count)]
    mlfbuild.write_archive(Library(tuple(modules)), path)


# Children ------------------------------------------------------------------------------------------------------------

IMPORT = "import mlfbuild.archive"
READ = """
import sys
import mlfbuild

library = mlfbuild.open_archive(sys.argv[1])
for module in library.modules:
    for content in [module.graph_json, module.source_text, *(file.content for file in module.codegen)]:
        data = bytes(content)
        del data
    for name in module.params:
        array = module.params[name]
        assert array.sum() >= 0
        del array
"""
WRITE = """
import sys
import mlfbuild

mlfbuild.write_archive(mlfbuild.open_archive(sys.argv[1]), sys.argv[1] + ".copy")
"""
TARFILE = """
import json, sys, tarfile

with tarfile.open(sys.argv[1]) as tar:
    members = tar.getmembers()
    json.load(tar.extractfile("./metadata.json"))
"""


def make(kind: str, path: Path, amount: int) -> None:
    """Write an archive in a separate process: a child's peak is never below what its parent had in memory."""
    subprocess.run([sys.executable, __file__, "--make", kind, str(path), str(amount)], check=True)


def python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", script, *arguments]


# Tables --------------------------------------------------------------------------------------------------------------


def memory_table(folder: Path, mebibytes: int) -> bool:
    """Print the memory of reading and writing a large archive; returns whether it is within the limit."""
    path = folder / "large.tar"
    make("large", path, mebibytes)
    largest = mebibytes / MEMBERS
    base = measure(python(IMPORT)).mebibytes
    print(
        f"an archive of {path.stat().st_size / 2**20:.0f} MiB, largest member {largest:.1f} MiB; import: {base:.1f} MiB"
    )
    print(f"{'':8} {'seconds':>8} {'peak MiB':>9} {'beyond the largest member':>26} {'and the import':>15}")
    good = True
    for name, script, held in (("read", READ, largest), ("write", WRITE, 0.0)):
        run = measure(python(script, str(path)))
        beyond = run.mebibytes - held
        good &= beyond < MEMORY_LIMIT
        print(f"{name:8} {run.seconds:8.2f} {run.mebibytes:9.1f} {beyond:26.1f} {beyond - base:15.1f}", flush=True)
    if not filecmp.cmp(path, f"{path}.copy", shallow=False):
        sys.exit("the archive that was written differs from the one that was read")
    return good


def time_table(folder: Path, modules: int, runs: int) -> bool:
    """Print the time to inspect an archive of many modules; returns whether it is within the limit."""
    path = folder / "many.tar"
    make("many", path, modules)
    command = [sys.executable, "-m", "mlfbuild", "inspect", str(path), "--format", "json"]
    print(f"\nan archive of {modules} modules, {path.stat().st_size / 2**20:.1f} MiB")
    print(f"{'':18} {'min s':>8} {'median s':>8} {'peak MiB':>9}")
    best = 0.0
    for name, words in (("tarfile alone", python(TARFILE, str(path))), ("mlfbuild inspect", command)):
        results = [measure(words) for _ in range(runs)]
        seconds = [result.seconds for result in results]
        best = min(seconds)
        peak = max(result.mebibytes for result in results)
        print(f"{name:18} {best:8.2f} {statistics.median(seconds):8.2f} {peak:9.1f}", flush=True)
    return best < TIME_LIMIT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=500)
    parser.add_argument("--modules", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the archives are made, twice their size at a time")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        kind, path, amount = options.make
        {"large": write_large, "many": write_many}[kind](Path(path), int(amount))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        small = memory_table(Path(folder), options.mebibytes)
        quick = time_table(Path(folder), options.modules, options.runs)
    if not (small and quick):
        sys.exit(f"over the limit of {MEMORY_LIMIT} MiB or of {TIME_LIMIT:.0f} s")


if __name__ == "__main__":
    main()
