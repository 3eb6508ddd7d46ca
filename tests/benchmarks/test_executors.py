"""What a graph takes beyond its kernels: parameters in flash alone, and little code."""

from collections.abc import Callable
from pathlib import Path

import pytest
from counting.executors import footprint

from mlfbuild import open_archive
from mlfbuild.library import CompileRequest
from mlfbuild.native import NATIVE
from mlfbuild.targets import CPUS

MOST = 4096
"""Bytes of code and tables beyond the kernels; TVM's own executor takes some 54,000."""


def test_a_graph_of_tvm(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm")
    archive = shared / "archives/kws_int8-graph"
    library = open_archive(archive.with_suffix(".tar"))
    found = footprint(library, archive.with_suffix(".npz"), "cortex-m4", tmp_path)
    assert 0 < found.executor + found.tables <= MOST
    parameters = sum(values.nbytes for values in library.modules[0].params.values())
    assert found.weights >= parameters, "all of them are in flash"
    (main,) = library.modules[0].main
    assert found.ram <= main.workspace_size + main.io_size


@pytest.mark.sweep
def test_our_own_graph_beside_our_own_calls(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm")
    graph, calls = (
        footprint(
            NATIVE.compile(CompileRequest("kws", shared / "models/kws_int8.tflite", CPUS["cortex-m4"], executor)),
            shared / "golden/kws_int8.npz",
            "cortex-m4",
            tmp_path / executor,
        )
        for executor in ("graph", "aot")
    )
    assert graph.executor + graph.tables <= MOST
    assert graph.instructions <= calls.instructions * 1.005
    assert graph.ram <= calls.ram + 64
