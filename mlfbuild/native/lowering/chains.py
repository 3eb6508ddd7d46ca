"""Plan chains: sequences of operators in which each output row depends on only a few input rows.

Such operators can be executed together, a few rows at a time. They pass rows to each other in line buffers, so that
intermediate images are never complete in memory. ``stages_of`` and ``follows`` decide what may be a chain,
``plan_chain`` which rows each operator computes in each step; ``line_buffer.py`` and
``kernels/portable/convolution/line_buffer.h`` explain the terms.

The planning goes backwards, from the output, which has ``count`` rows per step, no kept rows, and a lead of 0:

    count of the input  = count of the output * stride
    kept of the input   = rows of the window - stride, at least 0
    lead of the input   = lead of the output * stride - padding above + kept

so that the rows that a step needs are in the buffer when it runs. An image with several readers, such as the one that a
residual block adds to its result, has the largest lead of them, and keeps rows until the last reader needs them. Steps
before 0 fill the buffers: as many as the largest lead needs.

For example, two 3x3 convolutions with padding, from the output backwards, two rows in a step::

    image     count   kept   lead   buffer in rows
    output    2       0      0      none
    between   2       2      1      4          0 - 1 + 2
    input     2       2      2      4          1 - 1 + 2; copied, because it needs rows of padding

The lead 1 of the image between means that its steps compute the rows -1 and 0, 1 and 2, and so on: in the first and in
the last step, one row inside and one outside of an image of even height. ``aligned`` lets it run ahead by one row more:
lead 2, kept 3, a buffer of five rows, and no step that does both.

The rules of correctness, which make ``plan_chain`` return ``None``:

1. ``rows`` divides the height of the output.
2. All readers of an image between two stages are stages of the chain, and take equally many rows of it in a step.
3. A second operand (of ADD, MUL or SUB) may be a complete image. No step may then compute rows outside of the image,
   because there are no such rows to read.
4. In place, no step overwrites rows of the input that a later step reads. The positions of writes and reads are linear
   in the step, so that the first and the last critical step decide. Pointwise chains whose output is larger run
   backwards.
5. Pools with padding above or below are not stages: they leave padding out, and a line buffer has rows of zeros there.
6. Weights are constant, and the batch is 1.

This module does not decide whether a chain is worth it (``passes/fusion.py``), and does not lower it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.bases import Unary, Window
from mlfbuild.native.graph.ops import Add, AveragePool2D, Conv2D, DepthwiseConv2D, MaxPool2D, Mul, Pad, Quantize, Sub

_SUMS = (Add, Mul, Sub)
_POINTWISE = (*_SUMS, Quantize, Unary)

_ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 16)
"""The numbers of output rows per step that are tried."""
_FEW_ROWS = (1, 2, 4, 7, 8)
"""Those that are tried in networks of more than ``_MANY`` operators."""
_MANY = 40


@dataclass(frozen=True)
class Reach:
    """The rows of the input that one row of the output needs; all values are numbers of rows."""

    rows: int = 1
    stride: int = 1
    before: int = 0
    """Padding above the image."""
    after: int = 0

    @property
    def kept(self) -> int:
        """Input rows that the next output row needs again."""
        return max(0, self.rows - self.stride)


@dataclass(frozen=True)
class Stage:
    """An operator of a chain."""

    index: int
    """The node's index in the graph."""
    node: Node
    source: Tensor
    """The output of the stage before; for the first stage, the input image of the chain."""
    operand: Tensor | None
    """The second operand of an operator with two images."""
    output: Tensor
    reach: Reach
    work: int
    """The number of products or elements that it computes."""

    @cached_property
    def source_row(self) -> int:
        """Bytes of a row of the source."""
        return self.source.size // self.source.shape[1]

    @cached_property
    def output_row(self) -> int:
        """Bytes of a row of the output."""
        return self.output.size // self.output.shape[1]


def stages_of(graph: Graph) -> tuple[Stage | None, ...]:
    """Return each node as the first stage of a chain, or ``None`` if it cannot be part of a chain.

    A node can be part of a chain if it computes rows of one image of batch size 1 from rows of the same or of adjacent
    positions. The tuple has an element for each node of ``graph``, in its order.
    """
    return tuple(_stage(graph, index, node) for index, node in enumerate(graph.nodes))


def follows(stage: Stage, stages: Sequence[Stage]) -> Stage | None:
    """Return ``stage`` as the one after ``stages``, or ``None`` if it cannot be.

    It must read the input image of ``stages`` or an output of one of them. An output comes first, as its source.
    """
    places = _places(stages)
    if stage.operand is not None and places.get(stage.operand.name, -1) > places.get(stage.source.name, -1):
        stage = replace(stage, source=stage.operand, operand=stage.source)
    name = stage.source.name
    return stage if name in places and stage.node.inputs.count(name) == 1 else None


