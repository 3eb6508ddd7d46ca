"""Numbers that training decides, in the text of a call: literals, or elements of a blob that can be replaced.

With ``parameters: replaceable``, the code of a network must be the same bytes whatever its values are: new values then
need no new image (``library/parameter_blob``). Constants that a call passes are data already. Bodies contain the rest,
such as zero points and clamps: a lowering writes each of them as ``trained(value)``, which marks the number in the
text. At the end, ``with_literals`` removes the marks, or ``with_block`` makes the numbers elements of two arrays::

    .zero_point = trained(83)     ->     .zero_point = 83,            or     .zero_point = values[0],

``with_block`` replaces all constants of a call by one pointer to a block, in which they follow each other, the arrays
first. So a call has fewer arguments than with linked constants. What the rest of the code relies on:

1. The layout of a block depends on the call alone: a constant takes ``Constant.room`` bytes, which is the most that any
   values of this structure need.
2. Sizes, strides and counts are never marked, and a constant whose elements are indices (``Constant.fixed``) stays in
   the code. Kernels that read indices from a blob check them: ``tree_stream.h``, and those that may also get indices at
   run time, such as ``gather.h``. So a blob can change results, but no address.
3. Which kernel serves a node must not depend on its values. Kernels that need a proof about values are passed over by
   ``by_values``; those of ``READY`` have been examined for this and for rule 2, others are refused.

A static struct with a marked number becomes a local one, because its initialiser is not constant any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library.cgen import aligned, floating
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, ParameterBlock
from mlfbuild.native.settings import CodegenSettings

BLOCK_ALIGNMENT = 16
"""Bytes: that of each constant, as if it were linked."""
# C has no @ outside of strings and comments, so that a mark cannot be mistaken for code.
_MARKED = re.compile(r"@([^@:]*)(?::([^@]*))?@")
_WHOLE = re.compile(r"-?\d+")
_BY_VALUES = "is chosen by values, which parameters: replaceable leaves open"

READY = frozenset(
    f"{name}.h"
    for name in (
        "abs", "add", "add_either", "add_n", "arg_max", "atan", "atan2", "batch_matmul", "batch_matmul_int16",
        "bitwise", "cast", "comparisons", "compiler", "complex_parts", "conv2d", "conv2d_dsp",
        "conv2d_float_mve", "conv2d_float_vfp", "conv2d_int16", "conv2d_int16_dsp", "conv2d_int16_mve",
        "conv2d_long_dsp", "conv2d_mve", "conv2d_offset", "conv2d_offset_dsp", "conv2d_thumb", "conv_integer",
        "cumsum", "depthwise_conv2d", "depthwise_conv2d_dsp", "depthwise_conv2d_float_mve",
        "depthwise_conv2d_int16", "depthwise_conv2d_int16_dsp", "depthwise_conv2d_int16_mve",
        "depthwise_conv2d_mve", "depthwise_conv2d_thumb", "depthwise_conv2d_wide", "depthwise_large_dsp",
        "depthwise_scale_dsp", "determinant", "dft", "div", "dot_1x4_dsp", "elu", "erf", "exp", "filter_bank",
        "floor", "floor_div", "fourier", "fourier_dsp", "fourier_mve", "framing", "fully_connected",
        "fully_connected_float_mve", "fully_connected_in_double", "fully_connected_int16",
        "fully_connected_mve", "fully_connected_thumb", "gather", "gelu", "gru", "hard_swish", "hybrid",
        "l2_normalization", "l2_normalization_shifted", "line_buffer", "logical", "logistic", "lstm",
        "lstm_dsp", "matmul_dsp", "matmul_integer", "matmul_thumb", "maximum", "movement", "mul",
        "non_max_suppression", "pad", "pairwise_coupling", "pool2d", "pool2d_dsp", "pool2d_half_even",
        "pool2d_half_even_dsp", "pool2d_half_even_mve", "pool2d_half_up", "pool2d_half_up_dsp", "pool2d_mve",
        "pow", "quantize", "quantize_dynamic", "quantize_int32", "reduce", "reduce_half_even", "relu",
        "resize", "resize_half_up", "reverse_sequence", "sampling", "scatter", "scatter_elements", "select",
        "shift", "sin", "softmax", "spectrum", "spectrum_dsp", "spectrum_mve", "sqrt", "squared_distances",
        "svdf", "topk", "transpose_conv", "transpose_conv_int16", "transpose_conv_wide", "tree_stream",
        "unary",
    )
)  # fmt: skip
"""The kernel headers whose calls keep the rules above."""


def trained(value: float, c_type: str = "") -> str:
    """Return the C text of a number that depends on trained values, with marks that the last step replaces.

    ``c_type`` is the type that it is passed as, if that is narrower than int32: an element of a blob needs a cast.
    """
    text = str(value) if isinstance(value, (int, np.integer)) else floating(value)
    return f"@{text}:{c_type}@" if c_type else f"@{text}@"


def by_values(settings: CodegenSettings) -> str:
    """Return why a kernel that needs a proof about values cannot be a candidate; empty if it can."""
    return _BY_VALUES if settings.replaceable else ""


def settled(graph: Graph, calls: Sequence[KernelCall], *, replaceable: bool) -> list[KernelCall]:
    """Return the final ``calls`` of the nodes of ``graph``, with blocks if their values are ``replaceable``.

    Raises one ``UnsupportedModelError`` with the reasons of all nodes whose values cannot be replaced.
    """
    if not replaceable:
        return [with_literals(call) for call in calls]
    outcomes = [_attempted(node, call) for node, call in zip(graph.nodes, calls, strict=True)]
    errors = [each.within(graph.name) for each in outcomes if isinstance(each, UnsupportedModelError)]
    if errors:
        raise UnsupportedModelError.of(errors)
    return [each for each in outcomes if isinstance(each, KernelCall)]


def _attempted(node: Node, call: KernelCall) -> KernelCall | UnsupportedModelError:
    try:
        return with_block(node, call)
    except UnsupportedModelError as error:
        return error


def with_literals(call: KernelCall) -> KernelCall:
    """Return ``call`` with its marked numbers as literals; ``grown`` has been used already."""
    return replace(call, body=tuple(_MARKED.sub(r"\1", line) for line in call.body))


def with_block(node: Node, call: KernelCall) -> KernelCall:
    """Return ``call`` with one pointer to a block instead of its constants and its marked numbers.

    Constants that are ``fixed`` stay parameters. Raises ``UnsupportedModelError`` for a kernel that is not ``READY``.
    """
    unready = [header for header in (call.header, *call.more_headers) if header not in READY]
    if unready:
        kernel = unready[0].removesuffix(".h")
        raise UnsupportedModelError(
            "parameters-not-replaceable",
            place=node.place,
            reason=f"is computed by the kernel {kernel}, whose values cannot be replaced yet",
            hint="use parameters: linked for this model",
        )
    body, arrays = _numbers(call.body)
    kept = [each for each in call.parameters if not isinstance(each.argument, Constant) or each.argument.fixed]
    moved = [each for each in call.parameters if each not in kept]
    # The small ones first: an offset of at most 4,095 needs one instruction.
    moved.sort(key=lambda each: each.argument.space if isinstance(each.argument, Constant) else 0)
    parts: list[tuple[int, Constant]] = []
    lines: list[str] = []
    end = 0
    for parameter in (*arrays, *moved):
        assert isinstance(parameter.argument, Constant)
        parts.append((end, parameter.argument))
        place = f"&block[{end}]" if end else "block"
        c_type = parameter.c_type
        # By way of void, because -Wcast-align cannot know that each part of a block is aligned for its type.
        cast = "(const void *)" if c_type not in {"const int8_t *", "const uint8_t *"} else ""
        lines.append(f"{c_type}const {parameter.name} = ({c_type}){cast}{place};")
        # The space and not the size: with other values it may need more, and offsets in code must not move.
        end += aligned(parameter.argument.space, BLOCK_ALIGNMENT)
    if not parts:
        return call
    block = Parameter("const uint8_t *", "block", ParameterBlock(tuple(parts), end))
    return replace(call, parameters=(block, *kept), body=(*lines, *body))


def _numbers(body: Sequence[str]) -> tuple[tuple[str, ...], tuple[Parameter, ...]]:
    """Return ``body`` with elements of arrays for its marked numbers, and the parameters for the arrays."""
    # Equal numbers are stored twice: other values of the same network may differ in these places.
    whole: list[int] = []
    real: list[float] = []

    def element(found: re.Match[str]) -> str:
        text = found[1]
        if _WHOLE.fullmatch(text):
            whole.append(int(text))
            return f"{f'({found[2]})' if found[2] else ''}values[{len(whole) - 1}]"
        real.append(float(text.removesuffix("f")))
        return f"reals[{len(real) - 1}]"

    lines = [_MARKED.sub(element, line) for line in _with_locals(body)]
    arrays = []
    if whole:
        arrays.append(Constant.array("values", "int32_t", np.array(whole, np.int32)))
    if real:
        arrays.append(Constant.array("reals", "float", np.array(real, np.float32)))
    return tuple(lines), tuple(Parameter(f"const {each.c_type} *", each.name, each) for each in arrays)


def _with_locals(body: Sequence[str]) -> Iterator[str]:
    """Yield the lines of ``body``; a static struct with a marked number is not static."""
    for at, line in enumerate(body):
        if line.lstrip().startswith("static const struct "):
            indent = line[: len(line) - len(line.lstrip())]
            # ``static_struct_lines`` writes one field per line, so that the closing brace is alone on its line.
            end = next(behind for behind in range(at, len(body)) if body[behind] == f"{indent}}};")
            if any("@" in each for each in body[at:end]):
                yield indent + line.lstrip().removeprefix("static ")
                continue
        yield line
