"""ETHOS_U: copy tensors into the working memory, let the driver run the command stream, and copy the results."""

from __future__ import annotations

from mlfbuild.library import npu_symbol
from mlfbuild.library.cgen import CACHE_LINE, aligned
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import EthosU
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.settings import CodegenSettings

FAST_MEMORY = "npu_workspace"
"""The end of the name of the array for an NPU with memory of its own."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_ethos_u``, with copies of all tensors."""
    return lower_npu_call(graph, node, frozenset())


def lower_npu_call(graph: Graph, node: Node, in_place: frozenset[str]) -> KernelCall:
    """Return the call of ``mlf_ethos_u``, without copies of the tensors ``in_place``.

    Stream and weights are files of the device, which the image has under the names of ``npu_symbol``: the driver takes
    their addresses, so that they need no parameters.
    """
    operator = node.operator
    assert isinstance(operator, EthosU)
    inputs, outputs = (
        [each for each in zip(tensors, offsets, strict=True) if each[0].name not in in_place]
        for tensors, offsets in (
            (graph.inputs_of(node).present, operator.input_offsets),
            (graph.outputs_of(node), operator.output_offsets),
        )
    )
    stream, weights = (npu_symbol(graph.name, name) for name in (operator.stream_file, operator.weights_file))
    # The third region of a network without memory of the NPU is the second one, as in TensorFlow Lite Micro.
    fast = f"tvmgen_{graph.name}_{FAST_MEMORY}" if operator.fast else "scratch"
    sizes = (len(operator.weights), operator.scratch, operator.fast or operator.scratch)
    body = [
        f"extern const uint8_t {stream}[];",
        f"extern const uint8_t {weights}[];",
        "const struct mlf_ethos_u_regions regions = {",
        f"    {{{weights}, scratch, {fast}}},",
        f"    {{{', '.join(map(str, sizes))}}},",
        "};",
        *(f"memcpy(&scratch[{offset}], input{at}, {tensor.size});" for at, (tensor, offset) in enumerate(inputs)),
        f"if (mlf_ethos_u({stream}, {len(operator.payload)}, &regions) != 0) {{",
        "    return -1;",
        "}",
        *(f"memcpy(output{at}, &scratch[{offset}], {tensor.size});" for at, (tensor, offset) in enumerate(outputs)),
        "return 0;",
    ]
    return KernelCall(
        "ethos_u",
        "ethos_u.h",
        (
            *(reads(f"input{at}", tensor) for at, (tensor, _) in enumerate(inputs)),
            *(writes(f"output{at}", tensor) for at, (tensor, _) in enumerate(outputs)),
            Parameter("uint8_t *", "scratch", ScratchBuffer(operator.scratch)),
        ),
        tuple(body),
        may_fail=True,
        device_memory=aligned(operator.fast, CACHE_LINE),
    )