def is_closed(stages: Sequence[Stage], readers: Mapping[str, int]) -> bool:
    """Return whether no other node needs an output of ``stages`` except the last one's.

    ``readers`` counts the nodes that read each tensor; an output of the graph counts as one more reader.
    """
    inside = Counter(name for stage in stages for name in set(stage.node.inputs))
    return all(readers[stage.output.name] == inside[stage.output.name] for stage in stages[:-1])


def _places(stages: Sequence[Stage]) -> Mapping[str, int]:
    """Return the images of a chain, and their positions in ``Chain.lines``."""
    return {stages[0].source.name: 0, **{stage.output.name: at + 1 for at, stage in enumerate(stages)}}


def _stage(graph: Graph, index: int, node: Node) -> Stage | None:
    images = [tensor for tensor in graph.inputs_of(node).present if not tensor.constant]
    outputs = graph.outputs_of(node)
    # Rows of several images would follow each other without the padding between them.
    if len(outputs) != 1 or any(len(t.shape) != 4 or t.shape[0] != 1 for t in (*images, *outputs)):
        return None
    reach = _reach(graph, node)
    if reach is None or len(images) != (2 if isinstance(node.operator, _SUMS) else 1):
        return None
    operand = images[1] if len(images) == 2 else None
    if operand is not None and not images[0].shape == operand.shape == outputs[0].shape:
        return None
    weights = graph.inputs_of(node)[1] if isinstance(node.operator, Conv2D | DepthwiseConv2D) else None
    products = 1 if weights is None else weights.elements // outputs[0].shape[3]
    return Stage(index, node, images[0], operand, outputs[0], reach, outputs[0].elements * products)


def _reach(graph: Graph, node: Node) -> Reach | None:
    operator = node.operator
    # Elements beside a row, or channels, are added to each row alone.
    if isinstance(operator, _POINTWISE) or (isinstance(operator, Pad) and operator.paddings[1] == (0, 0)):
        return Reach()
    if isinstance(operator, Conv2D | DepthwiseConv2D):
        weights = graph.inputs_of(node)[1]
        return _window_reach(operator.window(weights)) if weights.constant else None
    # Pools skip padding, which a line buffer would contain as rows.
    if isinstance(operator, AveragePool2D | MaxPool2D) and operator.padding[0] == (0, 0):
        return _window_reach(operator.window())
    return None


def _window_reach(window: Window) -> Reach:
    return Reach((window.filter[0] - 1) * window.dilation[0] + 1, window.stride[0], *window.padding[0])


@dataclass(frozen=True)
class ImageRows:
    """The rows of an image that a step computes; for all images but the last, they are in a line buffer."""

    image: Tensor
    count: int
    kept: int
    lead: int
    """The first row that step 0 computes."""
    row: int
    """Bytes of a row."""

    @property
    def size(self) -> int:
        """Bytes of the line buffer."""
        return (self.count + self.kept) * self.row

    @property
    def whole(self) -> bool:
        """Whether no step computes rows both inside and outside the image."""
        return self.lead % self.count == 0 and self.image.shape[1] % self.count == 0

    def offset(self, row: int) -> int:
        """Return the bytes before a row in the line buffer; ``row`` is what step 0 reads."""
        return (row - self.lead + self.kept) * self.row


@dataclass(frozen=True)
class Chain:
    """Stages with the rows that each of them computes in a step.

    ``lines`` are the rows of the chain's input image, then of each stage's output. Steps 0 to ``steps`` - 1 compute the
    output; those from ``first_step`` to -1 only fill the line buffers. If ``in_place``, the output overwrites the
    chain's input image.
    """

    stages: tuple[Stage, ...]
    lines: tuple[ImageRows, ...]
    first_step: int
    steps: int
    in_place: bool
    backward: bool = False
    """Whether steps count down, so that an output with longer rows can be in place."""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The position in ``lines`` of the image that each stage reads."""
        places = _places(self.stages)
        return tuple(places[stage.source.name] for stage in self.stages)

    @cached_property
    def operands(self) -> tuple[int, ...]:
        """The position in ``lines`` of each stage's second operand; 0 if it has none, or if it is a complete image."""
        places = _places(self.stages)
        return tuple(places.get(stage.operand.name, 0) if stage.operand is not None else 0 for stage in self.stages)

    @cached_property
    def copied(self) -> bool:
        """Whether rows of the input image are copied to a line buffer instead of being read in place."""
        readers = (at for at, source in enumerate(self.sources) if source == 0)
        return self.in_place or any(
            self.stages[at].reach.before > 0 or self.stages[at].reach.after > 0 or not self.lines[at + 1].whole
            for at in readers
        )

    @property
    def buffers(self) -> tuple[ImageRows, ...]:
        """The images that have a line buffer; the input image only if its rows are copied."""
        return self.lines[:-1] if self.copied else self.lines[1:-1]


