"""SignalFramer, SignalStacker and SignalOverlapAdd."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import DType, ops

_MOST = 1 << 20
"""Elements of a state; more do not fit into the memory of any microcontroller."""
_TYPES: Mapping[int, DType] = {TensorType.INT16: DType.INT16, TensorType.FLOAT32: DType.FLOAT32}


def _framer(site: TfliteSite) -> ops.SignalFramer:
    size, step, prefill = site.numbers("frame_size", "frame_step", "prefill")
    return ops.SignalFramer(size, step, bool(prefill))


def _framed(site: TfliteSite) -> tuple[tuple[int, ...], ...]:
    framer, samples = _framer(site), site.input(0)
    if framer.step < 1:
        raise site.wrong(f"frame_step {framer.step} is not positive")
    return _state(site, math.prod(samples.shape[:-1]), framer.kept)


def _stacker(site: TfliteSite) -> ops.SignalStacker:
    names = ("num_channels", "stacker_left_context", "stacker_right_context", "stacker_step")
    return ops.SignalStacker(*site.numbers(*names))


def _stacked(site: TfliteSite) -> tuple[tuple[int, ...], ...]:
    stacker = _stacker(site)
    return _state(site, stacker.channels, stacker.left + stacker.right)


def _state(site: TfliteSite, rows: int, kept: int) -> tuple[tuple[int, ...], ...]:
    """Return the shape of ``kept`` elements of each row, and a number."""
    if not (rows > 0 and 0 <= kept * rows <= _MOST):
        raise site.unsupported(f"its options need a state of {rows} x {kept} elements, not one of 0 to {_MOST}")
    return ((rows * kept + 1,),)


def _overlap_add(site: TfliteSite) -> ops.SignalOverlapAdd:
    dtype, step = site.numbers("T", "frame_step")
    if _TYPES.get(dtype) is not site.input(0).dtype:
        raise site.wrong(f"T {dtype} is not the type of {site.input(0)}, int16 or float32")
    return ops.SignalOverlapAdd(step)


def _added(site: TfliteSite) -> tuple[tuple[int, ...], ...]:
    *rows, _, size = (1, 1, *site.input(0).shape)
    return ((*rows[2:], size),)


KINDS: Mapping[str, OperatorKind] = {
    "SignalFramer": OperatorKind(_framer, 1, made_states=_framed),
    "SignalOverlapAdd": OperatorKind(_overlap_add, 1, made_states=_added),
    "SignalStacker": OperatorKind(_stacker, 1, made_states=_stacked),
}
