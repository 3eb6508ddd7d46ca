"""Lost accuracy of a quantised network by tensor: noise against the float network, and advice.

The signal-to-noise ratio of a tensor is ``10 log10(sum f^2 / sum (f - q)^2)`` decibels, where ``f`` are the values of
the float network and ``q`` the real numbers that the quantised one stores, over all elements of all cases. It is the
measure of Widrow and Kollar, *Quantization Noise* (2008), and of ONNX Runtime's ``qdq_loss_debug``. Sums are all that
is kept, so that memory does not depend on the number of cases.

**Rules.** A tensor differs from the float one because its operator adds noise, because rounding has taken from its
inputs what the operator needs, or because its inputs had noise before. The float operator tells them apart: on the
quantised inputs, it gives the result without the operator's own noise; on the float inputs, rounded with their scales,
it gives what their rounding does. What makes at least half of the noise of a tensor (``HALF``) decides what helps:

1. A tensor of ``GOOD`` decibels or more needs nothing: its noise is a thousandth of its signal.
2. Values beyond the ends of the integers: the range is too narrow, and other calibration data, or the method
   ``minmax``, widen it.
3. The rounding of the inputs: their scales hide small values that matter behind large ones that do not, such as those
   of another channel. The operator and those that write its inputs stay in float.
4. The operator's own noise: it stays in float. If rounding its result makes that noise, so do those that read it.
5. Otherwise the noise comes from its inputs, which have rows of their own.
6. If no operator stands out, though an output is below ``GOOD``, noise adds up: ``int16`` has 256 times finer steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import counted, listed, quoted, text_table
from mlfbuild.library import TensorInfo

Array = npt.NDArray[Any]

GOOD = 30.0
"""Decibels from which on a tensor needs nothing."""
HALF = 10 * math.log10(2)
"""Decibels between a noise and half of it."""
_ROWS = 15
_BEYOND = 1.01
"""Steps; rounding moves a value by half a step, and 1.0 of a softmax, whose greatest integer is one less, by one."""
CALIBRATION, KEEP_FLOAT, INT16 = "calibration", "keep-float", "int16"


@dataclass(frozen=True)
class LostTensor:
    """The loss of one tensor of the quantised network."""

    name: str
    operator: str
    """The kind of the operator that writes it; empty for an input of the network."""
    ratio: float
    """Signal to noise in decibels; infinite without noise."""
    rounding: float
    """The ratio if the float values were only rounded with the scale of the tensor."""
    own: float
    """The ratio if only its operator added noise, its own rounding included."""
    from_rounding: float
    """The ratio if only its inputs were rounded with their scales."""
    saturated: float
    """The part of elements, 0 to 1, that lie beyond what the end of the integers stands for by more than a step."""
    clipped: float
    """The part of the noise of rounding, 0 to 1, that these elements make."""
    in_float: bool
    """Whether the quantised network has it in float."""
    inputs: tuple[str, ...] = ()
    """The tensors that the operator reads, as far as they are compared."""
    nodes: tuple[str, ...] = ()
    """The names of the operator and of those fused with it in ``keep-float``, itself last."""

    @property
    def label(self) -> str:
        """A short name for people."""
        return self.nodes[-1] if self.nodes else self.name


@dataclass(frozen=True)
class LossAdvice:
    """Advice for one tensor, or for the network."""

    kind: str
    """``calibration``, ``keep-float`` or ``int16``."""
    nodes: tuple[str, ...] = ()
    """For ``keep-float``: the names to write."""

    def __str__(self) -> str:
        """Return the advice in a few words."""
        if self.kind == KEEP_FLOAT:
            return f"keep-float: [{', '.join(self.nodes)}]"
        return "activations: int16" if self.kind == INT16 else "more or other calibration data, or method: minmax"


@dataclass(frozen=True)
class LossCases:
    """The values of one tensor in a few cases, all arrays of one shape."""

    real: Array
    """Of the float network."""
    got: Array
    """Of the quantised one, as real numbers."""
    held: Array
    """``real``, rounded with the scale of the tensor."""
    alone: Array
    """The outputs of the float operator for the inputs of the quantised one."""
    rounded: Array
    """The outputs of the float operator for the inputs of the float network, rounded with their scales."""


@dataclass
class LossMeter:
    """The sums of one tensor."""

    tensor: TensorInfo
    """The quantised tensor, with its scale if it has one."""
    _sums: Array = field(default_factory=lambda: np.zeros(5))
    """Signal, noise, noise of rounding, the operator's own, and that of its rounded inputs."""
    _clipped: float = 0.0
    _beyond: int = 0
    _elements: int = 0

    def round(self, real: Array) -> Array:
        """Return ``real`` rounded with the scale of the tensor; as it is without one."""
        return self.tensor.dequantized(self.tensor.quantized(real))

    def add(self, cases: LossCases) -> None:
        """Add cases; values that are not finite numbers do not count."""
        real, got = (each.astype(np.float64) for each in (cases.real, cases.got))
        finite = np.isfinite(real) & np.isfinite(got)
        rounding = real - cases.held
        parts = [np.where(finite, each, 0.0) ** 2
                 for each in (real, real - got, rounding, cases.alone - got, cases.rounded - real)]  # fmt: skip
        self._sums = self._sums + [part.sum() for part in parts]
        self._elements += int(finite.sum())
        if self.tensor.scale is not None:
            beyond = finite & (np.abs(rounding) > _BEYOND * self.tensor.scale)
            self._beyond += int(beyond.sum())
            self._clipped += float(parts[2][beyond].sum())

    def result(self, name: str, operator: str, inputs: Sequence[str] = (), nodes: Sequence[str] = ()) -> LostTensor:
        """Return what the tensor called ``name`` in the float network has lost; see ``LostTensor``."""
        signal, *noises = (float(each) for each in self._sums)
        ratio, rounding, own, from_rounding = (decibels(signal, noise) for noise in noises)
        return LostTensor(
            name,
            operator,
            ratio,
            rounding,
            own,
            from_rounding,
            self._beyond / max(1, self._elements),
            self._clipped / (noises[1] or 1.0),
            self.tensor.scale is None,
            tuple(inputs),
            tuple(nodes),
        )


