"""SignalWindow and SignalEnergy; SignalFftAutoScale has no options."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.graph import Operator, ops


def _window(site: TfliteSite) -> Operator:
    return ops.SignalWindow(*site.numbers("shift"))


def _energy(site: TfliteSite) -> Operator:
    end, start = site.numbers("end_index", "start_index")
    return ops.SignalEnergy(start, end)


KINDS: Mapping[str, OperatorKind] = {
    "SignalWindow": OperatorKind(_window, 2),
    "SignalEnergy": OperatorKind(_energy, 1),
}