def plan_chain(stages: Sequence[Stage], rows: int, *, in_place: bool, aligned: bool = False) -> Chain | None:
    """Return the chain that computes ``rows`` rows of its output in a step; ``None`` if it would not be correct.

    With ``aligned``, stages run ahead so far that no step computes rows both inside and outside the image; line buffers
    then keep more rows.
    """
    output = stages[-1].output
    # The last step would compute rows below the image.
    if output.shape[1] % rows:
        return None
    lines = [ImageRows(output, rows, 0, 0, stages[-1].output_row)]
    for at in range(len(stages) - 1, -1, -1):
        image = stages[at].source if at == 0 else stages[at - 1].output
        wanted = (_wanted(stage, image, made, inside=at > 0) for stage, made in zip(stages[at:], lines, strict=True))
        reads = [read for read in wanted if read is not None]
        counts = {read.count for read in reads}
        if len(counts) != 1:
            return None
        (count,), lead = counts, max(read.lead for read in reads)
        # The input of the chain needs no alignment: rows are copied from it one by one.
        lead += -lead % count if aligned and at > 0 else 0
        row = image.size // image.shape[1]
        lines.insert(0, ImageRows(image, count, lead - min(read.lead - read.kept for read in reads), lead, row))
    run_up = max(0, *(-(-each.lead // each.count) for each in lines))
    backward = in_place and _expands(stages)
    chain = Chain(tuple(stages), tuple(lines), -run_up, output.shape[1] // rows, in_place, backward)
    # A second operand is a complete image without rows of padding.
    operands_whole = all(
        stage.operand is None or place > 0 or made.whole
        for stage, place, made in zip(chain.stages, chain.operands, chain.lines[1:], strict=True)
    )
    return chain if operands_whole and (not in_place or _spares_input(chain)) else None


def _wanted(stage: Stage, image: Tensor, made: ImageRows, *, inside: bool) -> ImageRows | None:
    """Return the rows of ``image`` that ``stage`` reads from a line buffer to make ``made``; ``None`` if it does not.

    Second operands are in a line buffer if the image is ``inside`` the chain: its input image is complete.
    """
    reach = stage.reach
    if stage.source.name == image.name:
        lead = made.lead * reach.stride - reach.before + reach.kept
        return ImageRows(image, made.count * reach.stride, reach.kept, lead, stage.source_row)
    if inside and stage.operand is not None and stage.operand.name == image.name:
        return replace(made, image=image, kept=0)
    return None


def _expands(stages: Sequence[Stage]) -> bool:
    """Return whether each output row depends on one input row only and the output is larger than the input."""
    pointwise = all(stage.reach == Reach() for stage in stages)
    return pointwise and stages[-1].output.size > stages[0].source.size


def _spares_input(chain: Chain) -> bool:
    """Return whether no step overwrites rows of the input image that a later step reads."""
    first, last = chain.lines[0], chain.lines[-1]
    readers = [stage for stage in chain.stages if stage.operand is not None and stage.operand.name == first.image.name]
    if readers and (readers != [chain.stages[-1]] or first.row != last.row):
        return False
    if chain.backward:
        return True
    # The positions of writes and reads both grow linearly. So it is enough to check the first and the last of the steps
    # after which rows remain to be read.
    leaving = min(chain.steps, -((first.lead - first.image.shape[1]) // first.count) - 1)
    ends = {1, leaving} if leaving > 0 else set()
    return all(count * last.count * last.row <= (count * first.count + first.lead) * first.row for count in ends)


def whole_images(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return the names of the complete images that a chain of ``stages`` reads, its input image first, each once."""
    made = {stage.output.name for stage in stages}
    operands = (stage.operand.name for stage in stages if stage.operand is not None)
    return tuple(dict.fromkeys((stages[0].source.name, *(name for name in operands if name not in made))))


def rows_to_try(output: Tensor, nodes: int) -> tuple[int, ...]:
    """Return the numbers of output rows per step to try in a network of ``nodes`` operators.

    Only divisors of the height are possible, because the last step would compute rows below the image. Networks of many
    operators try fewer, so that they compile in seconds.
    """
    candidates = _ROWS if nodes <= _MANY else _FEW_ROWS
    return tuple(rows for rows in candidates if output.shape[1] % rows == 0)
