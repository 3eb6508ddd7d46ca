"""C text of calls of CMSIS-NN: its structs as constants and locals, and what a file with such calls begins with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from mlfbuild.compilers.native.cmsis_nn.layer import DSP, FEATURES, MVE, PLAIN, Layer
from mlfbuild.compilers.native.literals import braces, integer
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter, Scratch
from mlfbuild.graph import Array
from mlfbuild.graph.quantize import Rescale, rescale_arrays
from mlfbuild.library import ExternalDependency

DEPENDENCY = ExternalDependency("cmsis-nn", "https://github.com/ARM-software/CMSIS-NN", "git", "v7.0.0")
"""What archives wish for whose code calls CMSIS-NN."""

_MACROS = {
    MVE: "defined(ARM_MATH_MVEI)",
    DSP: "defined(ARM_MATH_DSP) && !defined(ARM_MATH_MVEI)",
    PLAIN: "!defined(ARM_MATH_DSP) && !defined(ARM_MATH_MVEI)",
}
LANES = 4
"""Channels that code for MVE reads at a time, also where fewer are left."""


def preamble(prefix: str, features: Collection[str]) -> str:
    """Return what a C file says before its first call: the header, and what it must have been compiled with.

    ``features`` are those of ``FEATURES`` that every call of the file is right for; ``prefix`` begins all its names.
    """
    lines = [
        "#include <arm_nnfunctions.h>",
        "",
        "#ifdef CMSIS_NN_USE_SINGLE_ROUNDING",
        '#error "CMSIS_NN_USE_SINGLE_ROUNDING changes results: compile CMSIS-NN and this model without it"',
        "#endif",
    ]
    for each in FEATURES:
        if each not in features:
            lines += [
                f"#if {_MACROS[each]}",
                f'#error "no scratch memory is planned for CMSIS-NN with {each}: compile the model for this processor"',
                "#endif",
            ]
    lines += [
        "#if defined(__GNUC__)",
        "/* Functions must have the parameters that the calls below are made for: those of CMSIS-NN v7.0.0. */",
        '#pragma GCC diagnostic error "-Wimplicit-function-declaration"',
        '#pragma GCC diagnostic error "-Wincompatible-pointer-types"',
        '#pragma GCC diagnostic error "-Wint-conversion"',
        "/* Does not compile with earlier versions, where this function has another type. */",
        f"typedef char {prefix}_needs_cmsis_nn_v7_0_0[",
        "    __builtin_types_compatible_p(",
        "        __typeof__(&arm_convolve_s8),",
        "        arm_cmsis_nn_status (*)(const cmsis_nn_context *, const cmsis_nn_conv_params *,",
        "            const cmsis_nn_per_channel_quant_params *, const cmsis_nn_dims *, const int8_t *,",
        "            const cmsis_nn_dims *, const int8_t *, const cmsis_nn_dims *, const int32_t *,",
        "            const cmsis_nn_dims *, const cmsis_nn_dims *, int8_t *))",
        "        ? 1",
        "        : -1];",
        "#endif",
    ]
    return "\n".join(lines)


def wishes_of(calls: Iterable[Call]) -> tuple[ExternalDependency, ...]:
    """Return what an archive with ``calls`` says that it needs."""
    return (DEPENDENCY,) if any(call.cmsis_nn for call in calls) else ()


def includes(prefix: str, calls: Iterable[Call]) -> tuple[str, ...]:
    """Return the ``preamble`` of a C file with ``calls``, a blank line before it; nothing where none needs it."""
    features = [call.cmsis_nn for call in calls if call.cmsis_nn]
    return ("", preamble(prefix, frozenset.intersection(*features))) if features else ()


def tile(pair: Sequence[int]) -> str:
    """Return a ``cmsis_nn_tile``, width first, of (height, width)."""
    return braces((pair[1], pair[0]))


def params(name: str, c_type: str, fields: dict[str, str]) -> Parameter:
    """Return the parameter for a constant struct ``c_type`` of the library, with ``fields`` of C text."""
    text = "\n".join(("{", *(f"    .{field} = {value}," for field, value in fields.items()), "}"))
    words = sum(1 + value.count(",") for value in fields.values())
    return Parameter(f"const {c_type} *", name, Constant(name, c_type, text, 4 * words))


def convolution_fields(layer: Layer, offsets: tuple[int, int], clamp: tuple[int, int]) -> dict[str, str]:
    """Return the fields that the params of all convolutions have; ``offsets`` are added to inputs and to outputs."""
    return {
        "input_offset": integer(offsets[0]),
        "output_offset": integer(offsets[1]),
        "stride": tile(layer.stride),
        "padding": tile(layer.padding),
        "dilation": tile(layer.dilation),
        "activation": braces(clamp),
    }


def dims(name: str, sizes: Iterable[int]) -> str:
    """Return a local ``cmsis_nn_dims`` of four sizes."""
    return f"const cmsis_nn_dims {name} = {braces(list(sizes))};"


def image_dims(name: str, batches: int, image: Sequence[int], channels: int) -> str:
    """Return a local ``cmsis_nn_dims`` of an image."""
    return dims(name, (batches, *image, channels))


def context(size: int) -> str:
    """Return the local ``context`` of a call with ``size`` bytes of scratch memory."""
    return f"const cmsis_nn_context context = {f'{{scratch, {size}}}' if size else '{NULL, 0}'};"


def scratch(size: int) -> tuple[Parameter, ...]:
    """Return the parameter for ``size`` bytes of scratch memory; none for 0."""
    return (Parameter("int8_t *", "scratch", Scratch(size)),) if size else ()


def filled(values: Array, features: str) -> Array:
    """Return a vector with zeros at its end, where code for MVE reads that far."""
    flat = values.reshape(-1)
    return np.pad(flat, (0, -flat.size % LANES)) if features == MVE else flat


def channel_parameters(bias: Array, rescales: Sequence[Rescale], features: str) -> tuple[Parameter, ...]:
    """Return the parameters ``bias``, ``multipliers`` and ``shifts`` of a layer; ``bias`` is int32 or int64."""
    multipliers, shifts = rescale_arrays(rescales)
    c_type = f"int{8 * bias.itemsize}_t"
    return (
        Parameter(f"const {c_type} *", "bias", Constant.array("bias", c_type, filled(bias, features))),
        Parameter(
            "const int32_t *", "multipliers", Constant.array("multipliers", "int32_t", filled(multipliers, features))
        ),
        Parameter("const int32_t *", "shifts", Constant.array("shifts", "int32_t", filled(shifts, features))),
    )


RESCALES = (
    "/* The library only reads them. */",
    "const cmsis_nn_per_channel_quant_params rescales = {(int32_t *)multipliers, (int32_t *)shifts};",
)


def call(function: str, *arguments: str) -> tuple[str, ...]:
    """Return the statements that call ``function`` and give up where it refuses its arguments."""
    lines, line = [], f"if ({function}("
    for at, argument in enumerate(arguments):
        piece = argument + ("," if at + 1 < len(arguments) else ") != ARM_CMSIS_NN_SUCCESS) {")
        if len(line) + len(piece) > 104:
            lines.append(line.rstrip())
            line = "        "
        line += piece + " "
    return (*lines, line.rstrip(), "    return -1;", "}")
