"""The lowered form of an operator: a call of a C function whose body calls a kernel with literal sizes.

A node of the graph becomes one ``KernelCall``. Later steps take from it what they must know of a kernel: the memory
plan reads ``scratch``, ``overwrites``, ``updates`` and ``grown``, the printer the rest. So they do not know kernels.

The data of a call:

- ``parameters``: what differs between nodes of equal shapes. The argument of a parameter is the name of a tensor, whose
  address the memory plan decides; a ``Constant``, which becomes an array or a struct in flash; or a ``ScratchBuffer``,
  which is memory in the arena while the call runs.
- ``body``: the statements of the function. Sizes, strides and flags are literal numbers in it, so that the C compiler
  unrolls loops and removes branches.
- ``header`` and ``more_headers``: the kernels that the body calls.
- ``overwrites``, ``updates`` and ``grown``: what the kernel permits the memory plan to do.

The rules that every ``lower`` function keeps:

1. Nodes whose operator word, parameters (C types and names) and body are equal share one function in C. So zero points,
   multipliers and tables are constants that the call passes, never numbers in the body.
2. Equal constants of one class (weights, biases or tables) are stored once. The bytes and the C type decide that, not
   the tensor that they came from.
3. ``overwrites`` lists only inputs of which the kernel reads each element before it writes to the same address.
4. The content of scratch memory is undefined before and after the call.
5. A constant has the order in which its kernel reads it. ``Constant.about`` names the header that describes the order.
6. If a node is beyond a limit of its kernel, ``lower`` raises the error that ``unsupported`` returns.

For example, a LOGISTIC of 64 int8 elements is a lookup in a table of 256 bytes, which its scales determine::

    KernelCall(
        "logistic",
        "unary.h",
        (
            Parameter("const int8_t *", "table", Constant.array("table", "int8_t", results)),
            Parameter("const int8_t *", "input", "x"),
            Parameter("int8_t *", "output", "y"),
        ),
        ("mlf_lookup_int8(table, 64, input, output);",),
        overwrites=(0,),
    )

A second LOGISTIC of 64 elements with other scales has the same word, parameters and body. The C file then has one
function and two tables. As position 0 is in ``overwrites``, ``y`` may get the address of ``x`` if both are in the arena
and no later node reads ``x``.

This module does not choose a kernel: that is the task of the families' files (``dispatch`` finds them). It does not
assign addresses (``memory/plan.py``) and writes no C file (``printing``). The text of a large array is made when it is
written, because it is several times as large as the array (``Numbers``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import NetworkRows
from mlfbuild.library.cgen import integer, record_lines
from mlfbuild.native.graph import Array, ConstantBudget, Graph, HalfEvenRescale, Node, Rescale
from mlfbuild.native.lowering.numbers import Numbers, Origin

# Differences from the zero point have at most 8 bits and a sign.
LARGEST_SUM = 1 << 23
"""The number of int8 values minus a zero point whose sum always fits in 32 bits."""
_KERNEL = re.compile(r"\b(mlf_\w+)\(")
CHANGE = "change the model, or use another compiler (tvm or command)"

NOT_EXACT = "its sums or its short rounding are not exact for these weights and scales"
"""The reason why a kernel that saves instructions by narrower numbers does not serve a node."""


@dataclass(frozen=True)
class Constant:
    """A constant in flash that one argument points to.

    Made by ``array`` (numbers), ``packed`` (words with several values), ``records`` (an array of structs) or
    ``struct``. Equal constants are printed once, whichever nodes they belong to: ``about`` and ``origin`` do not count
    for that.
    """

    name: str
    """Its role in the operator, such as ``filter``."""
    c_type: str
    initializer: str | Numbers
    size: int
    """Bytes."""
    length: int | None = None
    """Number of elements of an array; ``None`` for a single struct."""
    numbers: Callable[[], Array] | None = field(default=None, compare=False)
    """Makes an array with the bytes of ``initializer``, which determines it; ``None`` for a single struct."""
    about: str = field(default="", compare=False)
    """A comment about the order of the elements, which names the kernel header that describes it."""
    origin: Origin | None = field(default=None, compare=False)
    """``None`` until it is known, and for the initial values of states."""
    words: bytes = field(default=b"", compare=False)
    """The bytes of a single struct."""
    room: int = field(default=0, compare=False)
    """The most bytes with any values of this structure, if that is more than ``size``."""
    fixed: bool = field(default=False, compare=False)
    """Whether it does not depend on trained values, and is part of the code: elements are indices or offsets."""

    @property
    def space(self) -> int:
        """The bytes that a blob reserves for it."""
        return max(self.size, self.room)

    def content(self) -> bytes:
        """Return its bytes, little-endian as on every core."""
        return self.words if self.numbers is None else np.ascontiguousarray(self.numbers()).tobytes()

    @classmethod
    def array(
        cls, name: str, c_type: str, values: Array, again: Callable[[], Array] | None = None, *, order: str = ""
    ) -> Constant:
        """Return an array of numbers; with ``again``, which makes it when it is printed, it needs no memory until then.

        ``order`` is the kernel header that describes the order of the numbers, if it is not that of the model.
        """
        numbers = again or (lambda: values)
        about = f"In the order that {order} describes." if order else ""
        return cls(name, c_type, Numbers(values, again), values.nbytes, values.size, numbers, about)

    @classmethod
    def packed(
        cls,
        values: Array,
        layout: str,
        again: Callable[[], Array | None] | None = None,
        name: str = "packed",
        room: int = 0,
    ) -> Constant:
        """Return an array of 32-bit words that hold several values each, as the kernel header ``layout`` describes.

        ``values`` are int32, for a parameter ``const int32_t *``; in C the words are unsigned and hexadecimal.
        """
        numbers = (lambda: values) if again is None else partial(_repeated, again)
        text = Numbers(values, None if again is None else numbers, hexadecimal=True)
        about = f"Packed as {layout} describes."
        return cls(name, "uint32_t", text, values.nbytes, values.size, numbers, about, room=room)

    @property
    def is_packed(self) -> bool:
        """Whether ``packed`` made it: its type in C is not that of the parameter, which is signed."""
        return self.c_type == "uint32_t"

    @classmethod
    def records(
        cls, name: str, c_type: str, records: Sequence[str], per_line: int, numbers: Callable[[], Array]
    ) -> Constant:
        """Return an array of structs from their initialisers; ``numbers`` makes the same as ``record_words``."""
        initializer = "\n".join(("{", *record_lines(records, per_line), "}"))
        return cls(name, f"struct {c_type}", initializer, numbers().nbytes, len(records), numbers)

    @classmethod
    def struct(cls, name: str, c_type: str, fields: Mapping[str, int | Rescale | HalfEvenRescale]) -> Constant:
        """Return a struct of 32-bit integers and rescalings."""
        lines = [
            f"    .{field} = {integer(value) if isinstance(value, int) else rescale_text(value)},"
            for field, value in fields.items()
        ]
        words = b"".join(_struct_words(value) for value in fields.values())
        return cls(name, f"struct {c_type}", "\n".join(("{", *lines, "}")), len(words), words=words)

    @classmethod
    def rescale(cls, name: str, rescale: Rescale) -> Constant:
        """Return a ``struct mlf_rescale``."""
        return cls(name, "struct mlf_rescale", rescale_text(rescale), 8, words=_struct_words(rescale))


@dataclass(frozen=True)
class ScratchBuffer:
    """Memory in the arena that only this call uses; its content before and after is undefined.

    It counts for the arena only while the call runs, so that calls can share the same bytes.
    """

    size: int
    """Bytes."""


@dataclass(frozen=True)
class ParameterBlock:
    """The constants of a call, which follow each other in a blob (``trained``)."""

    parts: tuple[tuple[int, Constant], ...]
    """(offset in the block, constant) in ascending order."""
    size: int
    """Bytes, a multiple of the alignment of each constant."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the function and its argument: a constant, scratch memory, or the name of a tensor.

    An argument is passed to a function that several nodes share; everything that is not a parameter is part of its
    body, so that two nodes share a function only if all their other numbers are equal.
    """

    c_type: str
    """The pointer's type: ``const int8_t *``."""
    name: str
    argument: Constant | ScratchBuffer | ParameterBlock | str


