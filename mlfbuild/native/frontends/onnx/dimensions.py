"""Fix the free dimensions of a model's inputs.

A dimension is free if the file has a name for its size, such as ``batch``, or nothing. The user fixes it by its name,
or by the name of the input and its index, such as ``x.1``. If the first dimension of an input is free otherwise, it is
the batch and becomes 1; all dimensions of that name do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mlfbuild.core import UnsupportedModelError, UsageError, listed, suggestion
from mlfbuild.native.frontends.onnx.raw_graph import RawModel, RawPort, Size


def with_sizes(raw: RawModel, dims: Mapping[str, int], name: str) -> tuple[RawModel, list[str]]:
    """Return ``raw`` with ``dims`` in the shapes of its inputs, and notes about sizes that are fixed without them.

    Raises ``UsageError`` if ``dims`` has the name of no free dimension.

    A name in ``dims`` is that of a dimension, or ``input.index``. A free first dimension that it does not name becomes
    1, which a note reports.
    """
    free = {key: None for port in raw.inputs for keys in _free(port) for key in keys}
    for key in dims:
        if key not in free:
            near = suggestion(key, free) or (f"; it has {listed([*free])}" if free else "")
            reason = f"the model has no free dimension {key!r}{near}"
            raise UsageError("dimension-unknown", place=f"{name}: dims.{key}", reason=reason)
    batches: dict[str, str] = {}
    for port in raw.inputs:
        first = next(iter(port.shape), 1)
        # A size that the user chose for a dimension keeps it from counting as the batch.
        if not isinstance(first, int) and not {first, f"{port.name}.0"} & dims.keys():
            batches.setdefault(first or f"{port.name}.0", port.name)
    # The user's sizes are last, so that they win over the batch.
    sizes = {**dict.fromkeys(batches, 1), **dims}
    notes = [
        f"input {port!r}: the free dimension {key!r} is fixed at 1; choose another size with `dims: {{{key}: ...}}` "
        f"or `-O dim.{key}=...`"
        for key, port in batches.items()
    ]
    return replace(raw, inputs=tuple(_sized(port, sizes) for port in raw.inputs)), notes


def _free(port: RawPort) -> Iterator[tuple[str, ...]]:
    """Yield the names of each free dimension."""
    for index, size in enumerate(port.shape):
        if not isinstance(size, int):
            yield (f"{port.name}.{index}",) if size is None else (size, f"{port.name}.{index}")


def _sized(port: RawPort, sizes: Mapping[str, int]) -> RawPort:
    def fixed(index: int, size: Size) -> Size:
        own = size if isinstance(size, int) else sizes.get(f"{port.name}.{index}")
        # The name for this input alone wins over the name that several inputs share.
        return sizes.get(size, size) if own is None and isinstance(size, str) else size if own is None else own

    return replace(port, shape=tuple(fixed(index, size) for index, size in enumerate(port.shape)))


def fixed_shape(port: RawPort) -> tuple[int, ...]:
    """Return the shape of an input; raises ``UnsupportedModelError`` if a dimension is free."""
    free = next(_free(port), None)
    if free is not None:
        raise UnsupportedModelError(
            "shape-dynamic", place=f"input {port.name!r}", reason=f"the shape {shape_text(port.shape)} is dynamic",
            hint=f"choose its size with `dims: {{{free[0]}: ...}}` or `-O dim.{free[0]}=...`",
        )  # fmt: skip
    return tuple(size for size in port.shape if isinstance(size, int))


def shape_text(shape: Sequence[Size]) -> str:
    """Return ``shape`` for messages, with the names of free dimensions."""
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def fits(declared: Sequence[Size], shape: Sequence[int]) -> bool:
    """Return whether ``shape`` is as ``declared``; exporters also write 0 and -1 for a size that is free."""
    return len(declared) == len(shape) and all(
        not isinstance(size, int) or size < 1 or size == own for size, own in zip(declared, shape, strict=True)
    )
