"""Estimate instructions, precisely enough to compare ways of executing a network.

``fusion`` asks two questions: how many instructions does the network take, and how many more does a chain take? Neither
needs to be exact. An error of 10 % moves a limit of 1 % to 1.1 %. But the estimate must be the same on every machine,
and take microseconds, because hundreds of chains are compared. So it is a linear formula over numbers that the graph
has: products, outputs, elements, bytes moved, calls. ``_Rates`` has the factors for a kind of core.

Where the factors come from: instructions of the kernels as counted on QEMU, rounded. They include loads, loops and
requantisation: 0.85 for a product with DSP is a share of the block's loop, not one SMLAD. ``make benchmark`` shows
whether a network became slower; if a kernel changes much, its row has to.

The rules of ``Costs.added``, for a chain of so many steps:

1. The rows that the next step needs again are moved to the beginning of their buffer, ``kept`` rows in each step.
2. If the first operator has padding, the input image is also copied into a buffer.
3. Steps before the first output row fill the buffers with rows.
4. Each operator is called in each step in which it has a row inside the image. A call costs ``call``.
5. A convolution computes blocks of pixels; if the pixels of a step are not a multiple of the block, the rest is wasted.
   Rows at the border of an image cost extra without a chain, and nothing within one, which is subtracted.
6. A depthwise convolution reads rows again that it had copied to planes before.

For example, on the Cortex-M4, a 3x3 convolution of an int8 image of 32x32 from 8 to 8 channels::

    products    32 * 32 * 8 outputs * 72 products * 0.85 = 501,350
    outputs     32 * 32 * 8 * 6.5                        =  53,248        554,598 together

Two of them and a pool of 2,048 elements (15 each) are 1,139,917. An aligned chain of the three in 16 steps, with two
steps before them, adds 58,765: it moves 31,232 bytes and fills 3,072 (30,874 instructions), has 48 calls (10,560), and
the 64 pixels of two rows are not a multiple of three, the block of the kernel (17,331 for both convolutions).
``fusion`` compares that with the Cortex-M0+.

The estimate does not count cycles, wait states or caches (``timing`` does, for reports; ``Costs.reading`` does roughly,
for filters in flash), and it knows no difference between cores of one kind. Operators that are never in a chain count
only as FULLY_CONNECTED, or not at all: a network of others has no chains whose share could matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.native.graph import DType, Graph
from mlfbuild.native.graph.bases import Convolution
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering import Chain, ImageRows, LoweredChain, Stage, stages_of
from mlfbuild.native.settings import CodegenSettings


@dataclass(frozen=True)
class _Rates:
    """Instructions, as counted on QEMU."""

    product: float
    """For each product of a convolution."""
    depthwise: float
    """For each product of a depthwise convolution."""
    element: float
    """For each element of other operators."""
    output: float
    """For each output of a convolution of either kind."""
    moved: float
    """For each byte of a copy."""
    call: float
    """For each call of a kernel."""
    block: int
    """Pixels that a convolution computes together."""
    again: float
    """For each element that a depthwise convolution reads once more."""


# In the order of the fields. The portable row also serves Thumb, whose kernels take 2.1 to 2.7 for a product.
_PORTABLE = _Rates(3.0, 6.0, 15.0, 10.0, 0.9, 60, 1, 0.0)
_DSP = _Rates(0.85, 2.1, 15.0, 6.5, 0.9, 220, 3, 3.5)
_MVE = _Rates(0.17, 0.6, 3.0, 1.8, 0.35, 280, 2, 0.8)
_DSP_INT16 = _Rates(0.9, 3.0, 15.0, 4.0, 0.9, 220, 3, 0.0)
_MVE_INT16 = _Rates(0.3, 1.4, 15.0, 4.0, 0.35, 280, 3, 0.0)


_READ, _COPIED = 0.5, 0.7
"""Of a Cortex-M4, cycles for each byte of a filter: reading it from flash instead of RAM without wait states, for a
block of pixels; and copying it to RAM. Loads from flash and from RAM do not overlap."""

_BORDER = 0.25
"""The least extra cost of an output row at the border of an image, relative to the cost of another row."""


class Costs:
    """Estimates for the processor of ``settings``."""

    def __init__(self, settings: CodegenSettings) -> None:
        self.settings = settings

    def total(self, graph: Graph) -> float:
        """Return the instructions of ``graph`` if its operators are executed one after the other.

        Only operators that can be in a chain, and FULLY_CONNECTED, are counted; the sum is the base of the limit in
        percent.
        """
        chainable = sum(self._alone(stage) for stage in stages_of(graph) if stage is not None)
        # Not chainable, but most of the work of some networks: about one instruction for each weight.
        weights = (graph.inputs_of(node)[1] for node in graph.nodes if isinstance(node.operator, FullyConnected))
        return chainable + sum(tensor.elements for tensor in weights) * _PORTABLE.product / 3

    def added(self, chain: Chain) -> float:
        """Return how many more instructions ``chain`` executes than its operators one after the other.

        The parts are those of the rules above: copies, steps before the first row, calls, and pixels that blocks waste.
        """
        rates = self._rates(chain.stages[0])
        steps = chain.steps - chain.first_step
        # A line buffer keeps its rows at fixed addresses, since kernels need contiguous rows: a ring would wrap inside
        # a window.
        moved = sum(steps * lines.kept * lines.row for lines in chain.buffers)
        moved += chain.lines[0].image.size if chain.copied else 0
        # ``first_step`` is 0 or negative: the steps before the first output row run only to fill the buffers.
        run_up = sum(-chain.first_step * lines.count * lines.row for lines in chain.buffers)
        total = (moved + run_up) * rates.moved
        for stage, lines in zip(chain.stages, chain.lines[1:], strict=True):
            inside = _steps_inside(lines, chain.first_step, chain.steps)
            again = inside * lines.count / lines.image.shape[1] - 1  # rows outside the image
            total += self._stage(stage, lines.count, inside) + again * self._alone(stage)
        return total

    def reading(self, lowered: LoweredChain, free: int) -> float:
        """Return the cycles that reading filters from flash takes, and copying those for which there is memory.

        ``free`` is the memory that the chain may have. 0 for cores other than the Cortex-M4: their loads overlap.
        """
        if self.settings.cpu.architecture != "armv7e-m" or self.settings.is_dual_issue:
            return 0.0
        chain, total, left = lowered.chain, 0.0, free - lowered.offsets[-1]
        for call, lines in zip(lowered.calls, chain.lines[1:], strict=True):
            if call.blocks:
                copied = call.with_room(left).scratch - call.scratch
                step = copied * _COPIED + call.blocks * (call.filter_size - copied) * _READ
                total += _steps_inside(lines, chain.first_step, chain.steps) * step
        return total

    def _stage(self, stage: Stage, rows: int, steps: int) -> float:
        rates = self._rates(stage)
        calls = steps * rates.call
        if isinstance(stage.node.operator, DepthwiseConv2D):
            read_again = steps * stage.reach.kept * stage.source.shape[2] * stage.source.shape[3]
            # The kernel computes four channels at a time, and each such group costs about as much as a call.
            return calls + read_again * rates.again + steps * stage.source.shape[3] / 4 * rates.call
        if isinstance(stage.node.operator, Conv2D):
            pixels = rows * stage.output.shape[2]
            wasted = -pixels % rates.block / pixels
            # In a line buffer, padding costs as much as other rows; at the border of an image, it costs extra.
            border = _BORDER * (stage.reach.before + stage.reach.after) / stage.source.shape[1]
            return calls + max(0.0, wasted - border) * self._alone(stage)
        return calls

    def _alone(self, stage: Stage) -> float:
        rates = self._rates(stage)
        if isinstance(stage.node.operator, Convolution):
            product = rates.depthwise if isinstance(stage.node.operator, DepthwiseConv2D) else rates.product
            # The kernels' loop over products and their requantisation scale separately, so that both have a rate of
            # their own.
            return stage.work * product + stage.output.elements * rates.output
        return stage.work * rates.element

    def _rates(self, stage: Stage) -> _Rates:
        wide = stage.output.dtype is DType.INT16
        # Other types, such as float32, have only portable kernels: DSP and MVE code exists for int8 and int16.
        if stage.output.dtype is not DType.INT8 and not wide:
            return _PORTABLE
        if self.settings.has("mve"):
            return _MVE_INT16 if wide else _MVE
        if self.settings.has("dsp"):
            return _DSP_INT16 if wide else _DSP
        return _PORTABLE


def _steps_inside(lines: ImageRows, first: int, end: int) -> int:
    """Return how many of the steps ``first`` to ``end`` - 1 compute a row of the image."""
    # Double negation rounds up: the first step whose rows all lie behind the last row of the image.
    behind = -((lines.lead - lines.image.shape[1]) // lines.count)
    return min(end, behind) - max(first, -lines.lead // lines.count)
