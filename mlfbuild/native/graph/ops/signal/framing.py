"""SignalFramer, SignalStacker and SignalOverlapAdd of TensorFlow Lite Micro, which keep what several outputs need.

COL2IM adds overlapping windows of up to three dimensions in one run.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Collecting(Operator):
    """Collects int16 samples of several runs; writes them, whether they are complete, and the state."""

    types = (DType.INT16,)
    results = (DType.INT16, DType.BOOL)

    @rules.takes(2, writes=3)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        samples, before = inputs
        return (
            rules.first(rules.typed(tensor, DType.INT16) for tensor in (samples, before, outputs[0], outputs[2]))
            or rules.typed(outputs[1], DType.BOOL)
            or rules.vectors(samples)
            or rules.shape(outputs[1], ())
            or self._check_sizes(samples, before, outputs)
        )

    @abc.abstractmethod
    def _check_sizes(self, samples: Tensor, before: Tensor, outputs: Sequence[Tensor]) -> str | None:
        """Return why the attributes and shapes do not fit each other, or ``None``."""


class SignalFramer(Collecting):
    """Frames of ``size`` samples that begin every ``step`` samples, and whether all of them were full.

    Frames that need samples from before the first run are not full, and 0; with ``prefill`` those samples are 0. The
    state is the last samples of every row, and after them the number of frames per row that were not full.
    """

    size: int
    step: int
    prefill: bool

    name = "SignalFramer"

    def _check_sizes(self, samples: Tensor, before: Tensor, outputs: Sequence[Tensor]) -> str | None:
        *rows, count = samples.shape
        wanted = math.prod(rows) * self.kept + 1
        return (
            rules.within("frame_step", self.step, 1, count)
            or (None if count % self.step == 0 else f"{samples} is not a multiple of frame_step {self.step}")
            or rules.within("frame_size", self.size, self.step if self.prefill else 1, 1 << 20)
            or rules.shape(outputs[0], (*rows, count // self.step, self.size))
            or rules.within("the number of frames that are not full", self.late, 0, (1 << 15) - 1)
            or rules.first(rules.shape(state, (wanted,)) for state in (before, outputs[2]))
        )

    @property
    def kept(self) -> int:
        """The number of samples of a row before those of the first frame of a run."""
        return self.size - self.step if self.prefill else self.late * self.step

    @property
    def late(self) -> int:
        """The number of frames of a row that are not full."""
        return 0 if self.prefill else (self.size - 1) // self.step

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        samples, before = values
        rows = samples.reshape(-1, samples.shape[-1])
        line = np.concatenate([before[:-1].reshape(len(rows), self.kept), rows], axis=1)
        starts = range(0, rows.shape[1], self.step)
        missed = min(self.late - int(before[-1]), len(starts))
        frames = np.stack([line[:, start : start + self.size] for start in starts], axis=1)
        frames[:, :missed] = 0
        after = np.append(line[:, rows.shape[1] :], np.int16(before[-1] + missed))
        return frames.reshape(outputs[0].shape), np.array(missed == 0), after


class SignalStacker(Collecting):
    """The features of ``left`` runs, of one run and of ``right`` runs after it, every ``step`` runs, and when they are.

    In other runs the features are 0. Runs before the first one had its features. The state is the features of the last
    runs, and after them 0 before the first run, otherwise 1 more than the number of runs that are not yet discarded.
    """

    channels: int
    left: int
    right: int
    step: int

    name = "SignalStacker"

    def _check_sizes(self, samples: Tensor, before: Tensor, outputs: Sequence[Tensor]) -> str | None:
        frames, most = self.left + self.right + 1, (1 << 15) - 2
        return (
            rules.shape(samples, (self.channels,))
            or rules.within("stacker_left_context", self.left, 0, most)
            or rules.within("stacker_right_context", self.right, 0, most)
            or rules.within("the number of runs in an output", frames, 1, most)
            or rules.within("stacker_step", self.step, 1, frames)
            or rules.shape(outputs[0], (frames * self.channels,))
            or rules.first(rules.shape(state, ((frames - 1) * self.channels + 1,)) for state in (before, outputs[2]))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        features, before = values
        kept, frames = self.left + self.right, int(before[-1])
        history = before[:-1] if frames else np.tile(features, kept)
        if not frames:
            frames = self.left + 1
        line = np.concatenate([history, features])
        full = frames > kept
        if full:
            frames -= self.step
        after = np.append(line[len(features) :], np.int16(frames + 1))
        return line if full else np.zeros_like(line), np.array(full), after


class SignalOverlapAdd(Operator):
    """The sum of frames that begin every ``step`` samples; int16 is saturated after each addition.

    The state is the sum so far from where the next frame begins.
    """

    step: int

    name = "SignalOverlapAdd"
    types = (DType.INT16, DType.FLOAT32)

    @rules.takes(2, writes=2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        frames, before = inputs
        if len(frames.shape) < 2:
            return f"{frames} has no dimension of frames"
        *rows, count, size = frames.shape
        return (
            (None if frames.dtype in self.types else f"{frames} must be {rules.alternatives(self.types)}")
            or rules.first(rules.typed(tensor, frames.dtype) for tensor in (before, *outputs))
            or rules.within("frame_step", self.step, 1, size)
            or rules.shape(outputs[0], (*rows, count * self.step))
            or rules.first(rules.shape(state, (*rows, size)) for state in (before, outputs[1]))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        frames, before = values
        kept, parts = before.copy(), []
        for at in range(frames.shape[-2]):
            kept = _sum(kept, frames[..., at, :])
            parts.append(kept[..., : self.step])
            kept = np.concatenate([kept[..., self.step :], np.zeros_like(parts[-1])], axis=-1)
        return np.concatenate(parts, axis=-1), kept


def _sum(first: Array, second: Array) -> Array:
    if first.dtype == np.float32:
        return first + second
    # Two int16 need 17 bits: a sum in int16 would wrap before it is clamped.
    return np.clip(first.astype(np.int32) + second, -(1 << 15), (1 << 15) - 1).astype(np.int16)


class Col2Im(Operator):
    """Images from their windows: [images, places in a window, windows] to [images, ``size``], added where they overlap.

    All sizes are those of 3 dimensions; ``before`` are the pixels that windows cover before the image, and ``counts``
    the numbers of windows.
    """

    size: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    counts: tuple[int, ...]

    name = "COL2IM"
    types = (DType.FLOAT32,)

    @rules.takes(1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, output = inputs[0], outputs[0]
        numbers = (self.size, self.filter, self.stride, self.dilation, self.before, self.counts)
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.first(rules.within("the number of sizes", len(each), 3, 3) for each in numbers)
            or rules.first(
                rules.within("a size", number, 0 if each is self.before else 1, 1 << 24)
                for each in numbers
                for number in each
            )
            or rules.rank(source, 3)
            or rules.shape(source, (source.shape[0], math.prod(self.filter), math.prod(self.counts)))
            or rules.shape(output, (source.shape[0], *self.size))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # In double, so that the order in which overlaps are added hardly matters.
        windows = values[0].astype(np.float64).reshape(-1, *self.filter, *self.counts)
        total = np.zeros(outputs[0].shape)
        for tap in np.ndindex(self.filter):
            lines = zip(tap, self.dilation, self.before, self.counts, self.stride, self.size, strict=True)
            places = [
                at * dilation - before + np.arange(count) * stride for at, dilation, before, count, stride, _ in lines
            ]
            # Windows may cover padding, which is not part of the image.
            kept = [(place >= 0) & (place < size) for place, size in zip(places, self.size, strict=True)]
            to = np.ix_(range(len(total)), *(place[keep] for place, keep in zip(places, kept, strict=True)))
            own = (slice(None), *tap)
            total[to] += windows[own][np.ix_(range(len(total)), *kept)]
        return (total.astype(np.float32),)
