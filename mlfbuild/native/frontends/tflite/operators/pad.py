"""PAD, PADV2 and MIRROR_PAD."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator
from tflite.MirrorPadMode import MirrorPadMode

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops
from mlfbuild.native.graph.bases import same_quantization


def _paddings(site: TfliteSite) -> tuple[tuple[int, int], ...]:
    paddings = site.constant(1, "paddings")
    if paddings.size != 2 * len(site.input(0).shape):
        raise site.wrong(f"{paddings.size} paddings do not fit {site.input(0)}")
    return tuple((int(before), int(after)) for before, after in paddings.reshape(-1, 2))


def _padv2(site: TfliteSite) -> Operator:
    source, filling = site.input(0), site.input(2)
    if filling.data is None:
        raise site.unsupported(f"the value {filling} must be constant", code="input-not-constant")
    if filling.dtype is not source.dtype or filling.elements != 1:
        raise site.wrong(f"the value {filling} must be one element of the type of {source}")
    reason = same_quantization(filling, site.output())
    if reason is not None:
        raise site.wrong(reason)
    return ops.PadV2(_paddings(site), filling.data.reshape(-1)[0].item())


def _mirror_pad(site: TfliteSite) -> Operator:
    with reading(site.place):
        mode = site.read_options("MirrorPadOptions").Mode()
    if mode not in {MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC}:
        raise site.wrong(f"mode {mode} is neither REFLECT nor SYMMETRIC")
    return ops.MirrorPad(_paddings(site), mode == MirrorPadMode.SYMMETRIC)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.MIRROR_PAD: OperatorKind(_mirror_pad, 1, 1),
    BuiltinOperator.PAD: OperatorKind(lambda site: ops.Pad(_paddings(site)), 1, 1),
    BuiltinOperator.PADV2: OperatorKind(_padv2, 1, 2),
}
