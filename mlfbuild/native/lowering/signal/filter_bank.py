"""The filter banks of signal processing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlfbuild.native.graph import Graph, Node, Operator, Tensor
from mlfbuild.native.graph.ops import (
    SignalFilterBank,
    SignalFilterBankLog,
    SignalFilterBankSpectralSubtraction,
    SignalFilterBankSquareRoot,
    SignalPcan,
    logarithms,
)
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.parameters import array
from mlfbuild.native.settings import CodegenSettings

_STATE = (1, 2)
"""Positions of the estimate of the noise among the inputs and among the outputs."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of the kernel of ``node``."""
    sources = list(graph.inputs_of(node).present)
    return _LOWERINGS[type(node.operator)](node.operator, sources, graph.outputs_of(node))


def _filter_bank(operator: Operator, sources: Sequence[Tensor], outputs: Sequence[Tensor]) -> KernelCall:
    assert isinstance(operator, SignalFilterBank)
    names = ("weights", "others", "starts", "firsts", "widths")
    # Whether a weight is negative is a literal, so that the compiler drops the signed products if none is.
    negative = any(tensor.data is not None and bool((tensor.data < 0).any()) for tensor in sources[1:3])
    return KernelCall("signal_filter_bank", "filter_bank.h", (
        Parameter("const uint32_t *", "input", sources[0].name),
        *(Parameter("const int16_t *", name, tensor.name) for name, tensor in zip(names, sources[1:], strict=True)),
        Parameter("uint64_t *", "output", outputs[0].name),
    ), (
        f"const struct mlf_filter_bank bank = {{{operator.channels}, weights, others, starts, firsts, widths}};",
        f"mlf_signal_filter_bank(&bank, {int(negative)}, input, output);",
    ))  # fmt: skip


def _square_root(_operator: Operator, sources: Sequence[Tensor], outputs: Sequence[Tensor]) -> KernelCall:
    return KernelCall("signal_filter_bank_square_root", "filter_bank.h", (
        Parameter("const uint64_t *", "input", sources[0].name),
        Parameter("const int32_t *", "bits", sources[1].name),
        Parameter("uint32_t *", "output", outputs[0].name),
    ), (f"mlf_signal_filter_bank_square_root({outputs[0].elements}, input, bits, output);",))  # fmt: skip


def _spectral_subtraction(operator: Operator, sources: Sequence[Tensor], outputs: Sequence[Tensor]) -> KernelCall:
    assert isinstance(operator, SignalFilterBankSpectralSubtraction)
    pairs = ((operator.smoothing, operator.odd_smoothing), (operator.rest, operator.odd_rest))
    smoothing, rest = (f"{{{', '.join(_word(value) for value in pair)}}}" for pair in pairs)
    fields = {
        "smoothing": smoothing,
        "rest": rest,
        "floor": _word(operator.floor),
        "smoothing_bits": str(operator.smoothing_bits),
        "bits": str(operator.bits),
        "clamping": str(int(operator.clamping)),
    }
    return KernelCall("signal_filter_bank_spectral_subtraction", "filter_bank.h", (
        Parameter("const uint32_t *", "input", sources[0].name),
        Parameter("uint32_t *", "state", outputs[2].name),
        Parameter("uint32_t *", "noise", outputs[1].name),
        Parameter("uint32_t *", "output", outputs[0].name),
    ), (
        *struct_lines("mlf_spectral_subtraction", "subtraction", fields),
        f"mlf_signal_filter_bank_spectral_subtraction(&subtraction, {operator.channels}, input, state, noise, output);",
    ), updates=(_STATE,))  # fmt: skip


def _word(value: int) -> str:
    """Return an int32 option as the uint32 that the kernel takes for it."""
    return f"{value & 0xFFFFFFFF}u"


def _pcan(operator: Operator, sources: Sequence[Tensor], outputs: Sequence[Tensor]) -> KernelCall:
    assert isinstance(operator, SignalPcan)
    energies, noise, gains = sources
    return KernelCall("signal_pcan", "filter_bank.h", (
        Parameter("const uint32_t *", "input", energies.name),
        Parameter("const uint32_t *", "noise", noise.name),
        Parameter("const int16_t *", "gains", gains.name),
        Parameter("uint32_t *", "output", outputs[0].name),
    ), (f"mlf_signal_pcan({energies.elements}, {operator.snr_shift}, input, noise, gains, output);",))  # fmt: skip


def _log(operator: Operator, sources: Sequence[Tensor], outputs: Sequence[Tensor]) -> KernelCall:
    assert isinstance(operator, SignalFilterBankLog)
    sizes = f"{sources[0].elements}, {operator.correction}, {_word(operator.scale)}"
    return KernelCall("signal_filter_bank_log", "filter_bank.h", (
        array("table", "uint16_t", logarithms()),
        Parameter("const uint32_t *", "input", sources[0].name),
        Parameter("int16_t *", "output", outputs[0].name),
    ), (f"mlf_signal_filter_bank_log({sizes}, table, input, output);",))  # fmt: skip


_LOWERINGS: Mapping[type[Operator], Callable[[Operator, Sequence[Tensor], Sequence[Tensor]], KernelCall]] = {
    SignalFilterBank: _filter_bank,
    SignalFilterBankLog: _log,
    SignalFilterBankSpectralSubtraction: _spectral_subtraction,
    SignalFilterBankSquareRoot: _square_root,
    SignalPcan: _pcan,
}
