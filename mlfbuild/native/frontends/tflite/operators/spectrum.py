"""SignalDelay, SignalWindow and SignalEnergy; SignalFftAutoScale has no options."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops

_LONGEST_DELAYS = 1 << 20
"""Samples of all rows; more do not fit into the memory of any microcontroller."""


def _window(site: TfliteSite) -> Operator:
    return ops.SignalWindow(*site.numbers("shift"))


def _energy(site: TfliteSite) -> Operator:
    end, start = site.numbers("end_index", "start_index")
    return ops.SignalEnergy(start, end)


def _delay(site: TfliteSite) -> Operator:
    return ops.SignalDelay(*site.numbers("delay_length"))


def _delayed(site: TfliteSite) -> tuple[tuple[int, ...], ...]:
    """Return the shape of the samples that a later run writes."""
    (length,), rows = site.numbers("delay_length"), site.output().shape[:-1]
    longest = _LONGEST_DELAYS // math.prod(rows)
    if not 1 <= length <= longest:
        raise site.unsupported(f"delay_length {length} is not between 1 and {longest}")
    return ((*rows, length),)


KINDS: Mapping[str, OperatorKind] = {
    "SignalDelay": OperatorKind(_delay, 1, made_states=_delayed),
    "SignalWindow": OperatorKind(_window, 2),
    "SignalEnergy": OperatorKind(_energy, 1),
}
