"""Estimate how often a kernel reads and writes each of its tensors and its scratch memory.

The planner for several memories multiplies these numbers by the cycles that an access waits in each memory. It has to
know what is worth fast memory, so a wrong order of two storages matters, and an error of a tenth does not.

An access is a load or a store of up to a word. A vector counts as its words, because a memory of 32 bits takes as many
accesses, and a byte counts as one access as well, because it waits as long as a word. (A cache makes bytes cheaper,
which this estimate ignores.) Rereads count: a convolution with the DSP extension reads its block of expanded windows
for each pair of output channels, 0.25 loads for a product, so that 600 bytes of scratch memory have more accesses than
a whole image.

``_KERNELS`` has the rates of kernels with products, by the name of their header:

- ``window``   loads of the input for each element of a window, once for all output channels
- ``product``  loads of the input for each product; for kernels that read windows again for each group of channels
- ``loads``    loads of scratch memory for each product
- ``stores``   stores to scratch memory for each element of a window
- ``output``   stores for each element of the output
- ``planes``   loads of scratch memory for each element of the input, which the kernel has copied there
- ``weights``  loads of the weights for each product: a word has several, and a tile of pixels shares a load; 0 if
               each weight is loaded once

They were counted on QEMU with the networks of MLPerf Tiny, on the Cortex-M0+, M4 and M55, and rounded. Every other
kernel is taken to read each element of its inputs and to write each element of its outputs once, with word or vector
instructions if its header says so. For example, CONV_2D of int8 on the Cortex-M4, 3x3, 16 channels, 32x32::

    windows     32 * 32 * 144 elements * 0.25 =  36,864 loads of the input      35,344 counted
    products    2,359,296 * 0.25              = 589,824 loads of scratch       589,824
    expanding   147,456 * 0.5                 =  73,728 stores to scratch       73,728
    results     16,384 * 1                    =  16,384 stores of the output    16,384

In a chain, images between its operators are in scratch memory, and so are all their accesses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.bases import Convolution
from mlfbuild.native.graph.ops import DepthwiseConv2D, FullyConnected, Fused, Reshape
from mlfbuild.native.lowering import KernelCall

_WORD = 4


@dataclass(frozen=True)
class Traffic:
    """Accesses in one run."""

    loads: int = 0
    stores: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.loads + other.loads, self.stores + other.stores)

    def waits(self, load_wait: int, store_wait: int) -> int:
        """Return the thousandths of cycles that the accesses wait; the parameters are those of an ``ArenaMemory``."""
        return self.loads * load_wait + self.stores * store_wait


@dataclass(frozen=True)
class Accesses:
    """The reads and writes of one call."""

    tensors: Mapping[str, Traffic]
    """By name; constants are not in it."""
    scratch: Traffic


@dataclass(frozen=True)
class _Rates:
    window: float = 0.0
    product: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    output: float = 1.0
    planes: float = 0.0
    weights: float = 0.25


_DSP = _Rates(window=0.25, loads=0.25, stores=0.5, weights=1 / 12)
_MVE = _Rates(window=0.25, loads=1 / 16, stores=0.25, output=0.25, weights=1 / 13)
_MVE_IN_PLACE = replace(_MVE, window=0.0, product=0.054, loads=0.008, stores=0.03)
"""Windows of several rows are read in the image, except at its border, which scratch memory completes."""
_MVE_STRIP = replace(_MVE, window=0.0, loads=0.054, stores=0.0)
"""They are read in a strip in scratch memory, to which each row is copied, and in which it is moved once."""
_STRIP = "mlf_conv2d_strip_int8_mve"
_KERNELS = {
    "conv2d_dsp": _DSP,
    "conv2d_long_dsp": _DSP,
    "conv2d_offset_dsp": _DSP,
    "conv2d_int16_dsp": _Rates(window=0.5, loads=1 / 3, stores=0.5),
    "conv2d_thumb": _Rates(window=1.0, loads=0.5, stores=0.5, weights=1 / 12),
    "conv2d_mve": _MVE,
    "conv2d_4x2_mve": replace(_MVE, loads=1 / 8, weights=0.0),
    "conv2d_int16_mve": _Rates(window=0.5, loads=1 / 8, stores=0.5, output=0.5),
    "conv2d_float_mve": _Rates(product=1 / 8),
    "depthwise_conv2d_dsp": _Rates(window=0.03, loads=0.4, stores=0.1, weights=0.0),
    "depthwise_conv2d_thumb": _Rates(window=0.12, loads=1.1, stores=0.2, weights=0.0),
    "depthwise_conv2d_mve": _Rates(window=0.03, stores=0.06, output=0.25, planes=1.1, weights=0.0),
    "fully_connected_dsp": _Rates(product=1 / 16),
    "fully_connected_thumb": _Rates(product=1 / 4),
    "fully_connected_mve": _Rates(product=1 / 32, output=0.25),
    "fully_connected_float_mve": _Rates(product=1 / 16),
}
_PORTABLE = _Rates(product=1 / 4)
_DEPTHWISE = _Rates(product=1.0)
"""Depthwise convolutions read each element of a window for its channel only."""
_VECTORS = ("_mve.h",)
_WORDS = ("_dsp.h",)


def accesses_of(graph: Graph, node: Node, call: KernelCall) -> Accesses:
    """Return the estimated accesses of ``node``, which is lowered to ``call``, in one run."""
    if isinstance(node.operator, Fused):
        return _of_chain(node.operator.part, node, call)
    if isinstance(node.operator, Reshape):
        return _moved(graph, node)
    weights = graph.inputs_of(node).optional(1)
    if isinstance(node.operator, Convolution | FullyConnected) and weights is not None:
        return _with_products(graph, node, call, weights)
    vectors = call.header.endswith(_VECTORS)
    tensors: dict[str, Traffic] = defaultdict(Traffic)
    for tensor in graph.inputs_of(node).present:
        if not tensor.constant:
            wide = vectors or call.header.endswith(_WORDS)
            tensors[tensor.name] += Traffic(loads=_words(tensor) if wide else tensor.elements)
    for tensor in graph.outputs_of(node):
        tensors[tensor.name] += Traffic(stores=_words(tensor) if vectors else tensor.elements)
    # Kernels of this kind fill their scratch memory and read it once.
    words = -(-call.scratch // _WORD)
    return Accesses(tensors, Traffic(words, words))


def weight_loads(graph: Graph, node: Node, call: KernelCall) -> list[int]:
    """Return the estimated loads of the weights of ``node`` in one run, for each operator of a chain.

    Other operators than those with products read each constant once; the result is then -1.
    """
    if isinstance(node.operator, Fused):
        part = node.operator.part
        return [weight_loads(part, each, its)[0] for each, its in zip(part.nodes, call.parts, strict=True)]
    weights = graph.inputs_of(node).optional(1)
    if not isinstance(node.operator, Convolution | FullyConnected) or weights is None:
        return [-1]
    products = node.operator.macs(graph.inputs_of(node), graph.outputs_of(node))
    return [max(-(-weights.size // _WORD), round(products * _KERNELS.get(_kernel(call), _PORTABLE).weights))]


def _words(tensor: Tensor) -> int:
    return -(-tensor.size // _WORD)


def _moved(graph: Graph, node: Node) -> Accesses:
    """Return the accesses of a copy; a RESHAPE that needs none shares its storage, in which they count for nothing."""
    source, output = graph.inputs_of(node)[0], graph.outputs_of(node)[0]
    return Accesses(
        {source.name: Traffic(loads=_words(source)), output.name: Traffic(stores=_words(output))}, Traffic()
    )


def _with_products(graph: Graph, node: Node, call: KernelCall, weights: Tensor) -> Accesses:
    depthwise = isinstance(node.operator, DepthwiseConv2D)
    name = _kernel(call)
    rates = _KERNELS.get(name, _DEPTHWISE if depthwise else _PORTABLE)
    source, output = graph.inputs_of(node)[0], graph.outputs_of(node)[0]
    # Windows of whole words are read where they are. Others are gathered in scratch memory, and so are the pixels
    # of a 1x1 filter that has any.
    if rates is _MVE and (not call.scratch or weights.shape[1:3] != (1, 1)) and source.shape[-1] % _WORD == 0:
        rates = _MVE_STRIP if call.scratch and call.kernel == _STRIP else _MVE_IN_PLACE
    products = node.operator.macs(graph.inputs_of(node), graph.outputs_of(node))
    channels = 1 if depthwise else max(1, output.shape[-1])
    windows = products // channels
    # Windows of other depths are gathered byte by byte.
    gathered = name.startswith("conv2d") and rates is _DSP and source.shape[-1] % _WORD
    window = 1.0 if gathered else rates.window
    copied = _words(source) if rates is _MVE_STRIP else 0
    loads = round(windows * window + products * rates.product) + copied
    tensors: dict[str, Traffic] = defaultdict(Traffic)
    tensors[source.name] += Traffic(loads=loads)
    tensors[output.name] += Traffic(stores=round(output.elements * rates.output))
    if not weights.constant:
        tensors[weights.name] += Traffic(loads=products)
    if not call.scratch:
        return Accesses(tensors, Traffic())
    read = round(products * rates.loads + source.elements * rates.planes) + copied
    return Accesses(tensors, Traffic(read, round(windows * rates.stores) + 2 * copied))


def _kernel(call: KernelCall) -> str:
    """Return the name of the kernel that was chosen, or the stem of its header if there is only one."""
    if call.choice is None:
        return call.header.removesuffix(".h")
    return call.choice.candidates[len(call.choice.refused)].kernel


def _of_chain(part: Graph, node: Node, call: KernelCall) -> Accesses:
    """Return the accesses of a chain: those of images inside it are accesses to scratch memory."""
    outside = {name for name in (*node.inputs, *node.outputs) if name is not None}
    tensors: dict[str, Traffic] = defaultdict(Traffic)
    scratch = Traffic()
    for each, its in zip(part.nodes, call.parts, strict=True):
        found = accesses_of(part, each, its)
        scratch += found.scratch
        for name, traffic in found.tensors.items():
            if name in outside:
                tensors[name] += traffic
            else:
                scratch += traffic
    return Accesses(tensors, scratch)
