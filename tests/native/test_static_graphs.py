"""Graphs of the native compiler with the static executor equal the AOT executor."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mlfbuild
from mlfbuild.archive import open_archive, write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.files import sha256
from mlfbuild.executor.executables import executable
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import CompileRequest, Library
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.targets import CPUS
from support.graph_interpreter import C99
from support.host_c import run_many_on_host
from support.native import compile_network, request
from support.odd_networks import GRAPHS, values_of
from support.random_graphs import random_case

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]
) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def graph_library(graph: Graph) -> Library:
    return compile_graph(graph, replace(request(graph.name), executor="graph"), sha256(graph.name.encode()))


def static(library: Library, folder: Path, values: list[Array]) -> list[Array]:
    """Return the outputs of the static executor for ``values`` on this machine."""
    write_archive(library, folder / "net.tar")
    model = mlfbuild.load(folder / "net.tar")
    return list(model.run({tensor.name: value for tensor, value in zip(model.inputs, values, strict=True)}).values())


def kws(shared: Path, cpu: str, executor: str = "graph") -> Library:
    source = shared / "models" / "kws_int8.tflite"
    return compiler_called("native").compile(CompileRequest("net", source, CPUS[cpu], executor=executor))


@pytest.mark.parametrize(
    "name", ["no_nodes", "without_elements", "same_output_twice", "reshapes", "residual_with_a_broadcast"]
)
def test_odd_networks(name: str, tmp_path: Path) -> None:
    graph = next(make for make in GRAPHS if make.__name__ == name)()
    values = values_of(graph)
    wanted = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
    got = static(graph_library(graph), tmp_path, values)
    for value, output in zip(got, graph.outputs, strict=True):
        np.testing.assert_array_equal(value, wanted[output], strict=True)


def check_random(seed: int, steps: int, folder: Path) -> None:
    """Compare every bit of the outputs of a random network for both executors."""
    case = random_case(seed, steps)
    graph = parse_tflite(case.model, f"net{seed}", "net")
    aot = compile_network(graph)
    (wanted,) = run_many_on_host([(aot, aot.modules[0], case.inputs)], sanitize=False)
    got = static(graph_library(graph), folder, list(case.inputs))
    assert [value.tobytes() for value in got] == [np.ascontiguousarray(value).tobytes() for value in wanted]


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_random_networks(seed: int, tmp_path: Path) -> None:
    check_random(seed, 12, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(5000, 5200))
def test_many_random_networks(seed: int, tmp_path: Path) -> None:
    check_random(seed, 16, tmp_path)


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_memory_is_that_of_the_aot_executor(cpu: str, shared: Path) -> None:
    """Kernels use the same scratch memory, and nothing else is in RAM."""
    found = executable(kws(shared, cpu).modules[0])
    assert found is not None
    (main,) = kws(shared, cpu, "aot").modules[0].main
    assert found.workspace_size <= main.workspace_size


def test_firmware_sees_shapes_scales_and_quantisation(shared: Path, tmp_path: Path) -> None:
    """The header of the static executor includes the facts that the header of the AOT executor has."""
    unpack(kws(shared, "host"), tmp_path / "tree", archive_id="0")
    (tmp_path / "main.c").write_text(
        '#include "tvmgen_net.h"\n'
        "int main(void)\n{\n"
        "    static int8_t image[MLF_NET_INPUT_1_ELEMENTS], scores[TVMGEN_NET_IDENTITY_SIZE];\n"
        "    struct tvmgen_net_inputs inputs = {image};\n"
        "    struct tvmgen_net_outputs outputs = {scores};\n"
        "    image[0] = mlf_net_quantize_input_1(1.0f);\n"
        "    if (tvmgen_net_run(&inputs, &outputs) != 0 || mlf_net_model_id[0] != 'm') {\n        return 1;\n    }\n"
        "    return mlf_net_dequantize_Identity(scores[0]) < 0.0f;\n}\n"
    )
    found = executable(kws(shared, "host").modules[0])
    assert found is not None
    folders = dict.fromkeys((*found.include_dirs, *found.private_include_dirs))
    includes = [f"-I{tmp_path / 'tree' / folder}" for folder in folders]
    sources = [tmp_path / "main.c", *(tmp_path / "tree" / path for path in found.files)]
    subprocess.run(["gcc", *C99[:-1], *includes, *sources, "-o", tmp_path / "app", "-lm"], check=True)
    subprocess.run([tmp_path / "app"], check=True)


def test_sections(shared: Path) -> None:
    """The packed functions and the printed graph use the same section."""
    source = shared / "models" / "kws_int8.tflite"
    placement = Placement(params=".mlf_params", workspace=".bss.far")
    wanted = CompileRequest("net", source, CPUS["host"], executor="graph", placement=placement)
    module = compiler_called("native").compile(wanted).modules[0]
    found = executable(module, placement)
    assert found is not None
    entry = bytes(found.generated["executor/net_entry.c"]).decode()
    functions = next(file for file in module.codegen if file.path.name == "net_lib1.c").data.decode()
    assert entry.count('section(".mlf_params")') == len(module.params)
    assert entry.count('section(".bss.far")') == functions.count('section(".mlf_params")') == 1
    assert ".rodata.tvm" not in entry + functions


@pytest.mark.parametrize("version", [5, 6, 7])
def test_every_version_supports_graphs(version: int, tmp_path: Path) -> None:
    graph = next(make for make in GRAPHS if make.__name__ == "residual_with_a_broadcast")()
    library = graph_library(graph)
    write_archive(library, tmp_path / "net.tar", version)
    read = open_archive(tmp_path / "net.tar")
    assert read.version == version
    assert replace(read.modules[0], targets=()) == replace(library.modules[0], targets=())
