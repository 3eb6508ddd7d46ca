"""The filter banks of signal processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import (
    SignalFilterBank,
    SignalFilterBankLog,
    SignalFilterBankSpectralSubtraction,
    SignalFilterBankSquareRoot,
    SignalPcan,
    logarithms,
)
from mlfbuild.native.lowering.call import Constant, KernelCall, struct_lines
from mlfbuild.native.lowering.common.parameters import array, constant, reads, writes
from mlfbuild.native.settings import CodegenSettings

_STATE = (1, 2)
"""Positions of the estimate of the noise among the inputs and among the outputs."""


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_signal_<operator>``; all of its kernels are in one header."""
    sources, (output, *kept) = list(graph.inputs_of(node).present), graph.outputs_of(node)
    count = sources[0].elements
    parameters, lines, updates = [reads("input", sources[0])], list[str](), tuple[tuple[int, int], ...]()
    match node.operator:
        case SignalFilterBank(channels=channels):
            names = ("weights", "others", "starts", "firsts", "widths")
            # Whether a weight is negative is a literal, so that the compiler drops the signed products if none is.
            weights = [tensor.data for tensor in sources[1:3]]
            negative = settings.replaceable or any(data is not None and bool((data < 0).any()) for data in weights)
            parameters += [reads(name, tensor) for name, tensor in zip(names[:2], sources[1:3], strict=True)]
            # Positions, which are not in a blob that can be replaced.
            parameters += [
                constant(replace(Constant.array(name, "int16_t", tensor.known), fixed=True))
                if settings.replaceable
                else reads(name, tensor)
                for name, tensor in zip(names[2:], sources[3:], strict=True)
            ]
            lines = [f"const struct mlf_filter_bank bank = {{{channels}, {', '.join(names)}}};"]
            word, arguments = "filter_bank", f"&bank, {int(negative)}, input"
        case SignalFilterBankSquareRoot():
            parameters.append(reads("bits", sources[1]))
            word, arguments = "filter_bank_square_root", f"{output.elements}, input, bits"
        case SignalFilterBankSpectralSubtraction() as operator:
            parameters += [writes("state", kept[1]), writes("noise", kept[0])]
            lines = [*_subtraction_lines(operator)]
            word, updates = "filter_bank_spectral_subtraction", (_STATE,)
            arguments = f"&subtraction, {operator.channels}, input, state, noise"
        case SignalPcan(snr_shift=shift):
            parameters += [reads("noise", sources[1]), reads("gains", sources[2])]
            word, arguments = "pcan", f"{count}, {shift}, input, noise, gains"
        case SignalFilterBankLog() as operator:
            parameters.insert(0, array("table", "uint16_t", logarithms()))
            word, arguments = (
                "filter_bank_log",
                f"{count}, {operator.correction}, {_word(operator.scale)}, table, input",
            )
        case _:
            raise TypeError(node.operator)
    body = (*lines, f"mlf_signal_{word}({arguments}, output);")
    return KernelCall(f"signal_{word}", "filter_bank.h", (*parameters, writes("output", output)), body, updates=updates)


def _subtraction_lines(operator: SignalFilterBankSpectralSubtraction) -> Sequence[str]:
    pairs = ((operator.smoothing, operator.odd_smoothing), (operator.rest, operator.odd_rest))
    smoothing, rest = (f"{{{', '.join(_word(value) for value in pair)}}}" for pair in pairs)
    return struct_lines("mlf_spectral_subtraction", "subtraction", {
        "smoothing": smoothing,
        "rest": rest,
        "floor": _word(operator.floor),
        "smoothing_bits": operator.smoothing_bits,
        "bits": operator.bits,
        "clamping": int(operator.clamping),
    })  # fmt: skip


def _word(value: int) -> str:
    """Return an int32 option as the uint32 that the kernel takes for it."""
    return f"{value & 0xFFFFFFFF}u"
