"""Lower a chain of operators that are executed row by row: a loop over steps calls each operator on a few rows.

A chain is a sequence of operators on images in which each output row depends on a few input rows only, such as
convolutions, pools and additions. If they run one after the other, each image between them is complete in memory. In a
chain, only a few rows of it exist at any time, in a line buffer. ``passes/fusion.py`` decides which operators form a
chain, ``chains.py`` which rows each of them computes in each step, and this module writes the loop.

The data, for each image of the chain (``ImageRows``):

- ``count``: the rows that a step computes. An operator with stride 2 doubles the number for its input.
- ``kept``: the rows before these that are still in the buffer, because they are read again. A filter of three rows with
  stride 1 needs two.
- ``lead``: how many rows the image is ahead; step s computes the rows s * ``count`` + ``lead`` and following.

The buffer has ``kept`` + ``count`` rows. The rules of a step, for each operator in turn:

1. It runs if any of its rows is inside the image. It reads its buffer from the beginning and writes after the kept rows
   of the next one; the first operator may read the complete image, and the last one writes to the result.
2. Then the kept rows of the next step move to the beginning of the buffer that it read.
3. Rows above and below an image are filled with the stored value of 0, which is the padding of the operator that reads
   them. So this is lowered without padding above and below, and the borders need no code of their own.
4. Steps before 0 only fill buffers. The loop counts down if the output is in place of a smaller input.

Each operator is lowered by the file of its family, as an operator on images of a few rows, in a graph with so much
other memory that its kernel may use scratch memory (``lower_stage``). All operators share the scratch memory, after the
buffers, and the constants of each get its position in the chain as a suffix.

For example, two convolutions, 3x3 with padding on an image of 8 rows of 32 bytes, one row in a step::

    image           count   kept   lead   buffer
    x, the input    1       2      2      96 bytes, because of its padding
    a, between      1       2      1      96 bytes
    y, the output   1       0      0      none

    step -2   copy row 0 of x, fill row -1 of a, which is padding
    step -1   copy row 1 of x, compute row 0 of a
    step 0    copy row 2 of x, compute row 1 of a and row 0 of y
    ...
    step 7    fill row 9 of x and row 8 of a, compute row 7 of y

The C has one loop::

    for (int32_t step = -2; step < 8; step++) {
        mlf_lines_copy(&lines0, step, (const int8_t *)image0, buffer0, zero0);
        if (mlf_lines_inside(&lines1, step)) {
            ... the call of the first convolution on 3 rows
        }
        mlf_lines_keep(&lines0, buffer0);
        mlf_lines_pad(&lines1, step, buffer1, zero1);
        if (step >= 0) {
            ... the call of the second one
        }
        mlf_lines_keep(&lines1, buffer1);
    }

The 192 bytes of both buffers replace the 256 bytes of ``a``. The larger the image, the more a chain saves.

An image between the operators may have several readers in the chain, such as a residual block's input: its buffer then
keeps rows until the last of them has read them, so that the others begin to read at an offset. The second operand of an
addition, multiplication or subtraction may also be a complete image. Tensors that do not have four dimensions, or have
a batch of more than one image, are not chained. No row is computed twice. The cost of a chain is that rows are copied,
that kernels are called for a few pixels, and that steps at the borders may compute rows outside of an image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from mlfbuild.library.cgen import aligned
from mlfbuild.native.graph import Graph, Node, Operator, Tensor
from mlfbuild.native.graph.bases import Convolution
from mlfbuild.native.graph.ops import Pool2D, Reshape
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.lowering.chains import Chain, ImageRows, Stage, whole_images
from mlfbuild.native.lowering.common.dsp import tensors_beside_rows
from mlfbuild.native.lowering.trained import trained

Lower = Callable[[Graph, Node], KernelCall]

# A call on few rows must not be refused scratch memory because its own graph is small.
_SPARE = 1 << 20
"""Bytes of spare memory that a call for a few rows may use, because complete images determine the size of an arena."""
_SOURCE, _OPERAND, _OUTPUT = "\0source", "\0operand", "\0output"


@dataclass(frozen=True)
class LoweredChain:
    """The calls of a chain's stages on the rows of a step, and the layout of its scratch memory."""

    chain: Chain
    calls: tuple[KernelCall, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets in scratch memory of each buffer, then of the scratch memory that the calls share."""
        # Buffers begin at multiples of 16 bytes, like tensors in the arena.
        return tuple(accumulate((aligned(lines.size) for lines in self.chain.buffers), initial=0))

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory."""
        # Calls run one after the other, so that they share one piece.
        return self.offsets[-1] + max((call.scratch for call in self.calls), default=0)


def lower_stage(graph: Graph, stage: Stage, rows: int, lower: Lower) -> KernelCall:
    """Return the call that computes ``rows`` rows of the output of ``stage`` from the input rows that they need.

    ``lower`` is ``dispatch.lower`` with the settings. Tensors of the call have the names of placeholders, so that equal
    stages have equal calls; ``lower_chain`` replaces them by line buffers.
    """
    # The rows that so many output rows read: all steps but one, and one whole window.
    strips = {stage.source.name: _strip(_SOURCE, stage.source, (rows - 1) * stage.reach.stride + stage.reach.rows)}
    if stage.operand is not None:
        strips[stage.operand.name] = _strip(_OPERAND, stage.operand, rows)
    output = _strip(_OUTPUT, stage.output, rows)
    constants = {tensor.name: tensor for tensor in graph.inputs_of(stage.node).present if tensor.constant}
    inputs = tuple(strips[name].name if name in strips else name for name in stage.node.inputs)
    # The names of the strips are fixed, so that equal stages have equal calls.
    alone = Node(stage.node.name, _without_padding(stage.node.operator), inputs, (output.name,))
    return lower(_beside_spare_memory(graph.name, [*strips.values(), output, *constants.values()], alone), alone)


def _strip(name: str, image: Tensor, rows: int) -> Tensor:
    return replace(image, name=name, shape=(1, rows, *image.shape[2:]))


def _without_padding(operator: Operator) -> Operator:
    if isinstance(operator, Convolution | Pool2D):
        # The rows of padding are in the line buffer; columns are still padded by the kernel.
        return replace(operator, padding=((0, 0), operator.padding[1]))
    return operator


def _beside_spare_memory(name: str, tensors: list[Tensor], node: Node) -> Graph:
    """Return a graph of ``node`` and nodes that need more memory than it, so that its call may use scratch memory."""
    spare = tensors_beside_rows(_SPARE, 3)
    others = [Node("spare", Reshape(), (a.name,), (b.name,)) for a, b in pairwise(spare)]
    inputs = [tensor.name for tensor in tensors if tensor.name in node.inputs and not tensor.constant]
    return Graph(name, [*tensors, *spare], [node, *others], [*inputs, spare[0].name], [*node.outputs, spare[-1].name])


def lower_chain(lowered: LoweredChain) -> KernelCall:
    """Return the call of all operators of a chain; its inputs are those of ``whole_images``.

    The body is a loop over the steps of the chain. Its scratch memory holds the line buffers, then the scratch memory
    of the calls, which run one after the other and share it.
    """
    printing = _Printing(lowered)
    chain = lowered.chain
    images = whole_images(chain.stages)
    # ``void *``, because images of a chain may have different types.
    whole = [Parameter("const void *", f"image{at}", name) for at, name in enumerate(images)]
    result = Parameter("void *", "result", chain.stages[-1].output.name)
    memory = Parameter("int8_t *", "memory", ScratchBuffer(lowered.scratch))
    body = tuple(printing.lines())
    words = [call.operator for call in lowered.calls]

    def grown(free: int) -> tuple[int, tuple[str, ...]]:
        # All calls share the memory after the buffers, one after the other.
        left = free - lowered.offsets[-1]
        faster = replace(lowered, calls=tuple(call.with_room(left) for call in lowered.calls))
        return faster.scratch, tuple(_Printing(faster).lines())

    return KernelCall(
        # The name of the function has the first and the last operator.
        f"{words[0]}_to_{words[-1]}" if len(words) > 1 else f"{words[0]}_in_place",
        "line_buffer.h",
        (*whole, *printing.parameters.values(), result, memory),
        body,
        _overwrites(lowered),
        tuple(dict.fromkeys(call.header for call in lowered.calls)),
        grown=grown,
        parts=lowered.calls,
    )


def _overwrites(lowered: LoweredChain) -> tuple[int, ...]:
    """Return the positions of the complete images that the output may overwrite."""
    chain = lowered.chain
    last, overwrites = chain.stages[-1], lowered.calls[-1].overwrites
    positions = [0] if chain.in_place else []
    operand, images = last.operand, whole_images(chain.stages)
    if operand is not None and operand.name in images[1:]:
        # Only if the kernel of the last operator permits it for its own tensors.
        if_alone = last.node.inputs.index(operand.name) in overwrites
        positions += [images.index(operand.name)] if if_alone else []
    return tuple(positions)


class _Printing:
    """The body of a chain's function, and its parameters for the constants of its calls."""

    def __init__(self, lowered: LoweredChain) -> None:
        self.chain = lowered.chain
        self.lowered = lowered
        self.parameters: dict[str, Parameter] = {}
        first = 0 if self.chain.copied else 1
        # Buffer 0 exists only if the input is copied; the numbers of the others do not change.
        self._offset = {first + at: offset for at, offset in enumerate(lowered.offsets)}
        self._end = len(self.chain.stages)

    def lines(self) -> Iterator[str]:
        """Yield the statements."""
        chain = self.chain
        buffers = [at for at in range(self._end) if at > 0 or chain.copied]
        for at in buffers:
            yield from _struct_lines(at, chain.lines[at])
            yield f"int8_t *const buffer{at} = memory + {self._offset[at]};"
            if chain.lines[at].kept or at == 0 or not _always_inside(chain, chain.lines[at]):
                yield f"const int32_t zero{at} = {_padding(chain.lines[at].image)};"
        for at in buffers:
            # Rows above the image, before the first step.
            if chain.lines[at].kept:
                yield f"mlf_lines_start(&lines{at}, buffer{at}, zero{at});"
        if chain.backward:
            yield f"for (int32_t step = {chain.steps - 1}; step >= 0; step--) {{"
        else:
            yield f"for (int32_t step = {chain.first_step}; step < {chain.steps}; step++) {{"
        if chain.copied:
            yield "    mlf_lines_copy(&lines0, step, (const int8_t *)image0, buffer0, zero0);"
        for at, (stage, call) in enumerate(zip(chain.stages, self.lowered.calls, strict=True)):
            yield from (f"    {line}" for line in self._stage(at, stage, call))
        yield "}"

    def _stage(self, at: int, stage: Stage, call: KernelCall) -> Iterator[str]:
        made = self.chain.lines[at + 1]
        last = at + 1 == self._end
        # Then neither the test nor the padding is printed, which saves both in every step.
        always = _always_inside(self.chain, made)
        if always:
            yield "{"
        else:
            # The output of a chain never lies outside for steps from 0 on.
            yield "if (step >= 0) {" if last else f"if (mlf_lines_inside(&lines{at + 1}, step)) {{"
        yield from (f"    {line}" for line in self._call(at, stage, call))
        yield "}"
        for read in self._read_last(at):
            yield f"mlf_lines_keep(&lines{read}, buffer{read});"
        if not last and not always:
            yield f"mlf_lines_pad(&lines{at + 1}, step, buffer{at + 1}, zero{at + 1});"

    def _read_last(self, at: int) -> Iterator[int]:
        """Yield the numbers of buffers that keep rows, and that no later stage than the one at ``at`` reads."""
        chain = self.chain
        reads = [{source, operand or source} for source, operand in zip(chain.sources, chain.operands, strict=True)]
        for read in sorted(reads[at].difference(*reads[at + 1 :])):
            if chain.lines[read].kept and (read > 0 or chain.copied):
                yield read

    def _call(self, at: int, stage: Stage, call: KernelCall) -> Iterator[str]:
        """Yield the definitions of the parameters of ``call``, then its body."""
        values = self._strips(at, stage)
        for parameter in call.parameters:
            argument, c_type = parameter.argument, parameter.c_type
            if isinstance(argument, str) and argument in values:
                value = _cast(c_type, values[argument])
            elif isinstance(argument, ScratchBuffer):
                value = _cast(c_type, f"(memory + {self._offset[self._end]})")
            else:
                value = self._passed(at, parameter)
            # A local with the name of the call's parameter, so that its body can be printed unchanged.
            yield f"{c_type}const {parameter.name} = {value};"
        yield from call.body

    def _passed(self, at: int, parameter: Parameter) -> str:
        """Return the name of the chain's parameter that is passed to ``parameter`` of the call at ``at``."""
        name, argument = f"{parameter.name}{at}", parameter.argument
        if isinstance(argument, Constant):
            # Numbered, because several calls of a chain may have a constant of the same role.
            argument = replace(argument, name=f"{argument.name}{at}")
        self.parameters[name] = Parameter(parameter.c_type, name, argument)
        return name

    def _strips(self, at: int, stage: Stage) -> Mapping[str, str]:
        """Return the addresses of the rows that the stage at ``at`` reads and writes in a step."""
        chain, made = self.chain, self.chain.lines[at + 1]
        images = whole_images(chain.stages)
        place, first = chain.sources[at], made.lead * stage.reach.stride - stage.reach.before
        if place == 0 and not chain.copied:
            source = _rows("(const int8_t *)image0", made, chain.lines[0].row * stage.reach.stride)
        else:
            source = _row_in(chain, place, first)
        if at + 1 == self._end:
            output = _rows("(int8_t *)result", made, made.row)
        else:
            output = f"mlf_lines_new(&lines{at + 1}, buffer{at + 1})"
        strips = {_SOURCE: source, _OUTPUT: output}
        if chain.operands[at]:
            strips[_OPERAND] = _row_in(chain, chain.operands[at], made.lead)
        elif stage.operand is not None:
            image = images.index(stage.operand.name)
            row = stage.operand.size // stage.operand.shape[1]
            strips[_OPERAND] = _rows(f"(const int8_t *)image{image}", made, row)
        return strips


def _rows(image: str, made: ImageRows, row: int) -> str:
    """Return the address of the step's first row in ``image``, which has ``row`` bytes for each row of ``made``."""
    lead = f" + {made.lead * row}" if made.lead > 0 else f" - {-made.lead * row}" if made.lead < 0 else ""
    return f"({image} + step * {made.count * row}{lead})"


def _row_in(chain: Chain, place: int, row: int) -> str:
    """Return the address in the line buffer at ``place`` of what is row ``row`` in step 0."""
    offset = chain.lines[place].offset(row)
    return f"(buffer{place} + {offset})" if offset else f"buffer{place}"


def _cast(c_type: str, address: str) -> str:
    through = "const void *" if c_type.startswith("const ") else "void *"
    # Through ``void *``, because a direct cast from int8 to a wider type makes compilers warn (-Wcast-align).
    return f"({c_type})({through}){address}"


def _always_inside(chain: Chain, made: ImageRows) -> bool:
    """Return whether no step computes rows outside the image."""
    first = chain.first_step * made.count + made.lead
    return first >= 0 and (chain.steps * made.count) + made.lead <= made.image.shape[1]


def _struct_lines(at: int, lines: ImageRows) -> Iterator[str]:
    yield f"static const struct mlf_line_buffer lines{at} = {{"
    fields = {
        "row": lines.row,
        "height": lines.image.shape[1],
        "count": lines.count,
        "kept": lines.kept,
        "lead": lines.lead,
    }
    yield from (f"    .{field} = {value}," for field, value in fields.items())
    yield "};"


def _padding(image: Tensor) -> str:
    """Return the C text of the byte with which rows outside ``image`` are filled: the stored value of 0."""
    # int16 has the zero point 0, and the float 0.0 has only zero bytes.
    if image.quantization is None or image.dtype.size > 1:
        return "0"
    # memset() converts it to an unsigned byte.
    return trained(image.quantization.zero_point)