@dataclass(frozen=True)
class Candidate:
    """A kernel that may compute a node."""

    kernel: str
    """The stem of its header in most cases: the operator, then the CPU extension, such as ``conv2d_dsp``."""
    lower: Callable[[], KernelCall | str]
    """Returns the call, or a reason why the kernel does not serve the node; raises ``UnsupportedModelError``."""
    obstacle: str = ""
    """Why it does not serve the node, known without lowering: the CPU's features in most cases; empty if unknown."""


@dataclass(frozen=True)
class KernelChoice:
    """The candidates of a node in the order in which they were tried."""

    candidates: tuple[Candidate, ...]
    refused: tuple[str, ...]
    """Why each of the candidates before the chosen one does not serve the node."""


@dataclass(frozen=True)
class KernelCall:
    """The lowered form of a node."""

    operator: str
    """A word for the function's name, such as ``conv2d``."""
    header: str
    """The kernel header that the body needs."""
    parameters: tuple[Parameter, ...]
    body: tuple[str, ...]
    """C statements, one a line, not indented."""
    overwrites: tuple[int, ...] = ()
    """Positions of the inputs that the (only) output may overwrite, because the kernel reads each element before it
    writes to the same address."""
    more_headers: tuple[str, ...] = ()
    """Other kernel headers that the body needs."""
    updates: tuple[tuple[int, int], ...] = ()
    """(input, output) positions of states that the kernel updates in place, through one pointer."""
    grown: Callable[[int], tuple[int, tuple[str, ...]]] | None = field(default=None, compare=False)
    """If more scratch memory than necessary makes the call faster: from the bytes that are free, the scratch memory
    that it then uses and its body."""
    blocks: int = field(default=0, compare=False)
    """How often it reads a filter that ``grown`` copies to scratch memory: once for each block of pixels."""
    choice: KernelChoice | None = field(default=None, compare=False, repr=False)
    """The kernels among which this one was chosen; ``None`` if the operator and its type have only one."""
    parts: tuple[KernelCall, ...] = field(default=(), compare=False, repr=False)
    """The calls of the nodes of a chain for the rows of a step."""
    may_fail: bool = False
    """Whether the body returns an int32_t, 0 on success: another number ends the run."""
    device_memory: int = 0
    """Bytes of memory of another device that the body names (``npu_workspace``); calls share it."""
    by_rows: NetworkRows | None = field(default=None, compare=False)
    """The estimate by which operators are computed row by row; ``None`` for a single call for whole tensors."""

    @property
    def constants(self) -> int:
        """Bytes of the constants that it passes; some may be those of other calls, as equal ones are stored once."""
        return sum(each.argument.size for each in self.parameters if isinstance(each.argument, Constant))

    @property
    def filter_size(self) -> int:
        """Bytes of the constant that is passed as ``filter``; 0 if there is none."""
        filters = (each.argument for each in self.parameters if each.name == "filter")
        return sum(each.size for each in filters if isinstance(each, Constant))

    @property
    def kernel(self) -> str:
        """The C function of the kernel that the last statement with a call calls."""
        return next((found[1] for line in self.body[::-1] if (found := _KERNEL.search(line))), self.operator)

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory of all parameters."""
        return sum(
            parameter.argument.size for parameter in self.parameters if isinstance(parameter.argument, ScratchBuffer)
        )

    def with_room(self, free: int) -> KernelCall:
        """Return the call that is fastest with up to ``free`` bytes of scratch memory."""
        if self.grown is None or free <= self.scratch:
            return self
        scratch, body = self.grown(free)
        parameters = tuple(
            replace(each, argument=ScratchBuffer(scratch)) if isinstance(each.argument, ScratchBuffer) else each
            for each in self.parameters
        )
        return replace(self, parameters=parameters, body=body)


def check_constants(graph: Graph, calls: Sequence[KernelCall], budget: ConstantBudget | None) -> None:
    """Raise ``UnsupportedModelError`` if the constants of ``calls``, equal ones counted once, exceed ``budget``.

    Each node takes only what no earlier call has, so that the error names the node whose constants do not fit any more.
    ``budget`` is ``None`` for graphs that no file limits.
    """
    if budget is None:
        return
    known: set[Constant] = set()
    for node, call in zip(graph.nodes, calls, strict=True):
        made = {each.argument for each in call.parameters if isinstance(each.argument, Constant)} - known
        budget.take(f"{graph.name}: {node.place}", sum(constant.space for constant in made))
        known |= made


def unsupported(node: Node, reason: str) -> UnsupportedModelError:
    """Return the error that ``node`` is beyond a limit of its kernel; ``reason`` names the limit.

    The caller raises it. It is for networks that are valid and whose operator is supported: the file is not damaged.
    """
    return UnsupportedModelError("operator-beyond-limit", place=node.place, reason=reason, hint=CHANGE)


def rescale_fields(rescale: Rescale | HalfEvenRescale) -> tuple[int, int, int]:
    """Return the members of a ``struct mlf_rescale``: multiplier, left shift, right shift."""
    return rescale.multiplier, rescale.left_shift, rescale.right_shift


def rescale_text(rescale: Rescale | HalfEvenRescale) -> str:
    """Return the initialiser of a ``struct mlf_rescale``."""
    return f"{{{', '.join(map(str, rescale_fields(rescale)))}}}"


def _struct_words(value: int | Rescale | HalfEvenRescale) -> bytes:
    if isinstance(value, int):
        # Two's complement, as the core reads a negative integer.
        return (value & 0xFFFFFFFF).to_bytes(4, "little")
    return record_words("i4,i2,i2", [rescale_fields(value)]).tobytes()


def record_words(layout: str, records: Sequence[tuple[object, ...]]) -> Array:
    """Return structs of whole words as int32, with the byte order of a little-endian processor.

    ``layout`` has numpy's names of the members' types, such as ``"i4,i2,i2"``.
    """
    return np.array(records, ",".join(f"<{each}" for each in layout.split(","))).reshape(-1).view("<i4")


def channel_table(bias: Array, rescales: Iterable[Rescale]) -> Constant:
    """Return the ``struct mlf_channel`` of each output channel; ``bias`` is int32.

    ``bias`` is [channels], with the zero point of the input folded into it (``folded_bias``) if the kernel multiplies
    stored inputs. ``rescales`` has a factor for each channel. Each takes 12 bytes of flash. Raises ``ValueError`` if
    the lengths differ.
    """
    channels = list(zip(bias.tolist(), rescales, strict=True))
    records = [f"{{{integer(value)}, {rescale_text(rescale)}}}" for value, rescale in channels]
    # The layout of ``struct mlf_channel`` in the kernels: bias, multiplier, then both shifts as 16 bits.
    words = record_words("i4,i4,i2,i2", [(value, *rescale_fields(rescale)) for value, rescale in channels])
    return Constant.records("channels", "mlf_channel", records, 3, lambda: words)


def folded_bias(bias: Array | None, weights: Array, channel_axis: int, zero_point: int) -> Array:
    """Return int32 ``bias - zero_point * sum of the channel's weights``, modulo 2**32 as the kernels add.

    With it, a kernel multiplies stored inputs instead of their differences from the zero point.
    """
    axes = tuple(axis for axis in range(weights.ndim) if axis != channel_axis)
    sums: Array = weights.sum(axis=axes, dtype=np.int64)
    start = 0 if bias is None else bias.reshape(-1).astype(np.int64)
    # Modulo 2**32: the kernels add in unsigned arithmetic, so that the result is right even if this sum is out of
    # range.
    return (start - zero_point * sums).astype(np.int32)


def struct_lines(c_type: str, name: str, fields: Mapping[str, object]) -> Sequence[str]:
    """Return a local constant struct, one field a line.

    ``fields`` maps members to C expressions. It is ``const`` and local for a reason: compilers propagate its values
    into inlined kernels, which are thus specialised for the shapes of the node.
    """
    return (f"const struct {c_type} {name} = {{", *(f"    .{field} = {text}," for field, text in fields.items()), "};")


def _repeated(again: Callable[[], Array | None]) -> Array:
    """Return the words that ``again`` makes once more."""
    words = again()
    if words is None:
        raise RuntimeError("a constant that was packed once cannot be packed again")
    return words