def decibels(signal: float, noise: float) -> float:
    """Return the ratio of two sums of squares in decibels; infinite without noise, minus infinity without signal."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def advice_for(tensors: Sequence[LostTensor]) -> dict[str, LossAdvice]:
    """Return what helps each of ``tensors`` that a rule concerns, by name, the worst tensor first."""
    known = {each.name: each for each in tensors}
    ranked = sorted(tensors, key=lambda each: each.ratio)
    found = ((each.name, _advice(each, known)) for each in ranked if each.ratio < GOOD)
    return {name: advice for name, advice in found if advice is not None}


def _advice(lost: LostTensor, known: Mapping[str, LostTensor]) -> LossAdvice | None:
    # A noise whose ratio is below this limit makes at least half of the noise of the tensor.
    limit, kept = lost.ratio + HALF, []
    if lost.clipped > 0.5 and lost.rounding < limit:
        return LossAdvice(CALIBRATION)
    if lost.from_rounding < limit:
        kept += [lost, *(known[name] for name in lost.inputs if name in known)]
    if lost.own < limit:
        kept.append(lost)
        if lost.rounding < limit:
            kept += [each for each in known.values() if lost.name in each.inputs]
    # In the order of execution, and each once although several rules may name it.
    nodes = tuple(node for each in known.values() if each in kept and not each.in_float for node in each.nodes)
    return LossAdvice(KEEP_FLOAT, nodes) if nodes else None


@dataclass(frozen=True)
class LossReport:
    """The tensors of a quantised network beside those of the float one."""

    cases: int
    tensors: tuple[LostTensor, ...]
    """In order of execution."""
    outputs: tuple[str, ...]
    """The names of the network's outputs."""
    unpaired: int
    """Tensors of the float network that the quantised one does not have by this name."""

    @property
    def ranked(self) -> list[LostTensor]:
        """The tensors, the worst first."""
        return sorted(self.tensors, key=lambda each: each.ratio)

    @property
    def advice(self) -> dict[str, LossAdvice]:
        """Advice by the name of the tensor; see ``advice_for``."""
        return advice_for(self.tensors)

    @property
    def whole(self) -> LossAdvice | None:
        """Advice for the network if no operator stands out; ``None`` if one does, or if none is needed."""
        short = any(each.ratio < GOOD for each in self.tensors if each.name in self.outputs)
        return LossAdvice(INT16) if short and not self.advice else None

    @property
    def begins(self) -> LostTensor | None:
        """The first tensor in order of execution whose noise does not come from its inputs; ``None`` without any."""
        advice = self.advice
        return next((each for each in self.tensors if each.name in advice), None)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-ready data, the worst tensor first; a ratio that is not finite is null."""
        advice, begins = self.advice, self.begins
        return {
            "cases": self.cases,
            "unpaired": self.unpaired,
            "tensors": [
                {
                    "name": each.name,
                    "label": each.label,
                    "operator": each.operator or None,
                    "decibels": _finite(each.ratio),
                    "exact": each.ratio == math.inf,
                    "rounding_decibels": _finite(each.rounding),
                    "own_decibels": _finite(each.own),
                    "input_rounding_decibels": _finite(each.from_rounding),
                    "saturated": each.saturated,
                    "float": each.in_float,
                    "advice": _json(advice.get(each.name)),
                }
                for each in self.ranked
            ],
            "begins": begins and begins.name,
            "advice": _json(self.whole),
        }


LOSS_COLUMNS = {"tensor": "l", "operator": "l", "dB": "r", "saturated": "r", "noise": "l", "advice": "l"}
"""The columns of ``loss_rows``, aligned to the left or to the right."""


def loss_rows(found: Mapping[str, Any], most: int | None = None) -> list[tuple[str, ...]]:
    """Return the table of a report as JSON: its worst tensors, ``most`` of them, in ``LOSS_COLUMNS``."""
    return [_row(each) for each in found["tensors"][:most]]


def loss_summary(found: Mapping[str, Any]) -> str:
    """Return a line for a report in JSON: the tensor at which noise begins, or advice for the whole network."""
    first = next((each for each in found["tensors"] if each["name"] == found["begins"]), None)
    if first is not None:
        return f"noise begins at {first['label']} ({_ratio(first, ' dB')})"
    if found["advice"] is not None:
        return f"no operator stands out: {_advice_in(found['advice'])}"
    short = any(not each["exact"] and (each["decibels"] or 0) < GOOD for each in found["tensors"])
    return f"{'no output is' if short else 'no tensor is'} below {GOOD:g} dB"


def losses_text(found: Mapping[str, Any], *, verbose: bool = False) -> str:
    """Return a report in JSON as text: a table of its worst tensors, or of all if ``verbose``, and the summary."""
    count, most = len(found["tensors"]), None if verbose else _ROWS
    table = text_table(loss_rows(found, most), header=[*LOSS_COLUMNS], align="".join(LOSS_COLUMNS.values()), indent=2)
    lines = [f"{counted(found['cases'], 'case')}, {counted(count, 'tensor')}, worst first", table]
    if most is not None and count > most:
        lines.append(f"  and {count - most:,} more, with -v")
    if found["unpaired"]:
        lines.append(f"  not compared, because the quantised network does not have them: {found['unpaired']:,}")
    return "\n".join([*lines, loss_summary(found)])


def _row(lost: Mapping[str, Any]) -> tuple[str, ...]:
    saturated = "float" if lost["float"] else f"{100 * lost['saturated']:.2g} %"
    good = lost["exact"] or (lost["decibels"] or 0) >= GOOD
    noise = "" if good else "begins" if lost["advice"] else "from its inputs"
    return lost["label"], lost["operator"] or "input", _ratio(lost), saturated, noise, _advice_in(lost["advice"])


def _ratio(lost: Mapping[str, Any], unit: str = "") -> str:
    ratio = lost["decibels"]
    return f"{ratio:.1f}{unit}" if ratio is not None else "exact" if lost["exact"] else "no signal"


def _advice_in(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else str(LossAdvice(found["kind"], tuple(found["nodes"])))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _json(advice: LossAdvice | None) -> dict[str, Any] | None:
    return None if advice is None else {"kind": advice.kind, "nodes": list(advice.nodes)}


def unpaired_text(names: Sequence[str]) -> str:
    """Return a few of ``names`` for a message."""
    return listed([quoted(name) for name in names[:4]])
