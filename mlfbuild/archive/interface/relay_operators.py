"""The type of an operator's result in Relay, from the types of its arguments and its attributes.

These are the operators in which networks for microcontrollers end, and those from which they get their shape. A rule
takes types that are known in part and returns such a type. Source: TVM's ``src/relay/op`` and ``src/relay/qnn/op``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from mlfbuild.archive.interface.relay_types import MAX_RANK, Dims, RelayTensor

_INTEGER = re.compile(r"-?[0-9]{1,18}")

Attributes: TypeAlias = Mapping[str, str]
Rule: TypeAlias = Callable[[Sequence[RelayTensor], Attributes], RelayTensor]


def _same(tensors: Sequence[RelayTensor], _: Attributes) -> RelayTensor:
    return tensors[0]


def _typed(key: str, default: str) -> Rule:
    """Return the rule of an operator that changes the type only, to that of the attribute ``key``."""
    return lambda tensors, attributes: replace(tensors[0], dtype=attributes.get(key, default).strip('"') or default)


def _broadcast(tensors: Sequence[RelayTensor], _: Attributes) -> RelayTensor:
    first, second = tensors[0].dims, tensors[1].dims if len(tensors) > 1 else None
    if first is None or second is None:
        return RelayTensor(tensors[0].dtype)
    rank = max(len(first), len(second))
    pairs = zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True)
    # An unknown extent takes the value of the other one, unless that is 1, which fits any extent.
    return RelayTensor(tensors[0].dtype, tuple(b if a == 1 or (a is None and b != 1) else a for a, b in pairs))


def _dense(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    dims = tensors[0].dims
    units: Dims | None = _integers(attributes.get("units", ""))
    # Weights of `nn.dense` are [units, inputs].
    if not units and len(tensors) > 1 and tensors[1].dims:
        units = tensors[1].dims[:1]
    dtype = attributes.get("out_dtype", "").strip('"') or tensors[0].dtype
    return RelayTensor(dtype, (*dims[:-1], *units[:1]) if dims and units else None)


def _reshape(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    """Return the type with the attribute's shape, in which 0 keeps an extent and -1 is what remains."""
    before = tensors[0].dims
    wanted = _integers(attributes.get("newshape", ""))
    # In Relay, -2 to -4 copy, merge and split extents of the input.
    if wanted is None or len(wanted) > MAX_RANK or min(wanted) < -1 or "allowzero" in attributes:
        return RelayTensor(tensors[0].dtype)
    kept = before or ()
    # 0 keeps the extent at the same position of the input.
    dims = [extent or (kept[at] if at < len(kept) else None) for at, extent in enumerate(wanted)]
    dims = [None if extent == -1 else extent for extent in dims]
    # The extent for -1 is what the known ones leave, so it needs all of the input's extents.
    total, rest = _product(kept), _product([extent for extent in dims if extent is not None])
    if before is not None and dims.count(None) == 1 and total is not None and rest:
        dims = [total // rest if extent is None else extent for extent in dims]
    return RelayTensor(tensors[0].dtype, tuple(dims))


def _flattened(tensors: Sequence[RelayTensor], _: Attributes) -> RelayTensor:
    dims = tensors[0].dims
    if not dims:
        return RelayTensor(tensors[0].dtype, None if dims is None else (1, 1))
    return RelayTensor(tensors[0].dtype, (dims[0], _product(dims[1:])))


def _conv2d(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    dtype = _text(attributes, "out_dtype", "") or tensors[0].dtype
    channels: Dims | None = _integers(attributes.get("channels", ""))
    layout, kernel = _text(attributes, "kernel_layout", "OIHW"), tensors[1].dims if len(tensors) > 1 else None
    # A depthwise kernel (HWOI) has the multiplier as I, so its O is not the number of output channels.
    if channels is None and kernel is not None and len(kernel) == 4 and sorted(layout) == sorted("OIHW"):
        channels = kernel[layout.index("O") :][:1] if attributes.get("groups", "1") == "1" else None
    window = _integers(attributes.get("kernel_size", ""))
    return RelayTensor(dtype, _windows(tensors[0].dims, window, channels, attributes, "data_layout"))


def _pool2d(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    window = _integers(attributes.get("pool_size", ""))
    return RelayTensor(tensors[0].dtype, _windows(tensors[0].dims, window, (), attributes, "layout"))


def _windows(
    dims: Dims | None, window: tuple[int, ...] | None, channels: Dims | None, attributes: Attributes, layout: str
) -> Dims | None:
    """Return the dims after a window of the size ``window`` slid over ``dims``; no ``channels`` keep their number."""
    order = _text(attributes, layout, "NCHW")
    padding = _integers(attributes.get("padding", "[0, 0]")) or ()
    padding = {1: padding * 4, 2: padding * 2}.get(len(padding), padding)  # top, left, bottom, right
    strides, dilation = (_integers(attributes.get(key, "[1, 1]")) for key in ("strides", "dilation"))
    # Layouts with divided axes, such as NCHW4c, have other letters, and stay unknown.
    if dims is None or len(dims) != 4 or sorted(order) != sorted("NCHW") or len(padding) != 4 or channels is None:
        return None
    if window is None or strides is None or dilation is None or not len(window) == len(strides) == len(dilation) == 2:
        return None
    if 0 in strides:
        return None
    found = list(dims)
    for axis, at in ((0, order.index("H")), (1, order.index("W"))):
        extent = found[at]
        if extent is not None:
            # As `Conv2DRel` and `Pool2DRel` of TVM: room for the dilated window, divided by the stride, rounded down
            # unless ceil_mode is set. A window that does not fit gives a negative extent, which `relay` refuses.
            room = extent + padding[axis] + padding[axis + 2] - dilation[axis] * (window[axis] - 1) - 1
            up = strides[axis] - 1 if _text(attributes, "ceil_mode", "0") not in {"0", "False"} else 0
            found[at] = (room + up) // strides[axis] + 1
    found[order.index("C")] = channels[0] if channels else found[order.index("C")]
    return tuple(found)


def _global_pool2d(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    order, dims = _text(attributes, "layout", "NCHW"), tensors[0].dims
    if dims is None or len(dims) != 4 or sorted(order) != sorted("NCHW"):
        return RelayTensor(tensors[0].dtype)
    return RelayTensor(
        tensors[0].dtype, tuple(1 if letter in "HW" else e for letter, e in zip(order, dims, strict=True))
    )


def _padded(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    # pad_width has a pair for each axis; without the inner brackets it is one list.
    dims, width = tensors[0].dims, _integers(re.sub(r"[\[\]]", " ", attributes.get("pad_width", "")))
    if dims is None or width is None or len(width) != 2 * len(dims):
        return RelayTensor(tensors[0].dtype)
    sums = [before + behind for before, behind in zip(width[::2], width[1::2], strict=True)]
    return RelayTensor(
        tensors[0].dtype, tuple(e if e is None else e + more for e, more in zip(dims, sums, strict=True))
    )


def _transposed(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    dims, axes = tensors[0].dims, _integers(attributes.get("axes", ""))
    if dims is None or axes is None or sorted(axes) != list(range(len(dims))):
        return RelayTensor(tensors[0].dtype)
    return RelayTensor(tensors[0].dtype, tuple(dims[axis] for axis in axes))


def _reduced(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    return _without_axes(tensors[0], attributes, kept=_text(attributes, "keepdims", "0") not in {"0", "False"})


def _squeezed(tensors: Sequence[RelayTensor], attributes: Attributes) -> RelayTensor:
    if "axis" not in attributes:  # it removes every extent of 1
        return RelayTensor(tensors[0].dtype)
    return _without_axes(tensors[0], attributes, kept=False)


def _without_axes(tensor: RelayTensor, attributes: Attributes, *, kept: bool) -> RelayTensor:
    """Return the type without the axes of the attribute ``axis``, or with an extent of 1 for each if ``kept``."""
    axes = _integers(attributes.get("axis", ""))
    # `exclude` reverses the meaning of `axis`, and is not followed here.
    if tensor.dims is None or axes is None or "exclude" in attributes:
        return RelayTensor(tensor.dtype)
    # Negative axes count from the end.
    removed = {axis % len(tensor.dims) if tensor.dims else 0 for axis in axes}
    dims = ((1 if at in removed else extent) for at, extent in enumerate(tensor.dims) if kept or at not in removed)
    return RelayTensor(tensor.dtype, tuple(dims))


def _text(attributes: Attributes, key: str, default: str) -> str:
    return attributes.get(key, default).strip('"')


def _product(dims: Sequence[int | None]) -> int | None:
    known = [extent for extent in dims if extent is not None]
    return math.prod(known) if len(known) == len(dims) else None


def _integers(text: str) -> tuple[int, ...] | None:
    """Return the integers of ``12`` or ``[-1, 64]``; ``None`` for anything else."""
    parts = [part.strip() for part in text.strip("[]()").split(",") if part.strip()]
    return tuple(int(part) for part in parts) if parts and all(map(_INTEGER.fullmatch, parts)) else None


# Operators whose result has the type of their first argument.
_SAME = (
    "nn.softmax", "nn.log_softmax", "nn.relu", "nn.leaky_relu", "nn.prelu", "nn.bias_add", "clip", "sigmoid", "tanh",
    "exp", "log", "sqrt", "rsqrt", "negative", "abs", "round", "floor", "ceil", "copy", "erf",
    "annotation.stop_fusion", "qnn.softmax", "qnn.sigmoid", "qnn.tanh", "sin", "cos", "logical_not",
)  # fmt: skip
# As in numpy: extents are aligned at the right, and 1 fits any other one.
_BROADCAST = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "mod", "floor_divide", "floor_mod",
    "qnn.add", "qnn.subtract", "qnn.mul", "logical_and", "logical_or", "left_shift", "right_shift",
)  # fmt: skip
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_BROADCAST, _broadcast),
    "qnn.quantize": _typed("out_dtype", "int8"),
    "qnn.requantize": _typed("out_dtype", "int8"),
    "qnn.dequantize": _typed("out_dtype", "float32"),
    "cast": _typed("dtype", ""),
    "nn.dense": _dense,
    "qnn.dense": _dense,
    "reshape": _reshape,
    "nn.batch_flatten": _flattened,
    "nn.conv2d": _conv2d,
    "qnn.conv2d": _conv2d,
    "nn.max_pool2d": _pool2d,
    "nn.avg_pool2d": _pool2d,
    "qnn.avg_pool2d": _pool2d,
    "nn.global_avg_pool2d": _global_pool2d,
    "nn.global_max_pool2d": _global_pool2d,
    "nn.pad": _padded,
    "transpose": _transposed,
    "squeeze": _squeezed,
    **dict.fromkeys(("mean", "sum", "max", "min"), _reduced),
}
