"""Make the ``struct mlf_window``, which has the sizes of convolutions and pools, and structs that are static."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import Node, Tensor
from mlfbuild.native.graph.bases import Window
from mlfbuild.native.lowering.call import struct_lines, unsupported

_FARTHEST = 1 << 29


def window_lines(node: Node, window: Window, source: Tensor, output: Tensor) -> Sequence[str]:
    """Return the local ``window`` of an operator on the NHWC image ``source``; raises as ``window_fields``.

    The pairs in the struct are (height, width), and images are NHWC.
    """
    return struct_lines("mlf_window", "window", window_fields(node, window, source, output))


def window_fields(node: Node, window: Window, source: Tensor, output: Tensor) -> dict[str, str]:
    """Return the fields of the ``struct mlf_window``.

    Raises ``UnsupportedModelError`` if coordinates would come near the limits of 32 bits.
    """
    (top, bottom), (left, right) = window.padding
    # The dilation of a filter with one row or column has no effect, and can be huge.
    dilation = [step if size > 1 else 1 for step, size in zip(window.dilation, window.filter, strict=True)]
    # The sum of three such numbers fits in int32.
    if max(*dilation, *window.stride, *window.filter, top, bottom, left, right, *source.shape) > _FARTHEST:
        raise unsupported(node, f"filter, stride, dilation, padding and image must stay below {_FARTHEST} rows")
    return {
        "batches": str(source.shape[0]),
        "input": braces(source.shape[1:3]),
        "input_channels": str(source.shape[3]),
        "output": braces(output.shape[1:3]),
        "output_channels": str(output.shape[3]),
        "filter": braces(window.filter),
        "stride": braces(window.stride),
        "dilation": braces(dilation),
        # Only the padding before: that behind the image follows from the sizes.
        "padding": braces((top, left)),
    }


def static_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the ``lines`` of a local struct as a static one, for kernels that are not specialised for it.

    For kernels that the compiler inlines and specialises, the struct disappears; for others, a local one would be built
    on the stack by every call.
    """
    return (f"static {lines[0]}", *lines[1:])


def static_struct_lines(c_type: str, name: str, fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return the static struct ``name`` with ``fields``; see ``static_lines``."""
    return static_lines(struct_lines(c_type, name, fields))
