"""Compile models that tests build in memory."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mlfbuild.core.files import sha256
from mlfbuild.library import CompileRequest, Library, OptionValue
from mlfbuild.library.keys import ArenaMemory, Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Graph
from mlfbuild.targets import CPUS


def request(
    name: str,
    placement: Placement | None = None,
    cpu: str = "cortex-m4",
    memory: str = "balanced",
    dead_channels: str = "remove",
) -> CompileRequest:
    """Return a request for the model ``name``; its source is never opened."""
    options = {"memory": memory, "dead-channels": dead_channels}
    return CompileRequest(name, Path(f"{name}.tflite"), CPUS[cpu], options=options, placement=placement or Placement())


def compile_bytes(
    model: bytes,
    name: str = "net",
    cpu: str = "cortex-m4",
    memory: str = "balanced",
    dead_channels: str = "remove",
    io: str = "caller",
    memories: tuple[ArenaMemory, ...] = (),
) -> Library:
    """Return the native library of the ``.tflite`` content ``model``."""
    wanted = request(name, cpu=cpu, memory=memory, dead_channels=dead_channels)
    wanted = replace(wanted, options={**wanted.options, "io": io}, memories=memories)
    return compile_graph(parse_tflite(model, name, name), wanted, sha256(model))


def compile_network(
    graph: Graph, cpu: str = "cortex-m4", executor: str | None = None, options: Mapping[str, OptionValue] | None = None
) -> Library:
    """Return the native library of ``graph``."""
    wanted = replace(request(graph.name, cpu=cpu), executor=executor)
    wanted = replace(wanted, options={**wanted.options, **(options or {})})
    return compile_graph(graph, wanted, sha256(graph.name.encode()))


def generated(library: Library, ending: str = "_lib0.c") -> str:
    """Return the text of the only codegen file whose path ends in ``ending`` (by default the C file).

    The hash of the kernel headers, which changes with every edit, is replaced by zeros.
    """
    (file,) = (file for file in library.modules[0].codegen if str(file.path).endswith(ending))
    return re.sub(r"(Kernel headers SHA-256: )\w+", rf"\g<1>{64 * '0'}", file.data.decode())


def files_of(library: Library) -> dict[str, bytes]:
    """Return the content of the codegen files of the only module, by path."""
    return {str(file.path): bytes(file.data) for file in library.modules[0].codegen}
