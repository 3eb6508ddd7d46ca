"""Compile a request for a target with an NPU: Vela first, then the steps of ``build`` on what it wrote.

    file -> compile_with_vela -> graph_of -> compile_graph -> with the files, facts and requirements of the NPU

The identity of the network is that of the user's file, not of Vela's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.core import InputFileError, better_error, shown
from mlfbuild.ethos_u import VelaResult, compile_with_vela
from mlfbuild.library import (
    ETHOS_U,
    EXTENSION_DEVICE,
    CodegenFile,
    CompileRequest,
    DeviceContext,
    ExternalDependency,
    Library,
    MainMemory,
    Module,
    NpuFacts,
)
from mlfbuild.library.keys import CONSTANT_CLASSES, NPU_DEVICE, Npu, Placement
from mlfbuild.native.build import budget_of, compile_graph, graph_of, read_files
from mlfbuild.native.frontends import HELD, NetworkFiles, OriginalNetwork
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import EthosU, Quantize, Reshape

DRIVER_VERSION = ">=22.5"
"""The releases of the driver that have ``ethosu_invoke_v3``."""
_MOST_NOTES = 8


def compile_for_npu(request: CompileRequest, npu: Npu) -> Library:
    """Compile the model of ``request`` for its core and ``npu``.

    Raises as ``build.compile_model`` and ``compile_with_vela``, and ``InputFileError`` for a command stream with an
    address outside of its regions. A network that Vela cannot read, as one of ONNX, is compiled for the core alone.
    """
    files = read_files(request)
    if request.source.suffix.lower() == ".onnx":
        graph = graph_of(files, request)
        note = "the NPU is not used: Vela reads .tflite files only"
        graph = graph.with_notes([*graph.notes, note])
        return compile_graph(graph, request, files.identity, budget_of(request, files.size))
    # Vela reports damage by a traceback.
    try:
        original = OriginalNetwork.of(files.data, str(request.source))
    except InputFileError as error:
        raise better_error(error, request.source) from None
    result = compile_with_vela(files.data, npu, request.source, original.names)
    original.check_variables(result.model, str(request.source))
    compiled = NetworkFiles(files.path, result.model)
    graph = graph_of(compiled, request, npu.accelerator, original.absent)
    kept = tuple(_kept(graph, npu, result, original.names))
    graph = graph.with_notes([*graph.notes, *_notes(graph, kept, request.placement)])
    # The file of Vela has compressed weights: the limit is that of the user's file, which is larger.
    library = compile_graph(graph, request, files.identity, budget_of(request, files.size + compiled.size))
    calls = _calls(graph)
    return (
        Library(tuple(_with_npu(module, calls, npu, result, kept) for module in library.modules)) if calls else library
    )


def _calls(graph: Graph) -> list[EthosU]:
    """Return the calls of the NPU, those in a loop once."""
    return [*dict.fromkeys(node.operator for node in graph.nodes if isinstance(node.operator, EthosU))]


def _kept(graph: Graph, npu: Npu, result: VelaResult, names: Collection[str]) -> Iterator[str]:
    """Yield each operator that stays on the core, with the reason; ``names`` are those of tensors in the file."""
    for node in graph.nodes:
        # The core holds uint8 as int8, and variables as states: nodes of tensors that the file does not have.
        added = isinstance(node.operator, Quantize | Reshape) and not {*node.inputs, *node.outputs} <= {*names}
        if not added and not isinstance(node.operator, EthosU):
            yield f"{node.operator.name} {shown(node.name)}: {_reason(node, npu, result)}"


def _reason(node: Node, npu: Npu, result: VelaResult) -> str:
    names = (each for name in node.outputs for each in (name, name.removesuffix(HELD)))
    told = next((result.reasons[name] for name in names if name in result.reasons), "")
    if told:
        return told
    return "keep-on-core names it" if node.operator.name in npu.keep_on_core else "Vela states no reason"


def _notes(graph: Graph, kept: Sequence[str], placement: Placement) -> Iterator[str]:
    if not _calls(graph):
        yield f"the NPU is not used: Vela leaves all {len(graph.nodes)} operators to the core"
    elif any(getattr(placement, name) for name in CONSTANT_CLASSES):
        yield f"placement.params places only constants of the core: section of devices.{NPU_DEVICE} places the NPU's"
    for line in kept[:_MOST_NOTES]:
        yield f"stays on the core: {line}"
    if len(kept) > _MOST_NOTES:
        yield f"{len(kept) - _MOST_NOTES} more operators stay on the core"


def _with_npu(module: Module, calls: Sequence[EthosU], npu: Npu, result: VelaResult, kept: tuple[str, ...]) -> Module:
    """Return ``module`` with what the NPU's part of the network adds to the archive."""
    contents = {each.stream_file: each.payload for each in calls} | {each.weights_file: each.weights for each in calls}
    files = [CodegenFile(PurePosixPath(NPU_DEVICE, f"{module.name}_{name}"), data) for name, data in contents.items()]
    weights = {each.weights_file: len(each.weights) for each in calls}
    facts = NpuFacts(
        accelerator=npu.accelerator,
        memory_mode=npu.memory_mode,
        system_config=result.system_config,
        compiler=f"vela {result.version}",
        stream=sum(len(each.payload) for each in calls),
        weights=sum(weights.values()),
        scratch=max(each.scratch for each in calls),
        fast=max(each.fast for each in calls),
        on_core=kept,
        estimate=result.estimate,
    )
    # The working memory is in the workspace, which the core passes.
    own = MainMemory(facts.fast, facts.stream + facts.weights, 0, EXTENSION_DEVICE)
    config = json.dumps({"memory-mode": npu.memory_mode, "system-config": result.system_config}, sort_keys=True)
    context = DeviceContext(NPU_DEVICE, 0, facts.compiler, config, npu.accelerator)
    driver = ExternalDependency(ETHOS_U.name, ETHOS_U.url, "git", DRIVER_VERSION)
    return replace(
        module,
        tflm="",  # no NPU has been compared with it
        main=(*module.main, own),
        npu=facts,
        contexts=(context,),
        device_files=tuple(files),
        external_dependencies=(*module.external_dependencies, driver),
    )
